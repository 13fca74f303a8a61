//! A tool that stops and asks, twice: `cargo run -p roundtrip --example ask-inline`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Ask, Client, Form, Server, Tool, ToolError};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Booking {
    restaurant: String,
}

#[derive(Form)]
struct Party {
    /// How many people?
    #[form(min = 1, max = 12)]
    people: u8,
}

#[derive(Form)]
struct When {
    #[form(format = "date")]
    date: String,
}

async fn book(Args(booking): Args<Booking>, ask: Ask) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    let deposit = 20 * u32::from(party.people);
    let when: When = ask.form("when", format!("Which day? The deposit is {deposit}.")).await?;
    Ok(format!("{} for {} on {}", booking.restaurant, party.people, when.date))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
    let client = Client::in_process(server)?.on_form(async |form| {
        println!("round {}: {}", form.origin.round, form.message);
        match form.origin.key.as_str() {
            "party" => form.accept(json!({ "people": 2 })),
            _ => form.accept(json!({ "date": "2026-12-24" })),
        }
    });
    let result = client.call_tool("book_table", json!({ "restaurant": "Nopa" })).await?;
    println!("{}", result.content[0].as_text().unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
        let call = roundtrip::testing::replay(server).tool("book_table", json!({ "restaurant": "Nopa" }));
        let script =
            call.accept("party", json!({ "people": 2 })).accept("when", json!({ "date": "2026-12-24" }));
        assert_eq!(script.await.unwrap()["content"][0]["text"], "Nopa for 2 on 2026-12-24");
    }
}
