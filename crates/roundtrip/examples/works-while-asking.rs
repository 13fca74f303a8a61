//! A task that works while it asks: `cargo run -p roundtrip --example works-while-asking`.

#![expect(clippy::print_stdout, reason = "it shows what it got")]

use std::error::Error;
use std::time::Duration;

use roundtrip::{Ask, Client, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::json;

#[derive(Form)]
struct Name {
    name: String,
}

/// Boots a machine while its user picks a name.
async fn launch(ask: Ask) -> Result<String, ToolError> {
    let name = async { Ok(ask.form::<Name>("name", "Which name?").await?) };
    let (address, Name { name }) = tokio::try_join!(ask.once("boot", |_| boot()), name)?;
    Ok(format!("{name} is at {address}"))
}

async fn boot() -> Result<String, ToolError> {
    println!("booting");
    tokio::time::sleep(Duration::from_millis(300)).await;
    println!("booted");
    Ok("10.0.0.7".into())
}

fn server() -> Server {
    Server::new("machines", "1.0.0")
        .tool(Tool::new("launch", launch).description("Launch a machine").task(When::Offered))
        .tasks(Tasks::new(MemoryTasks::new()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::in_process(server())?.on_form(async |form| {
        println!("asked: {}", form.message);
        form.accept(json!({ "name": "web" }))
    });
    println!("{}", client.call_tool("launch", ()).await?.text());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_survives_a_replay() {
        let call = roundtrip::testing::replay(server()).tool("launch", json!({}));
        let result = call.accept("name", json!({ "name": "web" })).await.unwrap();
        assert_eq!(result["content"][0]["text"], "web is at 10.0.0.7");
    }
}
