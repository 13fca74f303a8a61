//! `cargo xtask interop`: published clients of other SDKs list and call everything our conformance server offers, answer
//! whatever it asks, and run its tools as tasks; and our clients do the same with servers on the same SDKs. Over HTTP
//! and over stdio; at 2026-07-28, and with the handshake of the older revisions, with a session and without.
//! `cargo xtask interop auth`: both sign in, at published authorization servers. `cargo xtask interop cli`: the built `roundtrip`
//! command calls servers on the same SDKs. `cargo xtask interop fleet`: published clients call two instances behind nginx.

mod auth;
mod cli;
mod fleet;
mod peer;

use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use peer::{PEERS, Peer};

use crate::fixture::{self, Fixtures, Server};
use crate::process;
use crate::side_by_side::side_by_side;
use crate::tally::Tally;
use crate::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(180);
const TRANSPORTS: [&str; 2] = ["http", "stdio"];

/// Word for the meetings at authorization servers.
const AUTH: &str = "auth";
/// Word for the meetings of the built command.
const CLI: &str = "cli";
/// Word for the meetings of clients with instances behind a load balancer.
const FLEET: &str = "fleet";

pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    match arguments {
        [AUTH, only @ ..] => return Ok(Tally::conclude(auth::run(workspace, only))),
        [CLI, only @ ..] => return Ok(Tally::conclude(cli::run(workspace, only))),
        [FLEET, only @ ..] => return Ok(Tally::conclude(fleet::run(workspace, only))),
        _ => {}
    }
    let (mut peers, mut transports) = (PEERS.to_vec(), TRANSPORTS.to_vec());
    for argument in arguments {
        match *argument {
            peer if PEERS.contains(&peer) => peers = vec![peer],
            transport if TRANSPORTS.contains(&transport) => transports = vec![transport],
            other => {
                bail!(
                    "{other} is neither a peer ({PEERS:?}) nor a transport ({TRANSPORTS:?}) nor {AUTH}, {CLI} or {FLEET}"
                )
            }
        }
    }
    Ok(Tally::conclude(run(workspace, &peers, &transports)))
}

/// Every peer over every transport, then the authorization servers, the built command and instances behind a load balancer.
pub(crate) fn all(workspace: &Workspace) -> Result<Tally> {
    let mut tally = run(workspace, &PEERS, &TRANSPORTS)?;
    tally.add(auth::run(workspace, &[])?);
    tally.add(cli::run(workspace, &[])?);
    tally.add(fleet::run(workspace, &[])?);
    Ok(tally)
}

fn run(workspace: &Workspace, peers: &[&str], transports: &[&str]) -> Result<Tally> {
    let (fixtures, clients) = (Fixtures::build(workspace)?, fixture::our_programs(workspace)?);
    let mut meetings = Vec::new();
    for name in peers {
        let peer = Peer::install(workspace, name)?;
        for transport in transports {
            for (script, manner) in peer.clients.iter().filter(|(_, manner)| manner.suits(transport)) {
                let (mut client, mut server) = (peer.run(script)?, fixtures.server()?);
                manner.tell(&mut client, &mut server);
                let what = format!("{name} {script} {} {transport}", manner.word());
                meetings.push(Meeting { what, client, server, transport });
            }
            for (script, ours) in &peer.servers {
                let (client, server) = (Command::new(clients.join(ours)), peer.run(script)?);
                let what = format!("{name} {script} {transport}");
                meetings.push(Meeting { what, client, server, transport });
            }
        }
    }
    hold_all(workspace, meetings)
}

/// Processes that meet, of which one reports.
trait Encounter: Send {
    /// Returns what is shown of it.
    fn what(&self) -> &str;

    /// Runs the reporting process to its end. Returns what it printed.
    fn hold(self, workspace: &Workspace) -> Result<(String, process::Ending)>;

    /// Returns whether all of the words are in its name.
    fn is_named(&self, words: &[&str]) -> bool {
        words.iter().all(|word| self.what().split(' ').any(|part| part == *word))
    }
}

/// Holds the meetings, some at a time. What each of them says stays together.
fn hold_all(workspace: &Workspace, meetings: Vec<impl Encounter>) -> Result<Tally> {
    let printing = Mutex::new(());
    side_by_side(meetings, |next| {
        let mut tally = Tally::default();
        while let Some(meeting) = next() {
            let what = meeting.what().to_owned();
            let (said, ending) = meeting.hold(workspace)?;
            let _alone = printing.lock().unwrap_or_else(PoisonError::into_inner);
            println!("interop {what}");
            tally.add(report(&said, ending));
        }
        Ok(tally)
    })
}

/// A client and a server of its own: what one does to it must not excuse the next.
struct Meeting<'a> {
    what: String,
    client: Command,
    server: Command,
    transport: &'a str,
}

impl Encounter for Meeting<'_> {
    fn what(&self) -> &str {
        &self.what
    }

    fn hold(self, workspace: &Workspace) -> Result<(String, process::Ending)> {
        let Self { what, mut client, mut server, transport } = self;
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
        run_to_its_end(workspace, &what, &mut client)
    }
}

fn run_to_its_end(
    workspace: &Workspace,
    what: &str,
    client: &mut Command,
) -> Result<(String, process::Ending)> {
    let log = workspace.interop().join(format!("{}.log", what.replace(' ', "-")));
    let ending = process::log(client, &log, LIMIT)?;
    Ok((fs::read_to_string(&log)?, ending))
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
