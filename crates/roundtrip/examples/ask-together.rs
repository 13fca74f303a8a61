//! The user, the model and the roots asked in one round: `cargo run -p roundtrip --example ask-together`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use std::convert::Infallible;

use roundtrip::wire::{CreateMessageRequestParams, CreateMessageResult};
use roundtrip::{Ask, Client, Form, Server, Tool, ToolError};
use serde_json::json;

#[derive(Form)]
struct Name {
    name: String,
}

async fn greet(ask: Ask) -> Result<String, ToolError> {
    let (Name { name }, greeting, roots) = tokio::try_join!(
        ask.form("name", "What is your name?"),
        ask.sample("greeting", CreateMessageRequestParams::text("Say hello in one word", 10)),
        ask.roots("roots"),
    )?;
    Ok(format!("{}, {name}! You work on {} folder.", greeting.text(), roots.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", greet));
    let client = Client::in_process(server)?
        .on_form(async |form| form.accept(json!({ "name": "Ada" })))
        .on_sample(async |_| Ok::<_, Infallible>(CreateMessageResult::assistant("Hello", "a-model")))
        .roots(["file:///projects"]);
    let call = client.call_tool("greet", json!({})).on_round(|round| {
        println!("{} questions at once", round.questions().count());
        Ok::<_, Infallible>(())
    });
    println!("{}", call.await?.content[0].as_text().unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", greet));
        let call = roundtrip::testing::replay(server).tool("greet", json!({}));
        let script = call
            .accept("name", json!({ "name": "Ada" }))
            .say("greeting", "Hi")
            .roots("roots", &["file:///a"]);
        assert_eq!(script.await.unwrap()["content"][0]["text"], "Hi, Ada! You work on 1 folder.");
    }
}
