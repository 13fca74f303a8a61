//! `cargo xtask interop`: the published clients of other languages list and call everything our conformance
//! server offers, and answer whatever it asks; and our client answers whatever servers on the same SDKs ask. Over HTTP
//! and over stdio; at 2026-07-28, and with the handshake of the older revisions, with a session and without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::fixture::{self, Fixtures, Server};
use crate::install::{self, Python};
use crate::process;
use crate::tally::Tally;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(180);
const PEERS: [&str; 4] = ["python", "typescript", "python-1x", "typescript-1x"];
const TRANSPORTS: [&str; 2] = ["http", "stdio"];

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let (mut peers, mut transports) = (PEERS.to_vec(), TRANSPORTS.to_vec());
    for argument in arguments {
        match *argument {
            peer if PEERS.contains(&peer) => peers = vec![peer],
            transport if TRANSPORTS.contains(&transport) => transports = vec![transport],
            other => bail!("{other} is neither a peer ({PEERS:?}) nor a transport ({TRANSPORTS:?})"),
        }
    }
    Ok(Tally::conclude(run(workspace, &peers, &transports)))
}

/// Every peer over every transport.
pub(crate) fn all(workspace: &Workspace) -> Result<Tally> {
    run(workspace, &PEERS, &TRANSPORTS)
}

fn run(workspace: &Workspace, peers: &[&str], transports: &[&str]) -> Result<Tally> {
    let fixtures = Fixtures::build(workspace)?;
    let mut tally = Tally::default();
    for name in peers {
        let peer = Peer::install(workspace, name)?;
        for transport in transports {
            for (script, manner) in peer.clients.iter().filter(|(_, manner)| manner.suits(transport)) {
                let (mut client, mut server) = (peer.run(script), fixtures.server()?);
                manner.tell(&mut client, &mut server);
                let what = format!("{name} {script} {} {transport}", manner.word());
                tally.add(meet(workspace, &what, client, server, transport)?);
            }
            let what = format!("{name} {} {transport}", peer.server);
            let (client, server) = (fixture::asking_client(workspace)?, peer.run(peer.server));
            tally.add(meet(workspace, &what, client, server, transport)?);
        }
    }
    Ok(tally)
}

/// Runs a client against a server of its own: what one does to it must not excuse the next.
fn meet(
    workspace: &Workspace,
    what: &str,
    mut client: Command,
    mut server: Command,
    transport: &str,
) -> Result<Tally> {
    client.arg(transport);
    let _running = if transport == "http" {
        let server = Server::spawn(workspace, server)?;
        client.arg(&server.url);
        Some(server)
    } else {
        server.arg("--stdio");
        client.arg(server.get_program()).args(server.get_args());
        client.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        None
    };
    let log = workspace.interop().join(format!("{}.log", what.replace(' ', "-")));
    let ending = process::log(&mut client, &log, LIMIT)?;
    println!("interop {what}");
    Ok(report(&fs::read_to_string(&log)?, ending))
}

/// How a script speaks with our server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// At 2026-07-28.
    Newest,
    /// At the newest revision that has a handshake; over HTTP, with a session.
    Handshake,
    /// The same without a session, in which clients cannot be asked.
    Stateless,
}

impl Manner {
    fn suits(self, transport: &str) -> bool {
        self != Self::Stateless || transport == "http"
    }

    fn word(self) -> &'static str {
        match self {
            Self::Newest => "2026-07-28",
            Self::Handshake => "handshake",
            Self::Stateless => "stateless",
        }
    }

    /// The newest revision goes without saying; a session, for the server too.
    fn tell(self, client: &mut Command, server: &mut Command) {
        let flag = format!("--{}", self.word());
        if self != Self::Newest {
            client.arg(&flag);
        }
        if self == Self::Stateless {
            server.arg(&flag);
        }
    }
}

