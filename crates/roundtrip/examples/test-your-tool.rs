//! Careless tools and a careful one, and what the replay harness has to say about each.
//! `cargo run -p roundtrip --example test-your-tool`.

#![expect(clippy::print_stdout, reason = "it shows what it found")]

use std::time::{SystemTime, UNIX_EPOCH};

use roundtrip::testing::{Effects, replay};
use roundtrip::{Ask, Caller, Principal, Server, State, Tool, ToolError};
use serde_json::json;

/// Sends before it asks: a replay sends again.
async fn sends_again(ask: Ask, State(mail): State<Effects>) -> Result<&'static str, ToolError> {
    mail.happened("mail");
    Ok(if ask.confirm("again", "Send another one?").await? { "sent two" } else { "sent one" })
}

/// Asks for something else in every run: no answer counts for the next.
async fn asks_again(ask: Ask) -> Result<&'static str, ToolError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(if ask.confirm("again", format!("It is {now}. Send it?")).await? { "sent" } else { "not sent" })
}

/// Returns what a step made in the last round: when the reply is lost, that round runs again, and the step with it.
async fn replies_again(ask: Ask) -> Result<String, ToolError> {
    ask.confirm("again", "Send it?").await?;
    let now = ask.remember("now", async || SystemTime::now()).await?;
    Ok(format!("sent at {now:?}"))
}

/// Sends inside of a step: a replay finds that it has been sent.
async fn careful(ask: Ask, caller: Caller, State(mail): State<Effects>) -> Result<String, ToolError> {
    ask.remember("mail", async || mail.happened("mail")).await?;
    let sent = if ask.confirm("again", "Send another one?").await? { "two" } else { "one" };
    Ok(format!("{} sent {sent}", caller.principal.map(|who| who.to_string()).unwrap_or_default()))
}

#[tokio::main]
async fn main() {
    let tools = [
        Tool::new("sends_again", sends_again),
        Tool::new("asks_again", asks_again),
        Tool::new("replies_again", replies_again),
        Tool::new("careful", careful),
    ];
    for (tool, name) in tools.into_iter().zip(["sends_again", "asks_again", "replies_again", "careful"]) {
        let effects = Effects::new();
        let server = Server::new("mail", "1.0.0").tool(tool).state(effects.clone());
        let call = replay(server).tool(name, json!({})).principal(Principal::new("ada"));
        match call.accept("again", json!({ "confirm": false })).effects(&effects).await {
            Ok(result) => println!("{name}: {}", result["content"][0]["text"]),
            Err(problem) => println!("{name}: {problem}"),
        }
    }
}
