//! A careless tool and a careful one, and what the replay harness has to say about each.
//! `cargo run -p roundtrip --example test-your-tool`.

#![expect(clippy::print_stdout, reason = "it shows what it found")]

use roundtrip::testing::{Effects, replay};
use roundtrip::{Ask, Server, State, Tool, ToolError};
use serde_json::json;

/// Sends before it asks: a replay sends again.
async fn careless(ask: Ask, State(mail): State<Effects>) -> Result<&'static str, ToolError> {
    mail.happened("mail");
    Ok(if ask.confirm("again", "Send another one?").await? { "sent two" } else { "sent one" })
}

/// Sends inside of a step: a replay finds that it has been sent.
async fn careful(ask: Ask, State(mail): State<Effects>) -> Result<&'static str, ToolError> {
    ask.remember("mail", async || mail.happened("mail")).await?;
    Ok(if ask.confirm("again", "Send another one?").await? { "sent two" } else { "sent one" })
}

#[tokio::main]
async fn main() {
    for (name, tool) in [("careless", Tool::new("send", careless)), ("careful", Tool::new("send", careful))] {
        let effects = Effects::new();
        let server = Server::new("mail", "1.0.0").tool(tool).state(effects.clone());
        let script = replay(server).tool("send", json!({})).accept("again", json!({ "confirm": false }));
        match script.effects(&effects).await {
            Ok(result) => println!("{name}: {}", result["content"][0]["text"]),
            Err(problem) => println!("{name}: {problem}"),
        }
    }
}
