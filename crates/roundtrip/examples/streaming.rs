//! A result that comes in parts, with a question between them: `cargo run -p roundtrip --example streaming`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Ask, Client, FormRequest, Parts, Server, Tool, ToolError};
use serde_json::json;

const STORY: [&str; 3] = ["A crate ", "was lost ", "at sea. "];

/// Sends each piece as it is there. The client that asks for parts sees them at once; every other gets the whole.
async fn story(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
    for piece in STORY {
        out.text(piece).await;
    }
    if ask.confirm("happy", "Shall it end well?").await? {
        out.text("It was found.").await;
    }
    Ok(out)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("library", "1.0.0").tool(Tool::new("story", story));
    let client = Client::in_process(server)?
        .on_form(async |form: FormRequest| form.accept(json!({ "confirm": true })));

    let mut parts = client.call_tool("story", ()).parts();
    while let Some(part) = parts.next().await {
        println!("part: {:?}", part.as_text().unwrap_or_default());
    }
    println!("whole: {}", parts.result().await?.text());

    println!("without parts: {}", client.call_tool("story", ()).await?.text());
    Ok(())
}
