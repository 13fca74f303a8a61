//! A client that stops at each question, with no handler at all: `cargo run -p roundtrip --example client-by-hand`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::client::Turn;
use roundtrip::{Ask, Client, Form, Server, Tool, ToolError};
use serde_json::json;

#[derive(Form)]
struct Party {
    people: u8,
}

async fn book(ask: Ask) -> Result<String, ToolError> {
    let Party { people } = ask.form("party", "How many people?").await?;
    Ok(format!("a table for {people}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::in_process(Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book)))?;

    let mut turn = client.call_tool("book_table", json!({})).one_round().await?;
    while let Turn::Asked(pending) = turn {
        for question in pending.questions() {
            println!("{}: {}", question.key(), question.message().unwrap_or_default());
        }
        turn = client.resume(pending.answer("party", json!({ "people": 2 }))?).await?;
    }
    if let Turn::Done(result) = turn {
        println!("{}", result.content[0].as_text().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
        let call = roundtrip::testing::replay(server).tool("book_table", json!({}));
        let result = call.accept("party", json!({ "people": 3 })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "a table for 3");
    }
}
