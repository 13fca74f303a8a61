//! The conformance fixtures: building them, and a server of ours that is running.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;

const START_LIMIT: Duration = Duration::from_secs(30);

/// The two commands that are put to the test.
#[derive(Debug, Clone)]
pub(crate) struct Fixtures {
    pub(crate) server: Vec<String>,
    pub(crate) client: String,
    our_server: bool,
}

impl Fixtures {
    /// Builds ours. `CONFORMANCE_SERVER` and `CONFORMANCE_CLIENT` put another command in their place, to
    /// hold a peer to the same list; when both are given nothing is built.
    pub(crate) fn build(workspace: &Workspace) -> Result<Self> {
        let other = |name| std::env::var(name).ok().filter(|command| !command.trim().is_empty());
        let (server, client) = (other("CONFORMANCE_SERVER"), other("CONFORMANCE_CLIENT"));
        let folder = match (&server, &client) {
            (Some(_), Some(_)) => PathBuf::new(),
            _ => our_programs(workspace)?,
        };
        let ours = |name| folder.join(name).display().to_string();
        let our_server = server.is_none();
        let server = server.unwrap_or_else(|| ours("conformance-server"));
        Ok(Self {
            our_server,
            server: server.split_whitespace().map(String::from).collect(),
            client: client.unwrap_or_else(|| ours("conformance-client")),
        })
    }

    /// Returns whether the server is ours, which alone knows its arguments.
    pub(crate) fn is_our_server(&self) -> bool {
        self.our_server
    }

    /// The command that starts the server.
    pub(crate) fn server(&self) -> Result<Command> {
        let (program, arguments) = self.server.split_first().context("no server command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }
}

/// Builds our programs for meetings with others, and returns their folder.
pub(crate) fn our_programs(workspace: &Workspace) -> Result<PathBuf> {
    workspace.build_programs("roundtrip-interop")
}

/// A running server; it ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) log: PathBuf,
}

impl Server {
    /// Starts a server that takes its port from `PORT` on a free loopback port, and waits until it listens.
    pub(crate) fn spawn(workspace: &Workspace, command: Command) -> Result<Self> {
        Self::spawn_at(workspace, free_port()?, command)
    }

    /// Starts a server on a port that others know already.
    pub(crate) fn spawn_at(workspace: &Workspace, port: u16, mut command: Command) -> Result<Self> {
        let log = workspace.interop().join(format!("server-{port}.log"));
        fs::create_dir_all(workspace.interop())?;
        let mut file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let mut child = command
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file.try_clone()?)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let stdout = child.stdout.take().context("the server has no stdout")?;
        let server = Self { child, url: format!("http://127.0.0.1:{port}/mcp"), log };

        let (announce, announced) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.contains("listening on") {
                    let _ = announce.send(());
                }
                let _ = writeln!(file, "{line}");
            }
        });
        server.wait_until_ready(port, &announced)
    }

    fn wait_until_ready(mut self, port: u16, announced: &mpsc::Receiver<()>) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended at once ({status})\n{}", process::tail(&self.log, 20));
            }
            let said = announced.try_recv().is_ok();
            if said || TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(self);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        anyhow::bail!("the server does not listen on {address} after {START_LIMIT:?}")
    }

    /// Returns the URL of its root, without a slash at the end.
    pub(crate) fn origin(&self) -> &str {
        self.url.trim_end_matches("/mcp")
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?.local_addr()?.port())
}
