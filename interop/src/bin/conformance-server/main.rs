//! Server for the official conformance suite and for the peers in other languages.
//!
//! `PORT` is the port (`http://127.0.0.1:$PORT/mcp`); `--stdio` serves standard input and output instead.
//! `--stateless` serves clients of the handshake eras without sessions, `--sep-2322` also the tasks of that proposal,
//! and `--undeclared` these to clients that declare nothing.

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
const PNG: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\
    \x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc8``\x00\x00\x02\xd4\x01!:h7\
    \x09\x00\x00\x00\x00IEND\xaeB`\x82";
const WAV: &[u8] = b"RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\
    \x00\x01\x00\x08\x00data\x02\x00\x00\x00\x80\x80";

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
    let server = sealed(server())?;
    let mut server = if told("--undeclared") {
        tasks::keep_undeclared(server)
    } else {
        tasks::keep(server, told("--sep-2322"))
    };
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
