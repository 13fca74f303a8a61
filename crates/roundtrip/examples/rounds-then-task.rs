//! Rounds first, then a task, as SEP-2322 has it: `cargo run -p roundtrip --example rounds-then-task`.
//!
//! An export asks for its format while the user is there, goes on as a task, and asks for its destination when it is done.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use std::error::Error;
use std::time::Duration;

use roundtrip::client::{Pending, Turn};
use roundtrip::{Ask, Client, Form, FormRequest, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};

#[derive(Form)]
struct Format {
    format: String,
}

#[derive(Form)]
struct Place {
    place: String,
}

async fn export(ask: Ask) -> Result<String, ToolError> {
    let Format { format } = ask.form("format", "Which format?").await?; // a round
    ask.detach("collecting").await?; // the call is a task from here on
    let rows: u32 = ask.remember("rows", async || 42).await?;
    let Place { place } = ask.form("place", format!("{rows} rows. Where to?")).await?; // a question of the task
    Ok(format!("{rows} rows as {format} in {place}"))
}

fn server() -> Server {
    Server::new("exports", "1.0.0")
        .tool(
            Tool::new("export", export).description("Export all").task(When::After(Duration::from_secs(60))),
        )
        .tasks(Tasks::new(MemoryTasks::new()))
}

fn answer(key: &str) -> Value {
    if key == "format" { json!({ "format": "csv" }) } else { json!({ "place": "the archive" }) }
}

/// Shows what is asked, and answers it.
fn answered(step: usize, by: &str, mut pending: Pending) -> Result<Pending, Box<dyn Error>> {
    let keys: Vec<String> = pending.open().map(|question| question.key().to_owned()).collect();
    for question in pending.open() {
        println!("{step}. {by} asks: {}", question.message().unwrap_or_default());
    }
    for key in keys {
        pending = pending.answer(&key, answer(&key))?;
    }
    Ok(pending)
}

/// Makes each request by hand.
async fn by_hand(client: &Client) -> Result<(), Box<dyn Error>> {
    let Turn::Asked(pending) = client.call_tool("export", ()).one_round().await? else {
        return Err("it should have asked".into());
    };
    let Turn::Task(task) = client.resume(answered(1, "the call", pending)?).await? else {
        return Err("it should have become a task".into());
    };
    println!("2. answered, it is a task: {}", task.last_seen().status);
    let Turn::Asked(pending) = client.task(task).turn().await? else {
        return Err("it should have asked again".into());
    };
    let Turn::Task(task) = client.resume(answered(3, "the task", pending)?).await? else {
        return Err("it should go on".into());
    };
    println!("4. answered, it ends: {}", client.task(task).wait().await?.text());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::in_process(server())?;
    by_hand(&client).await?;
    // The same in one call: who answers need not know what is a round and what a task.
    let client = client.on_form(async |form: FormRequest| {
        let content = answer(&form.origin.key);
        form.accept(content)
    });
    println!("in one call: {}", client.call_tool("export", ()).await?.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let call = roundtrip::testing::replay(server()).tool("export", json!({}));
        let call = call.accept("format", answer("format")).accept("place", answer("place"));
        let result = call.await.unwrap();
        assert_eq!(result["content"][0]["text"], "42 rows as csv in the archive");
    }
}
