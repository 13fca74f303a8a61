//! Shared by the demos: their lines, their keys, and answers to their questions.

use std::error::Error;
use std::fmt::Write as _;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use roundtrip::client::{Answer, Pending, PendingQuestion};
use roundtrip::wire::CallToolResult;
use serde_json::json;

use super::instance::Instance;
use crate::ask::form;
use crate::output::out;
use crate::printable::printable;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// Returns whether there is a terminal to ask in, and says how answers are given.
pub(crate) fn asks_here() -> bool {
    let asks_here = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let answers = if asks_here {
        "Enter answers a question, Esc declines it."
    } else {
        "(no terminal: answers are scripted)"
    };
    out!("\n{DIM}{answers}{DIM:#}\n");
    asks_here
}

/// Prints a line of the client or of an instance.
pub(crate) fn say(who: &str, colour: AnsiColor, what: &str) {
    let style = Style::new().fg_color(Some(colour.into()));
    out!("{style}{who:<7}{style:#} {what}");
}

/// Kills an instance that has asked, and says so.
pub(crate) async fn kill(instance: Instance) -> std::io::Result<()> {
    let (name, pid) = (instance.name, instance.pid);
    let status = instance.kill().await?;
    say(name, AnsiColor::Red, &format!("is killed: process {pid} is gone ({status})"));
    out!("");
    Ok(())
}

/// Answers all questions of a round.
pub(crate) async fn answer(mut pending: Pending, asks_here: bool) -> Result<Pending, Box<dyn Error>> {
    let questions: Vec<String> = pending.questions().map(|question| question.key().to_owned()).collect();
    for key in questions {
        let Some(question) = pending.questions().find(|question| question.key() == key) else { continue };
        let answer = if asks_here { form::answer(&question).await? } else { scripted(&question)? };
        pending = pending.give(&key, answer)?;
    }
    out!("");
    Ok(pending)
}

/// Answers where there is nobody to ask, and shows question and answer as a terminal would.
fn scripted(question: &PendingQuestion<'_>) -> Result<Answer, Box<dyn Error>> {
    let (answer, content) = match question.key() {
        "party" => ("2", json!({ "people": 2 })),
        _ => ("2026-12-24", json!({ "date": "2026-12-24" })),
    };
    let schema = question.schema().ok_or("the demo asks for nothing but forms")?;
    out!("> {} {answer}", printable(question.message().unwrap_or_default()));
    Ok(Answer::fill(schema, content)?)
}

/// Returns random bytes in hex.
pub(crate) fn random_hex<const N: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Prints the result of the call.
pub(crate) fn show(result: &CallToolResult) {
    let text = result.content.first().and_then(|content| content.as_text()).unwrap_or_default();
    out!("\n  {BOLD}{}{BOLD:#}\n", printable(text));
}

/// Prints where to go from here.
pub(crate) fn try_next(next: &[(&str, &str)]) {
    out!("Try next:\n");
    for (what, why) in next {
        out!("  {what:<50} {DIM}{why}{DIM:#}");
    }
}
