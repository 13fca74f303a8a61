//! Our client against a server that asks, written on another SDK: it answers in every way there is, and checks what
//! was asked and what came of it.
//!
//! A server of the handshake eras asks by requests of its own, which no call site notices; what it cannot do, such as to
//! name its questions, is not looked for.
//!
//! `asking-client http URL`, or `asking-client stdio COMMAND [ARGUMENT ..]`. One line a check; the last line says
//! `N passed, M failed`.

#![expect(clippy::print_stdout, reason = "it says what it checked")]

mod answered;
mod by_hand;
mod refused;
mod report;
mod user;

use std::process::{Command, ExitCode};

use report::{Failure, Report};
use roundtrip::Client;
use roundtrip::wire::ProtocolVersion;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = match arguments.as_slice() {
        ["http", url] => Client::http(*url)?,
        ["stdio", program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest);
            Client::stdio(command)
        }
        _ => return Err("usage: asking-client http URL | stdio COMMAND [ARGUMENT ..]".into()),
    };
    let client = client.info("asking-client", env!("CARGO_PKG_VERSION"));
    let found = client.discover().await?;
    let handshake =
        !found.supported_versions.iter().any(|version| version == ProtocolVersion::LATEST.as_str());
    let mut report = Report::default();
    answered::check(&mut report, &client, handshake).await;
    refused::check(&mut report, &client, handshake).await;
    by_hand::check(&mut report, &client, handshake).await;
    client.close().await;
    Ok(report.conclude())
}
