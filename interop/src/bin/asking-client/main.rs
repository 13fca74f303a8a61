//! Our client against an asking server on another SDK: it answers in every way, and checks the questions and the
//! outcomes.
//!
//! A server of the handshake eras asks by requests of its own, which the call site does not notice; features it
//! lacks, such as keys of questions, are not checked.
//!
//! `asking-client http URL`, or `asking-client stdio COMMAND [ARGUMENT ..]`. Prints one line per check; the last line
//! is `N passed, M failed`.

mod answered;
mod by_hand;
mod refused;

use std::process::ExitCode;

use roundtrip_interop::connect;
use roundtrip_interop::report::{Failure, Report};

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let (client, handshake) = connect("asking-client").await?;
    let mut report = Report::default();
    answered::check(&mut report, &client, handshake).await;
    refused::check(&mut report, &client, handshake).await;
    by_hand::check(&mut report, &client, handshake).await;
    client.close().await;
    Ok(report.conclude())
}
