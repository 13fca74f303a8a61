//! `roundtrip serve`: a server with one of everything, to try clients with.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use roundtrip::{Keyring, Server};
use serde_json::{Value, json};

use crate::demo::everything;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, out};

/// Serve a demo of everything that a tool can ask
#[derive(Args)]
#[command(after_help = "Examples:\n  roundtrip serve\n  roundtrip list -- roundtrip serve --stdio\n  \
                        roundtrip serve --stdio --print-config claude")]
pub(crate) struct Serve {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    http: String,
    /// Serve on standard input and output instead
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Keys that seal its flows: a file, or `env:NAME`; random ones otherwise
    #[arg(long, value_name = "KEYS")]
    keys: Option<String>,
    /// Print how a client is told of this server, and do not serve
    #[arg(long, value_name = "CLIENT")]
    print_config: Option<Config>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Config {
    Claude,
    Cursor,
    Vscode,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if let Some(client) = self.print_config {
            output::json(&self.config(client)?);
            return Ok(());
        }
        let server = everything::server();
        let server = match self.keys.as_deref() {
            Some(place) => server.seal(keyring(place)?),
            None => server,
        };
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
        if self.stdio {
            let served = async { server.serve_stdio().await.map_err(|error| failed(&error)) };
            return interrupt::until(None, served).await;
        }
        self.listen(server).await
    }

    async fn listen(&self, server: Server) -> Result<(), Failure> {
        let http = server.into_http().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let cannot =
            |error: &dyn std::fmt::Display| Failure::usage(format!("`--http {}`: {error}", self.http));
        let bound = http.bind(&self.http).await.map_err(|error| cannot(&error))?;
        let address = bound.local_addr().map_err(|error| cannot(&error))?;
        // Whoever reads the address may end the server at once.
        let ended = interrupt::ended();
        out!("http://{address}/mcp");
        if output::is_broken() {
            return Ok(());
        }
        bound.until(ended).await.map_err(|error| Failure::new(Exit::Failed, error.to_string()))
    }

    /// Returns the entry of a client's configuration file.
    fn config(&self, client: Config) -> Result<Value, Failure> {
        let program =
            std::env::current_exe().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let mut server = if self.stdio {
            let mut args = vec!["serve".to_owned(), "--stdio".to_owned()];
            if let Some(keys) = &self.keys {
                args.extend(["--keys".to_owned(), from_anywhere(keys)]);
            }
            json!({ "command": program, "args": args })
        } else {
            json!({ "url": format!("http://{}/mcp", reachable(&self.http)) })
        };
        let (place, has_type) = match client {
            Config::Claude => ("mcpServers", true),
            Config::Cursor => ("mcpServers", false),
            Config::Vscode => ("servers", true),
        };
        if has_type {
            server["type"] = if self.stdio { "stdio" } else { "http" }.into();
        }
        Ok(json!({ place: { "roundtrip-demo": server } }))
    }
}

/// Returns the place of keys for a process in another folder.
fn from_anywhere(keys: &str) -> String {
    if keys.starts_with("env:") {
        return keys.to_owned();
    }
    std::path::absolute(keys).map_or_else(|_| keys.to_owned(), |file| file.display().to_string())
}

/// Returns an address for clients on this machine: nothing connects to "any address".
fn reachable(address: &str) -> String {
    match address.parse::<SocketAddr>() {
        Ok(SocketAddr::V4(any)) if any.ip().is_unspecified() => format!("127.0.0.1:{}", any.port()),
        Ok(SocketAddr::V6(any)) if any.ip().is_unspecified() => format!("[::1]:{}", any.port()),
        _ => address.to_owned(),
    }
}

fn keyring(place: &str) -> Result<Keyring, Failure> {
    let keyring = match place.strip_prefix("env:") {
        Some(name) => Keyring::from_env(name),
        None => Keyring::from_file(place),
    };
    keyring.map_err(|error| Failure::usage(error.to_string()))
}
