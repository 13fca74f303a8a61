//! Progress during a call, and a stream of changes: `cargo run -p roundtrip --example notifications`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Catalog, Client, Progress, Server, Tool, ToolError};
use serde_json::json;

async fn bake(progress: Progress) -> &'static str {
    for (step, name) in ["kneading", "rising", "baking"].into_iter().enumerate() {
        progress.report((step as f64 + 1.0, 3, name));
        tokio::task::yield_now().await;
    }
    "bread"
}

/// Offers another tool while the server runs, and tells clients that listen.
async fn learn(catalog: Catalog) -> Result<&'static str, ToolError> {
    catalog.add(Tool::new("fry", async || "an egg").description("Learnt just now"))?;
    Ok("learnt to fry")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::new("kitchen", "1.0.0").tool(Tool::new("bake", bake)).tool(Tool::new("learn", learn));
    let client = Client::in_process(server)?;

    let bread = client.call_tool("bake", json!({})).on_progress(|step| {
        println!("{} of {:?}: {}", step.progress, step.total, step.message.unwrap_or_default());
    });
    println!("got {}", bread.await?.content[0].as_text().unwrap_or_default());

    let mut changes = client.listen().tools().await?;
    client.call_tool("learn", json!({})).await?;
    if let Some(change) = changes.next().await {
        println!("changed: {:?}", change?);
    }
    println!("{} tools now", client.list_tools().await?.len());
    Ok(())
}
