//! `cargo xtask interop`: the published clients of other languages list and call everything our conformance
//! server offers, and answer whatever it asks; and our client answers whatever servers on the same SDKs ask. Over HTTP
//! and over stdio.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::fixture::{self, Fixtures, Server};
use crate::install::{self, Python};
use crate::process;
use crate::tally::Tally;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(180);
const PEERS: [&str; 2] = ["python", "typescript"];
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
            for script in peer.clients {
                let client = peer.run(script);
                let what = format!("{name} {script} {transport}");
                tally.add(meet(workspace, &what, client, fixtures.server()?, transport)?);
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

/// A published SDK, installed, with our scripts for it.
struct Peer {
    /// Where the scripts are.
    folder: PathBuf,
    runtime: Runtime,
    /// Scripts that drive our server.
    clients: &'static [&'static str],
    /// A script that is a server, for our client to drive.
    server: &'static str,
}

enum Runtime {
    Python(Python),
    Node(PathBuf),
}

impl Peer {
    fn install(workspace: &Workspace, name: &str) -> Result<Self> {
        let source = workspace.root.join("interop/peers").join(name);
        let folder = workspace.interop().join(name);
        if name == "python" {
            let python = Python::with(&folder, &source.join("requirements.txt"))?;
            let clients = &["list_and_call.py", "answer.py"];
            let (runtime, server) = (Runtime::Python(python), "asking_server.py");
            return Ok(Self { folder: source, runtime, clients, server });
        }
        install::npm_locked(&folder, &source)?;
        // Node looks for packages beside the script, so the scripts go where the packages are.
        for entry in fs::read_dir(&source).with_context(|| format!("reading {}", source.display()))? {
            let script = entry?.path();
            if let Some(name) =
                script.file_name().filter(|_| script.extension().is_some_and(|end| end == "mjs"))
            {
                fs::copy(&script, folder.join(name))
                    .with_context(|| format!("copying {}", script.display()))?;
            }
        }
        let runtime = Runtime::Node(install::node(workspace)?);
        let clients = &["list-and-call.mjs", "answer.mjs"];
        Ok(Self { folder, runtime, clients, server: "asking-server.mjs" })
    }

    /// The command that runs one of the scripts.
    fn run(&self, script: &str) -> Command {
        let mut command = match &self.runtime {
            Runtime::Python(python) => python.command(),
            Runtime::Node(node) => Command::new(node),
        };
        command.arg(self.folder.join(script));
        command
    }
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
