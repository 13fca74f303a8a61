//! Two instances, one flow, and keys that are rotated under it: `cargo run -p roundtrip --example key-rotation`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::client::Turn;
use roundtrip::{Ask, Client, Keyring, Server, Tool, ToolError};
use serde_json::json;

const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222222222222222222222222222";

async fn delete(ask: Ask) -> Result<&'static str, ToolError> {
    Ok(if ask.confirm("sure", "Delete everything?").await? { "deleted" } else { "kept" })
}

/// An instance with these keys: the first one seals, all of them open.
fn instance(keys: &str) -> Result<Client, Box<dyn std::error::Error>> {
    let keys: Keyring = keys.parse()?;
    Ok(Client::in_process(Server::new("files", "1.0.0").tool(Tool::new("delete", delete)).seal(keys))?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let phases = [
        ("before", OLD.to_owned()),
        ("the new key opens", format!("{OLD},{NEW}")),
        ("the new key seals", format!("{NEW},{OLD}")),
        ("the old key is gone", NEW.to_owned()),
    ];
    // An instance of one phase asks, an instance of the next phase is answered.
    for ((asks, old), (answers, new)) in phases.iter().zip(&phases[1..]) {
        let turn = instance(old)?.call_tool("delete", json!({})).one_round().await?;
        let Turn::Asked(pending) = turn else { return Err("it should have asked".into()) };
        let turn = instance(new)?.resume(pending.answer("sure", json!({ "confirm": true }))?).await?;
        let Turn::Done(result) = turn else { return Err("it should be done".into()) };
        println!("asked {asks:?}, answered {answers:?}: {}", result.content[0].as_text().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("files", "1.0.0").tool(Tool::new("delete", delete));
        let call = roundtrip::testing::replay(server).tool("delete", json!({}));
        let result = call.accept("sure", json!({ "confirm": false })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "kept");
    }
}
