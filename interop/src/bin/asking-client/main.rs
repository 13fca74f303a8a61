//! Our client against an asking server on another SDK: it answers in every way, and checks the questions and the
//! outcomes.
//!
//! A server of the handshake eras asks by requests of its own, which the call site does not notice; features it
//! lacks, such as keys of questions, are not checked.
//!
//! `asking-client http URL`, or `asking-client stdio COMMAND [ARGUMENT ..]`. Prints one line per check; the last line
//! is `N passed, M failed`.

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
