//! `cargo xtask interop`: the published clients of other languages list and call everything our conformance
//! server offers, over HTTP and over stdio.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::fixture::{Fixtures, Server};
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
    for peer in peers {
        for transport in transports {
            let mut command = script(workspace, peer)?;
            command.arg(transport);
            // A server for each: what one peer does to it must not excuse the next.
            let server = if *transport == "http" { Some(Server::start(workspace, &fixtures)?) } else { None };
            match &server {
                Some(server) => command.arg(&server.url),
                None => command.args(&fixtures.server).arg("--stdio"),
            };
            let log = workspace.interop().join(format!("{peer}-{transport}.log"));
            let ending = process::log(&mut command, &log, LIMIT)?;
            println!("interop {peer} {transport}");
            tally.add(report(&fs::read_to_string(&log)?, ending));
        }
    }
    Ok(tally)
}

/// The command that runs a peer's script, with what it needs installed.
fn script(workspace: &Workspace, peer: &str) -> Result<Command> {
    let source = workspace.root.join("interop/peers").join(peer);
    let folder = workspace.interop().join(peer);
    if peer == "python" {
        let mut command = Python::with(&folder, &source.join("requirements.txt"))?.command();
        command.arg(source.join("list_and_call.py"));
        return Ok(command);
    }
    install::npm_locked(&folder, &source)?;
    // Node looks for packages beside the script, so the script goes where the packages are.
    for name in ["answers.mjs", "list-and-call.mjs"] {
        fs::copy(source.join(name), folder.join(name)).with_context(|| format!("copying {name}"))?;
    }
    let mut command = Command::new(install::node(workspace)?);
    command.arg(folder.join("list-and-call.mjs"));
    Ok(command)
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
