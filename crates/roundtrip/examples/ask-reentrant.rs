//! The same with nothing hidden: a handler that takes its rounds by hand.
//! `cargo run -p roundtrip --example ask-reentrant`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Client, Form, Question, Reply, Round, Server, Tool, ToolError};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Booking {
    restaurant: String,
}

#[derive(Form)]
struct Party {
    #[form(min = 1, max = 12)]
    people: u8,
}

async fn book(Args(booking): Args<Booking>, round: Round) -> Result<Reply, ToolError> {
    let Some(party) = round.answer::<Party>("party")? else {
        return Ok(round.ask([Question::form::<Party>("party", "How many people?")]));
    };
    Ok(Reply::text(format!("{} for {} in round {}", booking.restaurant, party.people, round.number())))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
    let client = Client::in_process(server)?.on_form(async |form| form.accept(json!({ "people": 2 })));
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
        let result = call.accept("party", json!({ "people": 2 })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "Nopa for 2 in round 2");
    }
}
