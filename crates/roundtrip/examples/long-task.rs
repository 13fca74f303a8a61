//! A call that takes its time, and a client that looks after it: `cargo run -p roundtrip --example long-task`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use std::error::Error;

use roundtrip::{Ask, Client, MemoryTasks, Server, Status, Task, Tasks, Tool, ToolError, Turn, When};
use serde_json::json;

/// Reads an archive, asks, and publishes. It may be days before somebody answers.
async fn report(ask: Ask, status: Status) -> Result<String, ToolError> {
    status.set("reading the archive");
    let rows: u32 = ask.remember("rows", async || 42).await?;
    status.set(format!("{rows} rows read"));
    if !ask.confirm("publish", format!("Publish {rows} rows?")).await? {
        return Ok("kept back".into());
    }
    Ok(format!("{rows} rows published"))
}

fn server() -> Server {
    Server::new("reports", "1.0.0")
        .tool(Tool::new("report", report).description("Publish the report").task(When::Required))
        .tasks(Tasks::new(MemoryTasks::new()))
}

/// Starts the call. It returns as soon as the task is stored.
async fn start(client: &Client) -> Result<String, Box<dyn Error>> {
    let Turn::Task(task) = client.call_tool("report", ()).one_round().await? else {
        return Err("it should have become a task".into());
    };
    println!("started: {}", task.last_seen().status);
    Ok(serde_json::to_string(&task)?)
}

/// Goes on from what was stored, in this process or another one, now or after a restart.
async fn look_after(client: &Client, stored: &str) -> Result<(), Box<dyn Error>> {
    let task: Task = serde_json::from_str(stored)?;
    let mut task = client.task(task);
    let Turn::Asked(pending) = task.turn().await? else { return Err("it should have asked".into()) };
    for question in pending.open() {
        println!("asked: {}", question.message().unwrap_or_default());
    }
    println!("meanwhile: {}", task.status().await?.status_message.unwrap_or_default());
    task.answer("publish", json!({ "confirm": true })).await?;
    println!("result: {}", task.wait().await?.text());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::in_process(server())?;
    let stored = start(&client).await?;
    look_after(&client, &stored).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let call = roundtrip::testing::replay(server()).tool("report", json!({}));
        let result = call.accept("publish", json!({ "confirm": true })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "42 rows published");
    }
}
