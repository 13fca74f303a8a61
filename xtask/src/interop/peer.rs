//! Published SDKs: what is installed of each, and which of our scripts and programs run on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::install::{self, Python};
use crate::process;
use crate::workspace::Workspace;

/// Every peer, by name.
pub(super) const PEERS: [&str; 8] =
    ["python", "typescript", "python-1x", "typescript-1x", "fastmcp", "rmcp", "neva", "plain"];

/// Way in which a client speaks with our server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// At 2026-07-28.
    Newest,
    /// The same over stdio alone.
    NewestPiped,
    /// At the newest revision that has a handshake; over HTTP, with a session.
    Handshake,
    /// The same without a session, in which clients cannot be asked.
    Stateless,
    /// At 2026-07-28 over HTTP, by a client that declares nothing.
    Undeclared,
}

impl Manner {
    pub(super) fn suits(self, transport: &str) -> bool {
        match self {
            Self::Newest | Self::Handshake => true,
            Self::NewestPiped => transport == "stdio",
            Self::Stateless | Self::Undeclared => transport == "http",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Newest | Self::NewestPiped => "2026-07-28",
            Self::Handshake => "handshake",
            Self::Stateless => "stateless",
            Self::Undeclared => "undeclared",
        }
    }

    /// The newest revision goes without saying; a session, for the server too.
    pub(super) fn tell(self, client: &mut Command, server: &mut Command) {
        let flag = format!("--{}", self.word());
        if matches!(self, Self::Handshake | Self::Stateless) {
            client.arg(&flag);
        }
        if matches!(self, Self::Stateless | Self::Undeclared) {
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

/// A server for our client to drive, and the one of our clients that does.
type Served = (&'static str, &'static str);

/// A published SDK, installed, with our scripts for it.
pub(super) struct Peer {
    /// Scripts that drive our server.
    pub(super) clients: Vec<Client>,
    /// Scripts that are servers.
    pub(super) servers: Vec<Served>,
    /// Folders of the scripts: those that only this peer has come first.
    folders: Vec<PathBuf>,
    runtime: Runtime,
}

enum Runtime {
    Python(Python),
    Node(PathBuf),
    /// The scripts are programs.
    Built,
}

impl Peer {
    pub(super) fn install(workspace: &Workspace, name: &str) -> Result<Self> {
        match name {
            "rmcp" => Self::build(workspace, ("rmcp-client", Manner::Newest), "rmcp-server"),
            "neva" => Self::build(workspace, ("neva-client", Manner::NewestPiped), "neva-server"),
            "python" | "python-1x" => Self::python(workspace, name),
            "fastmcp" => Self::fastmcp(workspace),
            "plain" => Ok(Self::plain(workspace)),
            _ => Self::node(workspace, name),
        }
    }

    fn python(workspace: &Workspace, name: &str) -> Result<Self> {
        let (source, shared) = sources(workspace, name, "python");
        let packages = Python::with(&workspace.interop().join(name), &source.join("requirements.txt"))?;
        let (mut clients, mut servers) = (PYTHON.to_vec(), vec![("asking_server.py", "asking-client")]);
        if name != "python" {
            only_handshake(&mut clients, "tasks.py");
            servers.push(("task_server.py", "task-client"));
        }
        Ok(Self { clients, servers, folders: vec![source, shared], runtime: Runtime::Python(packages) })
    }

    fn fastmcp(workspace: &Workspace) -> Result<Self> {
        let (source, _) = sources(workspace, "fastmcp", "python");
        let packages = Python::with(&workspace.interop().join("fastmcp"), &source.join("requirements.txt"))?;
        Ok(Self {
            // It sends no `Mcp-Name` with requests about tasks, which the extension demands over HTTP.
            clients: vec![("tasks.py", Manner::NewestPiped)],
            servers: vec![("task_server.py", "task-client")],
            folders: vec![source],
            runtime: Runtime::Python(packages),
        })
    }

    /// Takes Python as it is: a script that knows the text of a proposal, and no SDK.
    fn plain(workspace: &Workspace) -> Self {
        Self {
            clients: vec![("twelve_messages.py", Manner::Undeclared)],
            servers: Vec::new(),
            folders: vec![sources(workspace, "plain", "python").0],
            runtime: Runtime::Python(Python::bare()),
        }
    }

    fn node(workspace: &Workspace, name: &str) -> Result<Self> {
        let (source, shared) = sources(workspace, name, "typescript");
        let folder = workspace.interop().join(name);
        install::npm_locked(&folder, &source)?;
        // Node looks for packages beside the script, so the scripts go where the packages are. What an older SDK does
        // in its own way takes the place of what the newer one does.
        copy_scripts(&shared, &folder)?;
        copy_scripts(&source, &folder)?;
        let (mut clients, mut servers) = (NODE.to_vec(), vec![("asking-server.mjs", "asking-client")]);
        if name != "typescript" {
            only_handshake(&mut clients, "tasks.mjs");
            servers.push(("task-server.mjs", "task-client"));
        }
        let runtime = Runtime::Node(install::node(workspace)?);
        Ok(Self { clients, servers, folders: vec![folder], runtime })
    }

    /// Builds the Rust peers, whose packages are a workspace of their own.
    fn build(workspace: &Workspace, client: Client, server: &'static str) -> Result<Self> {
        let target = workspace.interop().join("rust");
        let manifest = workspace.root.join("interop/peers/rust/Cargo.toml");
        let mut build = workspace.cargo(&["build", "--quiet", "--locked", "--manifest-path"]);
        build.arg(manifest).arg("--target-dir").arg(&target);
        ensure!(process::show(&mut build)?, "the Rust peers do not build");
        Ok(Self {
            clients: vec![client],
            servers: vec![(server, "task-client")],
            folders: vec![target.join("debug")],
            runtime: Runtime::Built,
        })
    }

    /// The command that runs one of the scripts.
    pub(super) fn run(&self, script: &str) -> Result<Command> {
        let found = self.folders.iter().map(|folder| folder.join(script)).find(|path| path.exists());
        let path = found.with_context(|| format!("there is no {script}"))?;
        let mut command = match &self.runtime {
            Runtime::Built => return Ok(Command::new(path)),
            Runtime::Python(python) => python.command(),
            Runtime::Node(node) => Command::new(node),
        };
        command.arg(path);
        Ok(command)
    }
}

/// The folders of a peer's own scripts, and of those that all peers of its language share.
fn sources(workspace: &Workspace, name: &str, language: &str) -> (PathBuf, PathBuf) {
    let sources = workspace.root.join("interop/peers");
    (sources.join(name), sources.join(language))
}

/// Leaves those clients that an SDK of the handshake era can run, and adds one that only such an SDK can: with the tasks of
/// 2025-11-25.
fn only_handshake(clients: &mut Vec<Client>, tasks: &'static str) {
    clients.retain(|(_, manner)| *manner != Manner::Newest);
    clients.push((tasks, Manner::Handshake));
}

pub(super) fn copy_scripts(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let script = entry?.path();
        if let Some(name) = script.file_name().filter(|_| script.extension().is_some_and(|end| end == "mjs"))
        {
            fs::copy(&script, to.join(name)).with_context(|| format!("copying {}", script.display()))?;
        }
    }
    Ok(())
}