/// A script that drives our server, and how.
type Client = (&'static str, Manner);

const PYTHON: [Client; 6] = [
    ("list_and_call.py", Manner::Newest),
    ("answer.py", Manner::Newest),
    ("list_and_call.py", Manner::Handshake),
    ("answer_requests.py", Manner::Handshake),
    ("list_and_call.py", Manner::Stateless),
    ("answer_requests.py", Manner::Stateless),
];
const NODE: [Client; 6] = [
    ("list-and-call.mjs", Manner::Newest),
    ("answer.mjs", Manner::Newest),
    ("list-and-call.mjs", Manner::Handshake),
    ("answer-requests.mjs", Manner::Handshake),
    ("list-and-call.mjs", Manner::Stateless),
    ("answer-requests.mjs", Manner::Stateless),
];

/// A published SDK, installed, with our scripts for it.
struct Peer {
    /// Where the scripts are that are clients, and the one that is a server.
    folders: [PathBuf; 2],
    runtime: Runtime,
    /// Scripts that drive our server.
    clients: Vec<Client>,
    /// A script that is a server, for our client to drive.
    server: &'static str,
}

enum Runtime {
    Python(Python),
    Node(PathBuf),
}

impl Peer {
    /// A peer of the handshake era (`-1x`) runs the clients of its newer sibling, on packages of its own.
    fn install(workspace: &Workspace, name: &str) -> Result<Self> {
        let sources = workspace.root.join("interop/peers");
        let (source, folder) = (sources.join(name), workspace.interop().join(name));
        let language = name.strip_suffix("-1x").unwrap_or(name);
        let shared = sources.join(language);
        let all = if language == "python" { PYTHON } else { NODE };
        let can = |manner| language == name || manner != Manner::Newest;
        let clients = all.into_iter().filter(|(_, manner)| can(*manner)).collect();
        if language == "python" {
            let runtime = Runtime::Python(Python::with(&folder, &source.join("requirements.txt"))?);
            return Ok(Self { folders: [shared, source], runtime, clients, server: "asking_server.py" });
        }
        install::npm_locked(&folder, &source)?;
        // Node looks for packages beside the script, so the scripts go where the packages are. What an older SDK does
        // in its own way takes the place of what the newer one does.
        copy_scripts(&shared, &folder)?;
        copy_scripts(&source, &folder)?;
        let runtime = Runtime::Node(install::node(workspace)?);
        Ok(Self { folders: [folder.clone(), folder], runtime, clients, server: "asking-server.mjs" })
    }

    /// The command that runs one of the scripts.
    fn run(&self, script: &str) -> Command {
        let mut command = match &self.runtime {
            Runtime::Python(python) => python.command(),
            Runtime::Node(node) => Command::new(node),
        };
        let [clients, server] = &self.folders;
        command.arg(if script == self.server { server } else { clients }.join(script));
        command
    }
}

fn copy_scripts(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let script = entry?.path();
        if let Some(name) = script.file_name().filter(|_| script.extension().is_some_and(|end| end == "mjs"))
        {
            fs::copy(&script, to.join(name)).with_context(|| format!("copying {}", script.display()))?;
        }
    }
    Ok(())
}

/// Shows what a script printed and counts its checks: its own last line is not taken at its word.
fn report(output: &str, ending: process::Ending) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines().filter(|line| !is_sum(line)) {
        println!("  {line}");
        if line.starts_with("ok ") {
            tally.count(true);
        } else if line.starts_with("FAIL ") {
            tally.count(false);
        }
    }
    if !ending.is_success() && tally.failed == 0 || tally == Tally::default() {
        println!("  FAIL  the script ended without saying why: {ending}");
        tally.count(false);
    }
    tally
}

fn is_sum(line: &str) -> bool {
    line.ends_with(" failed") && line.contains(" passed, ")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn exit(code: i32) -> process::Ending {
        process::Ending::Exited(ExitStatus::from_raw(code << 8))
    }

    #[test]
    fn counts_the_lines_of_a_script() {
        let said = "ok    tools/list: 3 tools\nFAIL  a: no\nsome noise\n1 passed, 1 failed\n";
        assert_eq!(report(said, exit(1)), Tally { passed: 1, failed: 1 });
    }

    #[test]
    fn a_script_that_dies_or_says_nothing_fails() {
        assert_eq!(report("ok    a: b\nTraceback", exit(1)), Tally { passed: 1, failed: 1 });
        assert_eq!(report("", exit(0)), Tally { passed: 0, failed: 1 });
        let late = process::Ending::TimedOut(LIMIT);
        assert_eq!(report("ok    a: b", late), Tally { passed: 1, failed: 1 });
    }
}
