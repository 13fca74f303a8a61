//! Parameters that decide what to ask: `cargo run -p roundtrip --example ask-if-needed`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use roundtrip::{Args, Ask, Choice, Client, Form, Resolve, Resolved, Server, State, Tool, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, schemars::JsonSchema)]
struct Booking {
    flight: String,
}

/// A flight's number, its hours and its free seats.
#[derive(Clone, Copy)]
struct Flight(&'static str, u32, &'static [Seat]);

#[derive(Choice, Debug, Clone, Copy, Serialize, Deserialize)]
enum Seat {
    Window,
    Aisle,
}

#[derive(Form)]
struct Wish {
    seat: Seat,
}

/// The flight that the call names.
#[derive(Serialize, Deserialize)]
struct Found(u32, Vec<Seat>);

impl Resolve for Found {
    const KEY: &'static str = "flight";
    type From = (Args<Booking>, State<Vec<Flight>>);

    async fn resolve((Args(booking), State(flights)): Self::From, _: Ask) -> Result<Self, ToolError> {
        let flight = flights.iter().find(|flight| flight.0 == booking.flight);
        let Flight(_, hours, free) = flight.ok_or_else(|| ToolError::new("there is no such flight"))?;
        Ok(Self(*hours, free.to_vec()))
    }
}

/// The last free seat, or the one that the user chooses.
impl Resolve for Seat {
    const KEY: &'static str = "seat";
    type From = (Resolved<Found>,);

    async fn resolve((Resolved(Found(_, free)),): Self::From, ask: Ask) -> Result<Self, ToolError> {
        if let [last] = free[..] {
            return Ok(last);
        }
        Ok(ask.form::<Wish>("wish", "Where would you like to sit?").await?.seat)
    }
}

/// A meal on long flights, for those who want one.
#[derive(Serialize, Deserialize)]
struct Meal(bool);

impl Resolve for Meal {
    const KEY: &'static str = "meal";
    type From = (Resolved<Found>,);

    async fn resolve((Resolved(Found(hours, _)),): Self::From, ask: Ask) -> Result<Self, ToolError> {
        Ok(Self(hours > 3 && ask.confirm("hungry", "Would you like a meal?").await?))
    }
}

/// The body has all it needs, whether the user was asked or not.
async fn book(
    Args(booking): Args<Booking>,
    Resolved(seat): Resolved<Seat>,
    Resolved(Meal(meal)): Resolved<Meal>,
) -> String {
    format!("{}: {seat:?}, {}", booking.flight, if meal { "with a meal" } else { "no meal" })
}

fn server() -> Server {
    let flights = vec![Flight("RT1", 9, &[Seat::Window, Seat::Aisle]), Flight("RT2", 1, &[Seat::Aisle])];
    Server::new("flights", "1.0.0").tool(Tool::new("book", book)).state(flights)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::in_process(server())?.on_form(async |form| {
        println!("round {}: {}", form.origin.round, form.message);
        form.accept(if form.origin.key == "wish" {
            json!({ "seat": "window" })
        } else {
            json!({ "confirm": true })
        })
    });
    for flight in ["RT1", "RT2"] {
        println!("{}", client.call_tool("book", json!({ "flight": flight })).await?.text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use roundtrip::testing::replay;

    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let call = replay(server()).tool("book", json!({ "flight": "RT1" }));
        let script = call.accept("wish", json!({ "seat": "aisle" })).decline("hungry");
        let told = &script.await.unwrap()["content"][0]["text"];
        assert_eq!(told, "the user declined to answer `hungry`");
        let call = replay(server()).tool("book", json!({ "flight": "RT2" }));
        assert_eq!(call.await.unwrap()["content"][0]["text"], "RT2: Aisle, no meal");
    }
}
