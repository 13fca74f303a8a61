//! Our client, signing in at published authorization servers.
//!
//! `signing-client CHECK URL [ARGUMENT ..]`, with `ISSUER`, the authorization server, and `BROWSER`, the command that signs the
//! person in. Prints one line per check; the last line is `N passed, M failed`. Some checks start this program again, as a
//! process that shares their store.

#![expect(clippy::print_stdout, reason = "parts of checks tell what they got")]

mod alone;
mod code;
mod issuer;
mod person;
mod processes;
mod rounds;

use std::process::ExitCode;

use roundtrip::oauth::ClientMetadataUrl;
use roundtrip::wire::CallToolResult;
use roundtrip::{Client, Error};
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match words[..] {
        ["code", url, way] => code::check(&mut report, url, way).await?,
        ["calls", url, way] => code::calls(&mut report, url, way).await?,
        ["pasted", url, way] => code::pasted(&mut report, url, way).await?,
        ["refused", url] => code::refused(&mut report, url).await?,
        ["machine", url] => alone::machine(&mut report, url).await?,
        ["foreign", url] => alone::foreign(&mut report, url).await?,
        ["device", url] => alone::device(&mut report, url).await?,
        ["dpop", url] => alone::bound(&mut report, url).await?,
        ["processes", url] => processes::one_exchange(&mut report, url).await?,
        ["elsewhere", url] => processes::finished_elsewhere(&mut report, url).await?,
        ["rounds", url] => rounds::check(&mut report, url).await?,
        ["document", url] => {
            println!(
                "{}",
                ClientMetadataUrl::parse(url)?.document("Roundtrip", &["http://127.0.0.1/callback"])
            );
            return Ok(ExitCode::SUCCESS);
        }
        ["part", part, url, store] => return processes::part(part, url, store).await,
        _ => return Err(format!("no such check: {words:?}").into()),
    }
    Ok(report.conclude())
}

/// Calls a tool without arguments. Returns its text.
async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    Ok(CallToolResult::text(&client.call_tool(tool, json!({})).await?))
}

/// Checks who the server says is calling.
async fn is_called(client: &Client, name: &str) -> Result<(), Failure> {
    let said = call(client, "whoami").await?;
    expect(said == name, || format!("the server says that {said} is calling"))
}
