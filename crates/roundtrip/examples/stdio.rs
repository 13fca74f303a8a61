//! A server on standard input and output, and a client that starts it: `cargo run -p roundtrip --example stdio`.

#![expect(clippy::print_stdout, reason = "the client shows what it got; the server prints nothing")]

use roundtrip::{Args, Client, Server, Tool};
use serde_json::json;
use tokio::process::Command;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(Args(Add { a, b }): Args<Add>) -> String {
    (a + b).to_string()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(Server::new("adder", "1.0.0").tool(Tool::new("add", add)).serve_stdio().await?);
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve");
    let client = Client::stdio(command);
    let sum = client.call_tool("add", json!({ "a": 40, "b": 2 })).await?;
    println!("40 + 2 = {}", sum.content[0].as_text().unwrap_or_default());
    client.close().await;
    Ok(())
}
