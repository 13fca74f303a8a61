//! Questions as parameters, all asked in one round: `cargo run -p roundtrip --example ask-as-parameter`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Asked, Choice, Client, Form, Server, Tool};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Booking {
    restaurant: String,
}

#[derive(Choice)]
enum Seating {
    /// By the window
    Window,
    /// In the garden
    Garden,
}

#[derive(Form)]
#[form(key = "party", message = "How many people at {restaurant}?")]
struct Party {
    #[form(min = 1, max = 12)]
    people: u8,
}

#[derive(Form)]
#[form(key = "seating", message = "Where would you like to sit?")]
struct Where {
    seating: Seating,
}

/// The body runs once both are answered; without a wish for a seat, any will do.
async fn book(
    Args(booking): Args<Booking>,
    Asked(party): Asked<Party>,
    Asked(wish): Asked<Option<Where>>,
) -> String {
    let seat = match wish.map(|wish| wish.seating) {
        Some(Seating::Window) => "by the window",
        Some(Seating::Garden) => "in the garden",
        None => "anywhere",
    };
    format!("{} for {}, {seat}", booking.restaurant, party.people)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bookings", "1.0.0").tool(Tool::new("book_table", book));
    let client = Client::in_process(server)?.on_form(async |form| {
        println!("round {}: {}", form.origin.round, form.message);
        if form.origin.key == "party" { form.accept(json!({ "people": 4 })) } else { Ok(form.decline()) }
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
            call.accept("party", json!({ "people": 2 })).accept("seating", json!({ "seating": "garden" }));
        assert_eq!(script.await.unwrap()["content"][0]["text"], "Nopa for 2, in the garden");
    }
}
