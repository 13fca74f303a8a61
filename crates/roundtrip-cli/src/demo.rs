//! `roundtrip demo`: what an MCP server and its client say to each other.

use std::error::Error;

use anstream::println;
use roundtrip::{Args, Client, InProcess, Json, Progress, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::wire::Shown;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Where to eat
    restaurant: String,
    /// How many people come
    #[schemars(range(min = 1, max = 12))]
    people: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Table {
    restaurant: String,
    people: u8,
    table: u8,
}

async fn book(Args(Booking { restaurant, people }): Args<Booking>, progress: Progress) -> Json<Table> {
    progress.report((1, 2, "asking the restaurant"));
    tokio::task::yield_now().await;
    progress.report((2, 2, "writing it down"));
    Json(Table { restaurant, people, table: 7 })
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let server = Server::new("bookings", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("book_table", book).description("Book a table"));
    let client = Client::new(Shown(InProcess::new(server.build()?))).info("demo", env!("CARGO_PKG_VERSION"));

    heading("What tools are there?");
    let tools = client.list_tools().await?;
    println!("  {} tool: {}\n", tools.len(), tools[0].name);

    heading("Book a table, and tell me how it goes.");
    let call = client.call_tool("book_table", json!({ "restaurant": "Nopa", "people": 2 })).on_progress(drop);
    let table: Table = call.await?.structured_content.ok_or("the table should be structured")?.to()?;
    println!("  table {} for {} at {}\n", table.table, table.people, table.restaurant);

    heading("Book a table for thirteen: the schema says no, and the model can read why.");
    let refused = client.call_tool("book_table", json!({ "restaurant": "Nopa", "people": 13 })).await?;
    println!("  {}", refused.content[0].as_text().unwrap_or_default());
    Ok(())
}

fn heading(text: &str) {
    let bold = anstyle::Style::new().bold();
    println!("{bold}{text}{bold:#}");
}
