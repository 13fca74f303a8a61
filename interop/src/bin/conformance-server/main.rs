//! Server for the official conformance suite and for the peers in other languages.
//!
//! `PORT` is the port (`http://127.0.0.1:$PORT/mcp`); `--stdio` serves standard input and output instead.
//! `--stateless` serves clients of the handshake eras without sessions, `--sep-2322` also the tasks of that proposal.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

mod asking;
mod handshake;
mod prompts;
mod resources;
mod tasks;
mod tools;

use roundtrip::server::KeysError;
use roundtrip::{Handshake, Keyring, Server};

/// A picture of one pixel, and a silent wave file.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGM4YGAAAALUASE6aDcJAAAAAElFTkSuQmCC";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";

fn server() -> Server {
    let server = Server::new("roundtrip-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("Fixtures for the conformance suite of the Model Context Protocol");
    tasks::offer(handshake::offer(asking::offer(resources::offer(prompts::offer(tools::offer(server))))))
}

/// Sets the keys of `ROUNDTRIP_KEYS`, if present, so that several processes can finish each other's flows.
fn sealed(server: Server) -> Result<Server, KeysError> {
    match std::env::var_os("ROUNDTRIP_KEYS") {
        Some(_) => Ok(server.seal(Keyring::from_env("ROUNDTRIP_KEYS")?)),
        None => Ok(server),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let told = |flag: &str| std::env::args().any(|argument| argument == flag);
    let mut server = tasks::keep(sealed(server())?, told("--sep-2322"));
    if told("--stateless") {
        server = server.handshake(Handshake::stateless());
    }
    if told("--stdio") {
        return Ok(server.serve_stdio().await?);
    }
    let port = std::env::var("PORT").unwrap_or_else(|_| "3001".into()).parse()?;
    let bound = server.into_http()?.bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/mcp", bound.local_addr()?);
    Ok(bound.await?)
}
