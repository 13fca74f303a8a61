//! `roundtrip demo`: one call over three instances that share nothing but a key.

use std::error::Error;
use std::io::IsTerminal;

use anstream::println;
use roundtrip::{Args, Ask, Client, Form, FormRequest, InProcess, Keyring, Server, State, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::fleet::Fleet;
use crate::printable::printable;
use crate::terminal;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Name of the restaurant
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
    /// A day, such as 2026-12-24
    #[form(format = "date")]
    date: String,
}

/// Name of an instance, to show which one answers a round.
#[derive(Clone, Copy)]
struct Instance(&'static str);

async fn book(
    Args(booking): Args<Booking>,
    ask: Ask,
    State(Instance(name)): State<Instance>,
) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    let deposit: u32 = ask
        .remember("deposit", async || {
            println!("         {name} asks the restaurant for its deposit, once");
            20 * u32::from(party.people)
        })
        .await?;
    let when: When = ask.form("when", format!("Which day? The deposit is {deposit}.")).await?;
    Ok(format!("{} for {} on {}, deposit {deposit}", booking.restaurant, party.people, when.date))
}

fn instance(name: &'static str, keys: &Keyring) -> Result<(&'static str, InProcess), Box<dyn Error>> {
    let server = Server::new("bookings", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("book_table", book).description("Book a table"))
        .state(Instance(name))
        .seal(keys.clone());
    Ok((name, InProcess::new(server.build()?)))
}

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let keys = Keyring::random()?;
    let fleet = Fleet::new(vec![instance("Ann", &keys)?, instance("Ben", &keys)?, instance("Cem", &keys)?]);
    println!("Three instances of a server, Ann, Ben and Cem, share a key and nothing else.");
    println!("Each round of this call goes to another one.\n");

    let asked_here = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let client = Client::new(fleet).info("demo", env!("CARGO_PKG_VERSION")).on_form(
        move |form: FormRequest| async move {
            if asked_here {
                return terminal::form(form).await;
            }
            let answer = match form.origin.key.as_str() {
                "party" => json!({ "people": 2 }),
                _ => json!({ "date": "2026-12-24" }),
            };
            println!("user     {} {answer}", printable(&form.message));
            Ok::<_, Box<dyn Error + Send + Sync>>(form.accept(answer)?)
        },
    );
    let result = client.call_tool("book_table", json!({ "restaurant": "Nopa" })).await?;
    let bold = anstyle::Style::new().bold();
    println!("\n{bold}{}{bold:#}", printable(result.content[0].as_text().unwrap_or_default()));
    Ok(())
}
