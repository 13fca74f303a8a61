//! `cargo xtask interop auth`: published authorization servers, at which our client signs in for our server and for servers on
//! other SDKs, and clients on other SDKs for ours.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::peer::{Peer, copy_scripts};
use super::{Encounter, run_to_its_end, side_by_side};
use crate::fixture::{self, Fixtures, Server};
use crate::install::{self, Python};
use crate::process;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// URL of the client metadata of our client. No server is there: the authorization server has the document in a file.
const CLIENT_METADATA: &str = "https://roundtrip.example/client.json";
/// Keys of the instances of one server.
const KEYS: &str = "1111111111111111111111111111111111111111111111111111111111111111";

/// Holds the meetings whose name has all of the words.
pub(super) fn run(workspace: &Workspace, words: &[&str]) -> Result<Tally> {
    let scenes = Cast::gather(workspace)?.scenes()?;
    let named = |scene: &Scene| words.iter().all(|word| scene.what.split(' ').any(|part| part == *word));
    side_by_side(workspace, scenes.into_iter().filter(named).collect())
}

/// Servers of one meeting, each of which is told who the issuer is.
enum Served {
    One(Command),
    /// Two instances behind a relay that sends requests to them in turn.
    InTurn {
        relay: Command,
        instances: [Command; 2],
    },
    /// A server that wants no token, behind a gate that does.
    Gated {
        gate: Command,
        server: Command,
    },
}

impl Served {
    fn spawn(self, workspace: &Workspace, issuer: &str) -> Result<Vec<Server>> {
        match self {
            Self::One(mut server) => {
                server.env("ISSUER", issuer);
                Ok(vec![Server::spawn(workspace, server)?])
            }
            Self::InTurn { mut relay, instances } => {
                let port = fixture::free_port()?;
                let mut servers = Vec::new();
                for (mut instance, name) in instances.into_iter().zip(["one", "two"]) {
                    let resource = format!("http://127.0.0.1:{port}/mcp");
                    instance.envs([("ISSUER", issuer), ("INSTANCE", name), ("ROUNDTRIP_KEYS", KEYS)]);
                    instance.env("RESOURCE", resource);
                    servers.push(Server::spawn(workspace, instance)?);
                }
                relay.args(servers.iter().map(Server::origin));
                servers.insert(0, Server::spawn_at(workspace, port, relay)?);
                Ok(servers)
            }
            Self::Gated { mut gate, server } => {
                let server = Server::spawn(workspace, server)?;
                gate.env("ISSUER", issuer).arg(server.origin());
                Ok(vec![Server::spawn(workspace, gate)?, server])
            }
        }
    }
}

/// An authorization server, servers, and a client that signs in.
struct Scene {
    what: String,
    issuer: Command,
    served: Served,
    client: Command,
    /// Words after the URL.
    rest: Vec<String>,
}

impl Encounter for Scene {
    fn what(&self) -> &str {
        &self.what
    }

    fn hold(self, workspace: &Workspace) -> Result<(String, process::Ending)> {
        let Self { what, issuer, served, mut client, rest } = self;
        let issuer = Server::spawn(workspace, issuer)?;
        let servers = served.spawn(workspace, issuer.origin())?;
        let first = servers.first().context("no server")?;
        let store = workspace.interop().join(format!("{}.tokens", what.replace(' ', "-")));
        let _ = fs::remove_dir_all(&store);
        client.arg(&first.url).args(rest).env("ISSUER", issuer.origin()).env("STORE", &store);
        run_to_its_end(workspace, &what, &mut client)
    }
}

/// Everything that plays a part, installed or built.
struct Cast {
    ours: PathBuf,
    fixtures: Fixtures,
    node: PathBuf,
    /// Scripts on oidc-provider, beside its packages.
    provider: PathBuf,
    canaille: Python,
    mock: Python,
    /// Scripts of the other authorization servers.
    sources: PathBuf,
    /// Document of our client.
    document: PathBuf,
    python: Peer,
    typescript: Peer,
}

impl Cast {
    fn gather(workspace: &Workspace) -> Result<Self> {
        let (fixtures, ours) = (Fixtures::build(workspace)?, fixture::our_clients(workspace)?);
        let sources = workspace.root.join("interop/peers");
        let provider = workspace.interop().join("oidc-provider");
        install::npm_locked(&provider, &sources.join("oidc-provider"))?;
        copy_scripts(&sources.join("oidc-provider"), &provider)?;
        let python = |name: &str| {
            Python::with(&workspace.interop().join(name), &sources.join(name).join("requirements.txt"))
        };
        let mut print = Command::new(ours.join("signing-client"));
        let document = provider.join("client.json");
        fs::write(&document, process::output(print.args(["document", CLIENT_METADATA]))?)?;
        Ok(Self {
            node: install::node(workspace)?,
            canaille: python("canaille")?,
            mock: python("oidc-provider-mock")?,
            python: Peer::install(workspace, "python")?,
            typescript: Peer::install(workspace, "typescript")?,
            ours,
            fixtures,
            provider,
            sources,
            document,
        })
    }

