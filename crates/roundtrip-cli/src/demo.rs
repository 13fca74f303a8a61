//! `roundtrip demo`: one call over three processes that share nothing but a key, each killed once it has asked.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt::Write as _;
use std::io::IsTerminal;

use anstream::println;
use anstyle::{AnsiColor, Style};
use roundtrip::client::{Answer, Pending, PendingQuestion, Turn};
use roundtrip::wire::{CallToolResult, ProgressNotificationParams};
use serde_json::json;

use crate::instance::Instance;
use crate::printable::printable;
use crate::terminal;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Characters of a token that are shown at each end.
const TOKEN_ENDS: usize = 16;

/// Plays the demo. None of its processes outlives it.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let keys = random_key()?;
    let mut instances = VecDeque::new();
    for name in ["Ann", "Ben", "Cem"] {
        instances.push_back(Instance::start(name, &keys).await?);
    }
    let asks_here = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    introduce(&instances, asks_here);
    let played = play(&mut instances, asks_here).await;
    for instance in instances {
        instance.kill().await?;
    }
    conclude(&played?);
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
        let (name, pid) = (at.name, at.pid);
        let status = at.kill().await?;
        say(name, AnsiColor::Red, &format!("is killed: process {pid} is gone ({status})"));
        println!();
        let answered = answer(pending, asks_here).await?;
        at = next(instances)?;
        println!();
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

/// Answers all questions of a round.
async fn answer(mut pending: Pending, asks_here: bool) -> Result<Pending, Box<dyn Error>> {
    let questions: Vec<String> = pending.questions().map(|question| question.key().to_owned()).collect();
    for key in questions {
        let Some(question) = pending.questions().find(|question| question.key() == key) else { continue };
        let answer = if asks_here { terminal::answer(&question).await? } else { scripted(&question)? };
        pending = pending.give(&key, answer)?;
    }
    Ok(pending)
}

/// Answers where there is nobody to ask, and shows question and answer as a terminal would.
fn scripted(question: &PendingQuestion<'_>) -> Result<Answer, Box<dyn Error>> {
    let (answer, content) = match question.key() {
        "party" => ("2", json!({ "people": 2 })),
        _ => ("2026-12-24", json!({ "date": "2026-12-24" })),
    };
    let schema = question.schema().ok_or("the demo asks for nothing but forms")?;
    println!("> {} {answer}", printable(question.message().unwrap_or_default()));
    Ok(Answer::fill(schema, content)?)
}

/// Returns 32 random bytes in hex.
fn random_key() -> Result<String, getrandom::Error> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    Ok(key.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn introduce(instances: &VecDeque<Instance>, asks_here: bool) {
    println!("{BOLD}One call, three processes.{BOLD:#} They share a key, and nothing else:\n");
    for Instance { name, pid, .. } in instances {
        println!("  {name}  process {pid}");
    }
    let answers = if asks_here {
        "Enter answers a question, Esc declines it."
    } else {
        "(no terminal: answers are scripted)"
    };
    println!("\n{DIM}{answers}{DIM:#}\n");
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
    println!("        {DIM}{}{DIM:#}", shortened(&token));
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

fn conclude(result: &CallToolResult) {
    let text = result.content.first().and_then(|content| content.as_text()).unwrap_or_default();
    println!("\n  {BOLD}{}{BOLD:#}\n", printable(text));
    println!("Try next:\n");
    for (what, why) in [
        ("crates/roundtrip-cli/src/instance.rs", "the tool you just called"),
        ("cargo run -p roundtrip --example ask-inline", "ask in one process"),
        ("cargo run -p roundtrip --example resume-elsewhere", "answer from another client"),
        ("docs/manual/rounds.md", "write a tool that asks"),
    ] {
        println!("  {what:<50} {DIM}{why}{DIM:#}");
    }
}

fn say(who: &str, colour: AnsiColor, what: &str) {
    let style = Style::new().fg_color(Some(colour.into()));
    println!("{style}{who:<7}{style:#} {what}");
}
