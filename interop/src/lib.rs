//! Parts that our clients for servers on other SDKs share: connecting, answering questions, and reporting checks.

#![expect(clippy::print_stdout, reason = "a report is printed")]

pub mod asking;
pub mod browser;
pub mod report;
pub mod user;

use std::process::Command;

use report::Failure;
use roundtrip::Client;
use roundtrip::wire::ProtocolVersion;

/// Connects to the server of the command line: `http URL`, or `stdio COMMAND [ARGUMENT ..]`. The second value tells
/// whether the server has nothing newer than a revision with a handshake.
///
/// # Errors
/// A command line that makes no sense, and a server that does not answer.
pub async fn connect(name: &str) -> Result<(Client, bool), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = match arguments.as_slice() {
        ["http", url] => Client::http(*url)?,
        ["stdio", program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest);
            Client::stdio(command)
        }
        _ => return Err(format!("usage: {name} http URL | stdio COMMAND [ARGUMENT ..]").into()),
    };
    let client = client.info(name, env!("CARGO_PKG_VERSION"));
    let found = client.discover().await?;
    let newest = ProtocolVersion::LATEST.as_str();
    Ok((client, !found.supported_versions.iter().any(|version| version == newest)))
}
