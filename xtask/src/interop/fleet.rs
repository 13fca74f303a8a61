//! `cargo xtask interop fleet`: published clients of both eras call two instances behind nginx, which sends requests to them in
//! turn and knows nothing of sessions; the instances end and are started again meanwhile.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::peer::{Manner, Peer};
use super::{Encounter, hold_all, run_to_its_end};
use crate::fixture;
use crate::process;
use crate::services::{self, Restarted};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Keys of the instances.
const KEYS: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const INSTANCES: [&str; 2] = ["one", "two"];

/// A peer, its script, and how that speaks.
type Client = (&'static str, &'static str, Manner);

const CLIENTS: [Client; 6] = [
    ("python", "fleet.py", Manner::Newest),
    ("python", "fleet.py", Manner::Handshake),
    ("python-1x", "fleet.py", Manner::Handshake),
    ("fastmcp", "fleet.py", Manner::Newest),
    ("fastmcp", "fleet.py", Manner::Handshake),
    ("typescript-1x", "fleet.mjs", Manner::Handshake),
];

/// Holds the meetings whose name has all of the words.
pub(super) fn run(workspace: &Workspace, words: &[&str]) -> Result<Tally> {
    let Some(nginx) = services::nginx() else {
        println!(
            "SKIPPED  fleets behind nginx: it is not installed, and may not be (that takes root and apt-get)"
        );
        ensure!(!services::is_strict(), "nothing may be skipped");
        return Ok(Tally::default());
    };
    let server = fixture::our_programs(workspace)?.join("fleet-server");
    let mut meetings = Vec::new();
    for (peer, script, manner) in CLIENTS {
        let what = format!("fleet {peer} {script} {}", manner.word());
        let (client, server) = (Command::new(peer), server.clone());
        let planned = Meeting { what, client, server, nginx: nginx.clone() };
        if planned.is_named(words) {
            let mut client = Peer::install(workspace, peer)?.run(script)?;
            manner.tell(&mut client, &mut Command::new(peer));
            meetings.push(Meeting { client, ..planned });
        }
    }
    hold_all(workspace, meetings)
}

/// A client before a fleet of its own.
struct Meeting {
    what: String,
    client: Command,
    server: PathBuf,
    nginx: PathBuf,
}

impl Encounter for Meeting {
    fn what(&self) -> &str {
        &self.what
    }

    fn hold(self, workspace: &Workspace) -> Result<(String, process::Ending)> {
        let Self { what, mut client, server, nginx } = self;
        let folder = workspace.interop().join(what.replace(' ', "-"));
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let (mut running, mut ports) = (Vec::new(), Vec::new());
        for name in INSTANCES {
            let port = fixture::free_port()?;
            let mut instance = Command::new(&server);
            instance.env("PORT", port.to_string()).env("INSTANCE", name).env("ROUNDTRIP_KEYS", KEYS);
            running.push(start(instance, &folder.join(format!("{name}.log")), port)?);
            ports.push(port);
        }
        let port = fixture::free_port()?;
        running.push(start(before(&nginx, &folder, port, &ports)?, &folder.join("nginx.log"), port)?);
        let instances: Vec<String> = INSTANCES
            .iter()
            .zip(&ports)
            .map(|(name, port)| format!("{name}=http://127.0.0.1:{port}/mcp"))
            .collect();
        client.args(["http", &format!("http://127.0.0.1:{port}/mcp")]).env("INSTANCES", instances.join(" "));
        run_to_its_end(workspace, &what, &mut client)
    }
}

/// Starts a process that listens at a port.
fn start(command: Command, log: &Path, port: u16) -> Result<Restarted> {
    Restarted::start(command, log, move || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
}

/// Returns the command of nginx before instances. A request that no instance got is sent to the next; any other is not.
fn before(nginx: &Path, folder: &Path, port: u16, instances: &[u16]) -> Result<Command> {
    let upstream: String =
        instances.iter().map(|port| format!("server 127.0.0.1:{port} max_fails=0; ")).collect();
    let settings = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr;
        events {{ worker_connections 256; }}
        http {{
            access_log off;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            upstream instances {{ {upstream} }}
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    proxy_pass http://instances;
                    proxy_http_version 1.1;
                    proxy_set_header Connection \"\";
                    proxy_set_header Host $http_host;
                    proxy_buffering off;
                }}
            }}
        }}"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, settings).with_context(|| format!("writing {}", file.display()))?;
    let mut command = Command::new(nginx);
    command.args(["-e", "stderr", "-p"]).arg(folder).arg("-c").arg(&file);
    Ok(command)
}
