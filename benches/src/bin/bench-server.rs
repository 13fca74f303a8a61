//! Server under measurement: `bench-server http PORT [--tools N]` or `bench-server stdio`.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::borrow::Cow;

use roundtrip::wire::ToolAnnotations;
use roundtrip::{Args, Ask, Form, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say
    text: String,
}

async fn echo(Args(Echo { text }): Args<Echo>) -> String {
    text
}

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    service: String,
    env: String,
    #[serde(default = "once")]
    rounds: u32,
}

fn once() -> u32 {
    1
}

#[derive(Form)]
struct Confirm {
    approve: bool,
    reason: String,
}

/// Asks as many questions as its arguments say, one per round.
async fn deploy(Args(Deploy { service, env, rounds }): Args<Deploy>, ask: Ask) -> Result<String, ToolError> {
    let mut last_reason = String::new();
    // The same in every round, as everything before a question should be that a replay comes by again.
    let message = format!("Deploy {service} to {env}?");
    for round in 1..=rounds {
        let key = if round == 1 { Cow::Borrowed("confirm") } else { Cow::Owned(format!("confirm-{round}")) };
        let Confirm { approve, reason } = ask.form(key, message.clone()).await?;
        if !approve {
            return Err(ToolError::new(format!("not deployed: {reason}")));
        }
        last_reason = reason;
    }
    Ok(format!("deployed {service} to {env} after {rounds} answers: {last_reason}"))
}

fn server(fillers: usize) -> Server {
    let server = Server::new("bench-server", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("echo", echo).description("Say what was said"))
        .tool(Tool::new("deploy", deploy).description("Deploy a service, once it is confirmed"))
        .max_rounds(100);
    (0..fillers).fold(server, |server, number| {
        let hints = ToolAnnotations { read_only_hint: Some(true), ..ToolAnnotations::default() };
        let filler =
            Tool::new(format!("filler_{number}"), echo).description("Takes up room").annotations(hints);
        server.tool(filler)
    })
}

/// Runs on one thread, because the cost of a call is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (fillers, words) = match words.as_slice() {
        [rest @ .., "--tools", number] => (number.parse()?, rest),
        all => (0, all),
    };
    match words {
        ["http", port] => {
            let bound = server(fillers).into_http()?.bind(("127.0.0.1", port.parse()?)).await?;
            println!("listening on {}", bound.local_addr()?);
            bound.await?;
        }
        ["stdio"] => server(fillers).serve_stdio().await?,
        _ => return Err("usage: bench-server http PORT [--tools N] | bench-server stdio".into()),
    }
    Ok(())
}