    fn scenes(&self) -> Result<Vec<Scene>> {
        let mut scenes = Vec::new();
        for way in [["dcr"], ["registered"], ["secret"], ["cimd"]] {
            scenes.push(self.at_provider(way[0], self.guarded(), self.signing("code"), &way));
        }
        for check in ["machine", "foreign", "device", "processes", "elsewhere"] {
            scenes.push(self.at_provider(check, self.guarded(), self.signing(check), &[]));
        }
        scenes.push(self.opaque());
        let instances = [self.program("guarded-server"), self.program("guarded-server")];
        let in_turn = Served::InTurn { relay: self.script("relay.mjs"), instances };
        scenes.push(self.at_provider("rounds", in_turn, self.signing("rounds"), &[]));
        let gated = Served::Gated { gate: self.script("dpop-gate.mjs"), server: self.fixtures.server()? };
        scenes.push(self.at_provider("dpop", gated, self.signing("dpop"), &[]));
        for (name, peer, client, server) in [
            ("python", &self.python, "sign_in.py", "guarded_server.py"),
            ("typescript", &self.typescript, "sign-in.mjs", "guarded-server.mjs"),
        ] {
            let mut theirs = self.with_browser(peer.run(client)?);
            theirs.arg("http");
            scenes.push(self.at_provider(&format!("{name} client"), self.guarded(), theirs, &[]));
            for (check, rest) in [("calls", &["dcr"][..]), ("foreign", &[][..])] {
                let (what, server) = (format!("{name} server {check}"), Served::One(peer.run(server)?));
                scenes.push(self.at_provider(&what, server, self.signing(check), rest));
            }
        }
        scenes.push(self.at_canaille("code", &["dcr"]));
        scenes.push(self.at_canaille("pasted", &["registered"]));
        scenes.push(self.at_mock());
        Ok(scenes)
    }

    fn at_provider(&self, name: &str, served: Served, mut client: Command, rest: &[&str]) -> Scene {
        let mut issuer = self.script("server.mjs");
        let key = self.provider.join(format!("{}.pem", name.replace(' ', "-")));
        issuer.env("CLIENT_METADATA", CLIENT_METADATA).env("CLIENT_DOCUMENT", &self.document);
        issuer.env("MACHINE_KEY", &key);
        client.env("MACHINE_KEY", &key);
        Scene { what: format!("auth oidc-provider {name}"), issuer, served, client, rest: owned(rest) }
    }

    /// Tokens that the server introspects.
    fn opaque(&self) -> Scene {
        let mut server = self.program("guarded-server");
        server.env("INTROSPECT", "/token/introspection guarded guarded-secret");
        let mut scene = self.at_provider("opaque", Served::One(server), self.signing("code"), &["dcr"]);
        scene.issuer.env("OPAQUE", "1");
        scene
    }

    /// Its tokens are JWTs that do not say enough, and are for clients: our server is one of them, and introspects.
    fn at_canaille(&self, check: &str, way: &[&str]) -> Scene {
        let mut issuer = self.canaille.command();
        issuer.arg(self.sources.join("canaille/server.py"));
        let mut server = self.program("guarded-server");
        server.env("AUDIENCE", "guarded").env("INTROSPECT", "/oauth/introspect guarded guarded-secret");
        let (served, client) = (Served::One(server), self.signing(check));
        Scene { what: format!("auth canaille {check}"), issuer, served, client, rest: owned(way) }
    }

    fn at_mock(&self) -> Scene {
        let mut issuer = self.mock.command();
        issuer.arg(self.sources.join("oidc-provider-mock/server.py"));
        let what = "auth oidc-provider-mock".to_owned();
        Scene { what, issuer, served: self.guarded(), client: self.signing("refused"), rest: Vec::new() }
    }

    fn guarded(&self) -> Served {
        Served::One(self.program("guarded-server"))
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.ours.join(name))
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.provider.join(name));
        command
    }

    /// Our client, with one of its checks.
    fn signing(&self, check: &str) -> Command {
        let mut command = self.with_browser(self.program("signing-client"));
        command.env("CLIENT_METADATA", CLIENT_METADATA).arg(check);
        command
    }

    fn with_browser(&self, mut client: Command) -> Command {
        let browser = format!("{} {}", self.node.display(), self.provider.join("browser.mjs").display());
        client.env("BROWSER", browser);
        client
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
