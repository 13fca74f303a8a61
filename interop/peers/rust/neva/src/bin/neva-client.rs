//! A client on Neva that runs tools of our conformance server as tasks: it waits for them by itself, answers their questions
//! with its handler, and cancels them.
//!
//! Neva 0.9 has no way to declare `io.modelcontextprotocol/tasks` in its requests, without which no server may answer with a
//! task. So there is a relay between the two, over stdio alone, that adds the declaration to every request and changes
//! nothing else.

use std::{
    env,
    error::Error,
    io::{BufRead, Write, stdin},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use checks::{Failure, Report, Target, expect};
use neva::{
    client::Client,
    types::{
        CallToolRequestParams, CallToolResponse, CreateTaskResult, TaskMetadata, TaskStatus,
        elicitation::{ElicitRequestParams, ElicitResult},
    },
};
use serde_json::{Value, json};

const RELAY: &str = "--relay";

fn main() -> Result<ExitCode, Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [flag, program, arguments @ ..] = &words[..]
        && flag == RELAY
    {
        relay(program, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    check()
}

/// Runs a server, whose requests declare the extension.
fn relay(program: &str, arguments: &[String]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut server = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn()?;
    let mut requests = server.stdin.take().ok_or("a server without an input")?;
    for line in stdin().lock().lines() {
        let mut message: Value = serde_json::from_str(&line?)?;
        if let Some(meta) = message.pointer_mut("/params/_meta") {
            let declared = &mut meta["io.modelcontextprotocol/clientCapabilities"];
            declared["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
        }
        writeln!(requests, "{message}")?;
    }
    drop(requests);
    server.wait()?;
    Ok(())
}

#[tokio::main]
async fn check() -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    let mut client = client(Target::read()?)?;
    client.map_elicitation(|_: ElicitRequestParams| {
        // More fields than any form has; the server reads those that it asked for.
        ElicitResult::accept().with_content(json!({ "name": "Ada", "confirm": true }))
    });
    client.connect().await?;
    let c = &client;
    report
        .check(
            "slow_compute",
            says(c, "slow_compute", json!({ "seconds": 0.3, "label": "seven" }), "seven: computed for 0.3 s"),
        )
        .await;
    report
        .check(
            "confirm_delete",
            says(c, "confirm_delete", json!({ "filename": "a.txt" }), "a.txt is deleted"),
        )
        .await;
    report.check("multi_input", says(c, "multi_input", json!({}), "Ada: true")).await;
    report.check("test_tool_with_task", says(c, "test_tool_with_task", json!({}), "Hello, Ada!")).await;
    report.check("failing_job", tool_error(c)).await;
    report.check("protocol_error_job", protocol_error(c)).await;
    report.check("tasks/cancel", cancelled(c)).await;
    report.check("an unknown task", unknown(c)).await;
    client.map_elicitation(|_: ElicitRequestParams| ElicitResult::decline());
    report.check("confirm_delete, decline", declined(&client)).await;
    client.disconnect().await?;
    Ok(report.conclude())
}

fn client(target: Target) -> Result<Client, Failure> {
    let Target::Stdio(program, arguments) = target else { return Err("there is no relay for HTTP".into()) };
    let words = [RELAY.to_owned(), program].into_iter().chain(arguments);
    // Neva wants words that live as long as the process.
    let words: Vec<&'static str> = words.map(|word| &*word.leak()).collect();
    let relay = env::current_exe()?.into_os_string().into_string().map_err(|_| "a path that is no text")?;
    Ok(Client::new().with_options(|options| {
        options.with_stdio(relay.leak(), words).with_tasks().with_timeout(Duration::from_secs(10))
    }))
}

fn text(result: &CallToolResponse) -> String {
    let said = serde_json::to_value(result).unwrap_or(Value::Null);
    let blocks = said["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

async fn says(client: &Client, tool: &str, arguments: Value, wanted: &str) -> Result<String, Failure> {
    let result = client.tools().as_task().call(tool, arguments).await?;
    expect(!result.is_error && text(&result) == wanted, || format!("wanted `{wanted}`, got {result:?}"))?;
    Ok(text(&result))
}

async fn tool_error(client: &Client) -> Result<String, Failure> {
    let result = client.tools().as_task().call("failing_job", ()).await?;
    expect(result.is_error, || format!("wanted a tool error, got {result:?}"))?;
    Ok(text(&result))
}

async fn declined(client: &Client) -> Result<String, Failure> {
    let result = client.tools().as_task().call("confirm_delete", json!({ "filename": "a.txt" })).await?;
    let right = result.is_error && text(&result).contains("declined");
    expect(right, || format!("wanted a tool error, got {result:?}"))?;
    Ok(text(&result))
}

async fn protocol_error(client: &Client) -> Result<String, Failure> {
    match client.tools().as_task().call("protocol_error_job", ()).await {
        Err(error) if error.to_string().contains("always ends with an error") => Ok(error.to_string()),
        other => Err(format!("wanted the error of the task, got {other:?}").into()),
    }
}

async fn cancelled(client: &Client) -> Result<String, Failure> {
    let mut call = CallToolRequestParams::new("slow_compute")
        .with_args([("seconds", json!(60)), ("label", json!("long"))]);
    call.task = Some(TaskMetadata::default());
    let created: CreateTaskResult = client.tools().call_raw(call).await?.into_result()?;
    client.tasks().cancel(&created.task.id).await?;
    loop {
        let task = client.tasks().get(&created.task.id).await?;
        match task.status {
            TaskStatus::Working => tokio::time::sleep(Duration::from_millis(20)).await,
            TaskStatus::Cancelled => return Ok("cancelled".to_owned()),
            other => return Err(format!("wanted a cancelled task, got {other:?}").into()),
        }
    }
}

async fn unknown(client: &Client) -> Result<String, Failure> {
    match client.tasks().get("no-such-task").await {
        Err(error) => Ok(error.to_string()),
        Ok(task) => Err(format!("wanted an error, got {task:?}").into()),
    }
}
