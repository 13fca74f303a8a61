//! `roundtrip demo`: one call over three processes that share nothing but a key, each killed once it has asked.

use std::collections::VecDeque;
use std::error::Error;

use anstyle::AnsiColor;
use roundtrip::client::{Pending, Turn};
use roundtrip::wire::{CallToolResult, ProgressNotificationParams};
use serde_json::json;

use super::instance::Instance;
use super::stage::{self, BOLD, DIM, answer, say};
use crate::output::out;
use crate::printable::printable;

/// Characters of a token that are shown at each end.
const TOKEN_ENDS: usize = 16;

/// Plays the demo. None of its processes outlives it.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let keys = stage::random_hex::<32>()?;
    let mut instances = VecDeque::new();
    for name in ["Ann", "Ben", "Cem"] {
        instances.push_back(Instance::start(name, &keys, None).await?);
    }
    introduce(&instances);
    let asks_here = stage::asks_here();
    let played = play(&mut instances, asks_here).await;
    for instance in instances {
        instance.kill().await?;
    }
    stage::show(&played?);
    stage::try_next(&[
        ("crates/roundtrip-cli/src/demo/instance.rs", "the tool you just called"),
        ("cargo run -- demo --tasks", "the same tool as a task"),
        ("cargo run -p roundtrip --example ask-inline", "ask in one process"),
        ("cargo run -p roundtrip --example resume-elsewhere", "answer from another client"),
        ("docs/manual/rounds.md", "write a tool that asks"),
    ]);
    Ok(())
}

/// Makes the call. Each round goes to the next instance, when those before it are gone.
async fn play(instances: &mut VecDeque<Instance>, asks_here: bool) -> Result<CallToolResult, Box<dyn Error>> {
    let mut at = next(instances)?;
    say("client", AnsiColor::Cyan, &format!("calls book_table at {}", at.name));
    let call = at.client.call_tool("book_table", json!({ "restaurant": "Nopa" }));
    let mut turn = call.on_progress(shown(at.name)).one_round().await?;
    while let Turn::Asked(pending) = turn {
        asked(at.name, &pending)?;
        stage::kill(at).await?;
        let answered = answer(pending, asks_here).await?;
        at = next(instances)?;
        say("client", AnsiColor::Cyan, &format!("takes the answer and the token to {}", at.name));
        turn = at.client.resume(answered).on_progress(shown(at.name)).await?;
    }
    say(at.name, AnsiColor::Green, "is done");
    at.kill().await?;
    match turn {
        Turn::Done(result) => Ok(result),
        _ => Err("the call ended without a result".into()),
    }
}

fn next(instances: &mut VecDeque<Instance>) -> Result<Instance, &'static str> {
    instances.pop_front().ok_or("the call took more rounds than there are instances")
}

fn introduce(instances: &VecDeque<Instance>) {
    out!("{BOLD}One call, three processes.{BOLD:#} They share a key, and nothing else:\n");
    for Instance { name, pid, .. } in instances {
        out!("  {name}  process {pid}");
    }
}

/// Shows that an instance has asked. The token is shown once, since all of them look alike.
fn asked(name: &str, pending: &Pending) -> Result<(), Box<dyn Error>> {
    if pending.round() > 1 {
        say(name, AnsiColor::Green, "has another question, and seals its state again");
        return Ok(());
    }
    // A client never looks into a token; the demo takes it from the flow as it would be stored.
    let stored = serde_json::to_value(pending)?;
    let token = printable(stored["state"].as_str().unwrap_or_default());
    say(name, AnsiColor::Green, "has a question. The client keeps its state, sealed into a token:");
    out!("        {DIM}{}{DIM:#}", shortened(&token));
    Ok(())
}

fn shortened(token: &str) -> String {
    let length = token.chars().count();
    let start: String = token.chars().take(TOKEN_ENDS).collect();
    let end: String = token.chars().skip(length.saturating_sub(TOKEN_ENDS).max(TOKEN_ENDS)).collect();
    format!("{start}...{end} ({length} characters)")
}

/// Returns a hook that shows the progress an instance reports.
fn shown(name: &'static str) -> impl FnMut(ProgressNotificationParams) + Send + 'static {
    move |step| say(name, AnsiColor::Green, &printable(step.message.as_deref().unwrap_or_default()))
}
