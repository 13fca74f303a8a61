//! A question that outlives the process that asked it: the first run stores it, the second one answers it.
//! `cargo run -p roundtrip --example resume-elsewhere` starts both, one after the other.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::client::{Pending, Turn};
use roundtrip::wire::CallTool;
use roundtrip::{Ask, Client, Keyring, Server, Tool, ToolError};
use serde_json::json;

async fn publish(ask: Ask) -> Result<&'static str, ToolError> {
    Ok(if ask.confirm("sure", "Publish the report?").await? { "published" } else { "kept back" })
}

/// Each process has a server of its own; what they share is the key.
fn client() -> Result<Client, Box<dyn std::error::Error>> {
    let keys: Keyring = "1111111111111111111111111111111111111111111111111111111111111111".parse()?;
    let server = Server::new("reports", "1.0.0").tool(Tool::new("publish", publish)).seal(keys);
    Ok(Client::in_process(server)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [step, file] if step == "ask" => {
            let Turn::Asked(pending) = client()?.call_tool("publish", json!({})).one_round().await? else {
                return Err("it should have asked".into());
            };
            std::fs::write(file, serde_json::to_vec(&pending)?)?;
            println!("asked; the question is in a file");
        }
        [step, file] if step == "answer" => {
            let pending: Pending<CallTool> = serde_json::from_slice(&std::fs::read(file)?)?;
            let turn = client()?.resume(pending.answer("sure", json!({ "confirm": true }))?).await?;
            let Turn::Done(result) = turn else { return Err("it should be done".into()) };
            println!("answered by another process: {}", result.content[0].as_text().unwrap_or_default());
        }
        _ => {
            let file = std::env::temp_dir().join(format!("resume-elsewhere-{}.json", std::process::id()));
            for step in ["ask", "answer"] {
                std::process::Command::new(std::env::current_exe()?).arg(step).arg(&file).status()?;
            }
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("reports", "1.0.0").tool(Tool::new("publish", publish));
        let call = roundtrip::testing::replay(server).tool("publish", json!({}));
        let result = call.accept("sure", json!({ "confirm": false })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "kept back");
    }
}
