//! Our client against a server on another SDK whose tools run as tasks: it waits for them, answers their questions, hands them
//! over, cancels them, and checks how they end.
//!
//! `task-client http URL`, or `task-client stdio COMMAND [ARGUMENT ..]`. Prints one line per check; the last line is
//! `N passed, M failed`.

mod ended;
mod handed_over;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use roundtrip::Client;
use roundtrip::wire::CallToolResult;
use roundtrip_interop::connect;
use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let (client, _) = connect("task-client").await?;
    let mut report = Report::default();
    ended::check(&mut report, &client).await;
    handed_over::check(&mut report, &client).await;
    client.close().await;
    Ok(report.conclude())
}

/// Runs a tool to its end, which must have been a task's.
async fn run(client: &Client, tool: &str) -> Result<CallToolResult, Failure> {
    run_with(client, tool, json!({})).await
}

async fn run_with(client: &Client, tool: &str, arguments: Value) -> Result<CallToolResult, Failure> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = Arc::clone(&seen);
    let call = client.call_tool(tool, arguments).on_status(move |task| {
        noting.lock().unwrap_or_else(PoisonError::into_inner).push(task.task_id.clone());
    });
    let result = call.await?;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    seen.dedup();
    expect(seen.len() == 1, || format!("wanted one task, saw {seen:?}"))?;
    Ok(result)
}
