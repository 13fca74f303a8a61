//! A round whose reply was lost on the way, sent again: without a ledger its step runs twice, with one it does not.
//! `cargo run -p roundtrip --example once-and-ledger`.

#![expect(clippy::print_stdout, reason = "it shows what happened")]

use roundtrip::client::Turn;
use roundtrip::testing::Effects;
use roundtrip::{Ask, Client, MemoryLedger, Server, State, Tool, ToolError};
use serde_json::json;

async fn pay(ask: Ask, State(bank): State<Effects>) -> Result<&'static str, ToolError> {
    if !ask.confirm("sure", "Pay 100?").await? {
        return Ok("not paid");
    }
    ask.remember("pay", async || bank.happened("payment")).await?;
    Ok("paid")
}

/// Asks, and sends the same answer twice, as a client does whose connection broke before the reply came.
async fn pay_twice(server: Server) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::in_process(server)?;
    let Turn::Asked(pending) = client.call_tool("pay", json!({})).one_round().await? else {
        return Err("it should have asked".into());
    };
    let answered = pending.answer("sure", json!({ "confirm": true }))?;
    for _ in 0..2 {
        let Turn::Done(result) = client.resume(answered.clone()).await? else {
            return Err("not done".into());
        };
        assert_eq!(result.content[0].as_text(), Some("paid"));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shop = |bank: &Effects| Server::new("shop", "1.0.0").tool(Tool::new("pay", pay)).state(bank.clone());

    let bank = Effects::new();
    pay_twice(shop(&bank)).await?;
    println!("without a ledger: {} payments", bank.count("payment"));

    let bank = Effects::new();
    pay_twice(shop(&bank).ledger(MemoryLedger::new())).await?;
    println!("with a ledger: {} payment", bank.count("payment"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let bank = Effects::new();
        let server = Server::new("shop", "1.0.0").tool(Tool::new("pay", pay)).state(bank.clone());
        let call = roundtrip::testing::replay(server).tool("pay", json!({})).effects(&bank);
        let result = call.accept("sure", json!({ "confirm": true })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "paid");
    }
}
