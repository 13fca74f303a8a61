//! `cargo xtask interop cli`: the built `roundtrip` command calls tools of servers on other SDKs, and of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::peer::Peer;
use super::{Encounter as _, Meeting, TRANSPORTS, hold_all};
use crate::fixture;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// A peer, one of its servers, and the check of `command-client` that it is for.
type Served = (&'static str, &'static str, &'static str);

const SERVERS: [Served; 7] = [
    ("python", "asking_server.py", "asking"),
    ("typescript", "asking-server.mjs", "asking"),
    ("python-1x", "asking_server.py", "asking-handshake"),
    ("typescript-1x", "asking-server.mjs", "asking-handshake"),
    ("python-1x", "task_server.py", "tasks-handshake"),
    ("typescript-1x", "task-server.mjs", "tasks-handshake"),
    ("fastmcp", "task_server.py", "tasks"),
];

/// Holds the meetings whose name has all of the words.
pub(super) fn run(workspace: &Workspace, words: &[&str]) -> Result<Tally> {
    let roundtrip = build(workspace)?;
    let client = fixture::our_programs(workspace)?.join("command-client");
    let mut meetings = Vec::new();
    for transport in TRANSPORTS {
        let meeting = |peer: &str, script: &str, check: &str, server: Command| {
            let mut client = Command::new(&client);
            client.arg(check).env("ROUNDTRIP", &roundtrip);
            Meeting { what: format!("cli {peer} {script} {transport}"), client, server, transport }
        };
        meetings.push(meeting("roundtrip", "serve", "own", own(&roundtrip, transport)));
        for (peer, script, check) in SERVERS {
            let planned = meeting(peer, script, check, Command::new(peer));
            if planned.is_named(words) {
                let server = Peer::install(workspace, peer)?.run(script)?;
                meetings.push(Meeting { server, ..planned });
            }
        }
    }
    hold_all(workspace, meetings.into_iter().filter(|meeting| meeting.is_named(words)).collect())
}

/// Builds the command, and returns its path.
pub(super) fn build(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.build_programs("roundtrip-cli")?.join("roundtrip"))
}

/// Returns the command of its own server, which takes its port from the command line.
fn own(roundtrip: &Path, transport: &str) -> Command {
    if transport == "stdio" {
        let mut server = Command::new(roundtrip);
        server.arg("serve");
        return server;
    }
    let mut server = Command::new("sh");
    server.args(["-c", "exec \"$0\" serve --http \"127.0.0.1:$PORT\""]).arg(roundtrip);
    server
}
