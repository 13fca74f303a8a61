//! Tools whose calls become tasks.

use std::time::Duration;

use roundtrip::wire::{CreateMessageRequestParams, ErrorObject};
use roundtrip::{Args, Ask, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;
use tokio::try_join;

pub(crate) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("greet", greet).description("Greets, inside the call"))
        .tool(Tool::new("slow_compute", slow_compute).description("Takes its time").task(When::Offered))
        .tool(Tool::new("failing_job", failing_job).description("Fails after a second").task(When::Required))
        .tool(
            Tool::new("protocol_error_job", protocol_error_job)
                .description("Ends with an error of the protocol")
                .task(When::Required),
        )
        .tool(Tool::new("confirm_delete", confirm_delete).description("Asks to confirm").task(When::Offered))
        .tool(Tool::new("multi_input", multi_input).description("Asks twice at once").task(When::Offered))
        .tool(Tool::new("ask_everything", everything).description("Asks in every way").task(When::Offered))
        .tool(
            Tool::new("test_tool_with_task", rounds_then_task)
                .description("Asks for a name, then goes on as a task")
                .task(When::After(Duration::MAX)),
        )
}

/// Keeps tasks in memory; `sep_2322` serves those of SEP-2322 beside the extension's.
pub(crate) fn keep(server: Server, sep_2322: bool) -> Server {
    let tasks = Tasks::new(MemoryTasks::new());
    server.tasks(if sep_2322 { tasks.sep_2322() } else { tasks })
}

/// Keeps tasks in memory, in the dialect of SEP-2322 also for clients that declare nothing, and has the tool of its example.
pub(crate) fn keep_undeclared(server: Server) -> Server {
    let echo = Tool::new("echo", echo).description("Echoes what it asks for").task(When::Offered);
    server.tool(echo).tasks(Tasks::new(MemoryTasks::new()).undeclared())
}

#[derive(Form)]
struct Echo {
    input: String,
}

async fn echo(ask: Ask) -> Result<String, ToolError> {
    let Echo { input } = ask.form("echo_input", "Please provide the input string to echo back").await?;
    Ok(format!("Echo: {input}"))
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Args(Greet { name }): Args<Greet>) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct Compute {
    seconds: f64,
    label: String,
}

async fn slow_compute(Args(Compute { seconds, label }): Args<Compute>) -> Result<String, ToolError> {
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| ToolError::new(error.to_string()))?;
    sleep(duration).await;
    Ok(format!("{label}: computed for {seconds} s"))
}

async fn failing_job() -> Result<String, ToolError> {
    sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("this job always fails"))
}

async fn protocol_error_job() -> Result<String, ErrorObject> {
    Err(ErrorObject::internal("this job always ends with an error"))
}

#[derive(Form)]
struct Confirm {
    confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    filename: String,
}

async fn confirm_delete(Args(Delete { filename }): Args<Delete>, ask: Ask) -> Result<String, ToolError> {
    let Confirm { confirm } = ask.form("confirm", format!("Delete {filename}?")).await?;
    Ok(if confirm { format!("{filename} is deleted") } else { format!("{filename} is kept") })
}

#[derive(Form)]
struct Name {
    name: String,
}

async fn multi_input(ask: Ask) -> Result<String, ToolError> {
    let (Name { name }, Confirm { confirm }) =
        try_join!(ask.form("name", "What is your name?"), ask.form("confirm", "Are you sure?"))?;
    Ok(format!("{name}: {confirm}"))
}

/// Asks for each kind, one after the other.
async fn everything(Args(Greet { name }): Args<Greet>, ask: Ask) -> Result<String, ToolError> {
    let Confirm { confirm } = ask.form("confirm", format!("Are you {name}?")).await?;
    ask.url("page", "Please sign in", "https://id.example/in").await?;
    let said = ask.sample("model", CreateMessageRequestParams::text("Say hello", 10)).await?;
    let roots = ask.roots("roots").await?;
    Ok(format!("{confirm}, {}, {} roots", said.text(), roots.len()))
}

async fn rounds_then_task(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("user_name", "What is your name?").await?;
    ask.detach("greeting").await?;
    Ok(format!("Hello, {name}!"))
}
