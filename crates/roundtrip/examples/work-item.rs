//! The work item of SEP-2322, inline and by hand: `cargo run -p roundtrip --example work-item`.
//!
//! A bug that is resolved needs a resolution, and a duplicate needs the number of the original as well.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Ask, Choice, Client, Form, Question, Reply, Round, Server, Tool, ToolError};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bug {
    /// Number of the bug to resolve
    id: u32,
}

#[derive(Choice)]
#[choice(rename_all = "kebab-case")]
enum Resolution {
    Fixed,
    WontFix,
    Duplicate,
    ByDesign,
}

#[derive(Form)]
struct Resolved {
    resolution: Resolution,
}

#[derive(Form)]
struct Original {
    /// Number of the bug that was there first
    #[form(min = 1)]
    id: u32,
}

const WHICH: &str = "Which bug is it a duplicate of?";

fn how(bug: &Bug) -> String {
    format!("How was bug {} resolved?", bug.id)
}

fn report(bug: &Bug, resolution: &Resolution, original: Option<&Original>) -> String {
    let of = original.map(|original| format!(" of bug {}", original.id)).unwrap_or_default();
    format!("bug {}: {}{of}", bug.id, resolution.value())
}

/// The questions stand where their answers are needed.
async fn inline(Args(bug): Args<Bug>, ask: Ask) -> Result<String, ToolError> {
    let Resolved { resolution } = ask.form("resolution", how(&bug)).await?;
    let original: Option<Original> = match resolution {
        Resolution::Duplicate => Some(ask.form("original", WHICH).await?),
        Resolution::Fixed | Resolution::WontFix | Resolution::ByDesign => None,
    };
    Ok(report(&bug, &resolution, original.as_ref()))
}

/// The same rounds without a replay: each looks at the answers so far, and returns the next question.
async fn by_hand(Args(bug): Args<Bug>, round: Round) -> Result<Reply, ToolError> {
    let Some(Resolved { resolution }) = round.answer("resolution")? else {
        return Ok(round.ask([Question::form::<Resolved>("resolution", how(&bug))]));
    };
    let original: Option<Original> = round.answer("original")?;
    if matches!(resolution, Resolution::Duplicate) && original.is_none() {
        return Ok(round.ask([Question::form::<Original>("original", WHICH)]));
    }
    Ok(Reply::text(report(&bug, &resolution, original.as_ref())))
}

fn server() -> Server {
    Server::new("work-items", "1.0.0")
        .tool(Tool::new("inline", inline).description("Resolve a bug"))
        .tool(Tool::new("by_hand", by_hand).description("Resolve a bug"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::in_process(server())?.on_form(async |form| {
        println!("round {}: {}", form.origin.round, form.message);
        match form.origin.key.as_str() {
            "resolution" => form.accept(json!({ "resolution": "duplicate" })),
            _ => form.accept(json!({ "id": 4301 })),
        }
    });
    for tool in ["inline", "by_hand"] {
        let result = client.call_tool(tool, json!({ "id": 4522 })).await?;
        println!("{tool}: {}", result.content[0].as_text().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_survive_a_replay_with_the_same_result() {
        for tool in ["inline", "by_hand"] {
            let call = roundtrip::testing::replay(server()).tool(tool, json!({ "id": 4522 }));
            let script = call
                .accept("resolution", json!({ "resolution": "duplicate" }))
                .accept("original", json!({ "id": 4301 }));
            let result = script.await.unwrap();
            assert_eq!(result["content"][0]["text"], "bug 4522: duplicate of bug 4301", "{tool}");
        }
    }

    #[tokio::test]
    async fn what_is_fixed_is_not_asked_for_an_original() {
        for tool in ["inline", "by_hand"] {
            let call = roundtrip::testing::replay(server()).tool(tool, json!({ "id": 7 }));
            let result = call.accept("resolution", json!({ "resolution": "fixed" })).await.unwrap();
            assert_eq!(result["content"][0]["text"], "bug 7: fixed", "{tool}");
        }
    }
}
