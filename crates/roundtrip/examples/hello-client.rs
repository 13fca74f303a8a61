//! Calls the tool of `hello-server`: `cargo run -p roundtrip --example hello-client [URL]`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::Client;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8000/mcp".into());
    let client = Client::http(url)?;
    for tool in client.list_tools().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let result = client.call_tool("greet", json!({ "name": "Ada" })).await?;
    println!("{}", result.content[0].as_text().unwrap_or_default());
    Ok(())
}
