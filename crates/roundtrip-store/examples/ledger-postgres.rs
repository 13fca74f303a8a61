//! Two instances that share a ledger in PostgreSQL: one answer, sent to both, pays once.
//! `DATABASE_URL=postgres://.. cargo run -p roundtrip-store --features postgres --example ledger-postgres`.

#![expect(clippy::print_stdout, reason = "it shows what happened")]

use roundtrip::client::Turn;
use roundtrip::testing::Effects;
use roundtrip::{Ask, Client, Keyring, Server, State, Tool, ToolError};
use roundtrip_store::Postgres;
use serde_json::json;

/// Stands for keys in a file or a variable: `openssl rand -hex 32`.
const KEYS: &str = "5f1d0c7a9e3b48624d8ac1f09b7e3562c0d4a81f6e2b9375184cde60af72b93d";

async fn pay(ask: Ask, State(bank): State<Effects>) -> Result<&'static str, ToolError> {
    if !ask.confirm("sure", "Pay 100?").await? {
        return Ok("not paid");
    }
    bank.happened("payment"); // not in `once`, to show what the ledger does
    Ok("paid")
}

/// Makes an instance of the service. In earnest each is a process of its own.
async fn instance(url: &str, bank: &Effects) -> Result<Client, Box<dyn std::error::Error>> {
    let store = Postgres::connect(url).sealed_by(KEYS.parse()?).await?;
    let server = Server::new("shop", "1.0.0").tool(Tool::new("pay", pay)).state(bank.clone());
    Ok(Client::in_process(server.seal(KEYS.parse::<Keyring>()?).ledger(store))?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")
        .map_err(|_| "DATABASE_URL is not set: postgres://user@host/database")?;
    let bank = Effects::new();
    let (one, other) = (instance(&url, &bank).await?, instance(&url, &bank).await?);

    let Turn::Asked(pending) = one.call_tool("pay", json!({})).one_round().await? else {
        return Err("it should have asked".into());
    };
    let answered = pending.answer("sure", json!({ "confirm": true }))?;
    for client in [&one, &other, &one] {
        let Turn::Done(result) = client.resume(answered.clone()).await? else {
            return Err("not done".into());
        };
        println!("{}", result.content[0].as_text().unwrap_or_default());
    }
    println!("{} payment", bank.count("payment"));
    Ok(())
}
