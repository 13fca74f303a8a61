//! PostgreSQL and Redis of a run's own: on free ports of the loopback, in a temporary folder, ended with the run. Tests start nginx
//! themselves, and are told where it is.

mod found;
mod server;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;
pub(crate) use server::Server as Restarted;
use server::{Server, User};

/// Variable that makes a skipped suite a failure.
const STRICT: &str = "ROUNDTRIP_TEST_STRICT";

/// Servers that tests may use, and the variables that say where they are.
pub(crate) struct Services {
    variables: Vec<(&'static str, String)>,
    skipped: Vec<&'static str>,
    // The servers are ended before their folder is removed.
    servers: Vec<Server>,
    folder: Folder,
}

/// `cargo xtask services -- command ..`: a command with both servers.
pub(crate) fn command(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    let ["--", program, arguments @ ..] = arguments else { anyhow::bail!("wanted -- and a command") };
    let services = Services::start()?;
    process::show(services.set(Command::new(program).args(arguments).current_dir(&workspace.root)))
}

/// Installs the shells that completions are loaded in. Tests say which of them they skip.
pub(crate) fn find_shells() {
    for shell in ["bash", "zsh", "fish"].into_iter().filter(|shell| !found::shell(shell)) {
        println!("{shell} is not installed, and may not be (that takes root and apt-get)");
    }
}

/// Returns nginx, installed if need be and if it may be.
pub(crate) fn nginx() -> Option<PathBuf> {
    found::nginx()
}

/// Returns whether a skipped suite is a failure.
pub(crate) fn is_strict() -> bool {
    std::env::var_os(STRICT).is_some()
}

impl Services {
    /// Starts the servers. One that is not there and cannot be installed is skipped, visibly.
    pub(crate) fn start() -> Result<Self> {
        let folder = Folder::new()?;
        let user = User::unprivileged();
        let mut services = Self { variables: Vec::new(), skipped: Vec::new(), servers: Vec::new(), folder };
        let postgres = services.postgres(&user);
        services.note("PostgreSQL", postgres)?;
        let redis = services.redis(&user);
        services.note("Redis", redis)?;
        match found::nginx() {
            Some(program) => services.variables.push(("ROUNDTRIP_TEST_NGINX", program.display().to_string())),
            None => services.skip("nginx"),
        }
        Ok(services)
    }

    /// Sets the variables for a command.
    pub(crate) fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Returns whether nothing is skipped that must not be.
    pub(crate) fn are_complete(&self) -> bool {
        self.skipped.is_empty() || !is_strict()
    }

    /// Returns whether a server was started.
    pub(crate) fn has(&self, name: &str) -> bool {
        !self.skipped.contains(&name)
    }

    fn note(&mut self, name: &'static str, started: Result<Option<Server>>) -> Result<()> {
        match started.with_context(|| format!("starting {name}"))? {
            Some(server) => self.servers.push(server),
            None => self.skip(name),
        }
        Ok(())
    }

    fn skip(&mut self, name: &'static str) {
        println!(
            "SKIPPED  tests on {name}: it is not installed, and may not be (that takes root and apt-get)"
        );
        self.skipped.push(name);
    }

    fn postgres(&mut self, user: &User) -> Result<Option<Server>> {
        let Some(bin) = found::postgres() else { return Ok(None) };
        let (folder, port) = (self.folder.make("postgres", user)?, free_port()?);
        let data = folder.join("data");
        let mut make = user.command(&bin.join("initdb"), &folder);
        make.arg("--pgdata").arg(&data);
        make.args(["--username=roundtrip", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        process::quietly(&mut make, &folder.join("initdb.log"), server::LIMIT)?;
        let mut start = user.command(&bin.join("postgres"), &folder);
        start.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        let mut ready = Command::new(bin.join("pg_isready"));
        ready.args(["--quiet", "--host=127.0.0.1", "--port", &port.to_string()]);
        let server = Server::start(start, &folder.join("log"), move || {
            ready.status().is_ok_and(|status| status.success())
        })?;
        let url = format!("postgres://roundtrip@127.0.0.1:{port}/postgres");
        self.variables.push(("ROUNDTRIP_TEST_POSTGRES", url));
        let pid_file = data.join("postmaster.pid").display().to_string();
        self.variables.push(("ROUNDTRIP_TEST_POSTGRES_PID_FILE", pid_file));
        Ok(Some(server))
    }

    fn redis(&mut self, user: &User) -> Result<Option<Server>> {
        let Some(program) = found::redis() else { return Ok(None) };
        let (folder, port) = (self.folder.make("redis", user)?, free_port()?);
        let mut start = user.command(&program, &folder);
        start.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]).arg(&folder);
        // Durable, so that a restart of it can be tested.
        start.args(["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        let server = Server::start(start, &folder.join("log"), move || server::pongs(port))?;
        self.variables.push(("ROUNDTRIP_TEST_REDIS", format!("redis://127.0.0.1:{port}/0")));
        Ok(Some(server))
    }
}

/// A port that nothing listens at just now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("roundtrip-services-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Makes a folder for a server.
    fn make(&self, name: &str, user: &User) -> Result<PathBuf> {
        let folder = self.0.join(name);
        std::fs::create_dir_all(&folder)?;
        user.own(&folder)?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all::<&Path>(&self.0);
    }
}
