//! Resolved parameters: a type that cannot be resolved, `From` that is no tuple of parameters, and a future that is not `Send`.

use std::rc::Rc;

use roundtrip::{Args, Ask, Resolve, Resolved, Tool, ToolError};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, schemars::JsonSchema)]
struct Booking {
    flight: String,
}

#[derive(Serialize, Deserialize)]
struct Seat(String);

#[roundtrip::debug_handler]
async fn book(Resolved(seat): Resolved<Seat>) -> String {
    seat.0
}

#[derive(Serialize, Deserialize)]
struct Meal(String);

impl Resolve for Meal {
    const KEY: &'static str = "meal";
    type From = Args<Booking>;

    async fn resolve(Args(booking): Self::From, _: Ask) -> Result<Self, ToolError> {
        Ok(Self(booking.flight))
    }
}

#[derive(Serialize, Deserialize)]
struct Bag(String);

impl Resolve for Bag {
    const KEY: &'static str = "bag";
    type From = (Booking,);

    async fn resolve((booking,): Self::From, _: Ask) -> Result<Self, ToolError> {
        Ok(Self(booking.flight))
    }
}

#[derive(Serialize, Deserialize)]
struct Gate(bool);

impl Resolve for Gate {
    const KEY: &'static str = "gate";
    type From = ();

    async fn resolve((): Self::From, ask: Ask) -> Result<Self, ToolError> {
        let near = Rc::new("Near the door?");
        Ok(Self(ask.confirm("near", *near).await?))
    }
}

fn main() {
    let _ = Tool::new("book", async |_: Resolved<Seat>| "booked");
}
