//! Tasks that the call hands over: stored, looked at, answered by hand, cancelled.

use std::time::Duration;

use roundtrip::client::{Started, TaskError};
use roundtrip::wire::{ClientCapabilities, ElicitationCapability, TaskStatus};
use roundtrip::{Client, Error, Task, Turn};
use roundtrip_interop::report::{Failure, Report, expect};
use roundtrip_interop::user::everything;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::ended::is_cancelled;

pub(crate) async fn check(report: &mut Report, client: &Client) {
    report.check("compute, handed over", stored(client)).await;
    report.check("endless, cancelled", cancelled(client)).await;
    report.check("an unknown task", unknown(client)).await;
    // Questions that no handler answers are declared here.
    let client = &client.clone().capabilities(ClientCapabilities {
        elicitation: Some(ElicitationCapability::default()),
        ..ClientCapabilities::default()
    });
    report.check("greet, by hand", by_hand(client)).await;
    report.check("greet, answered by its key", by_key(client)).await;
}

/// Starts a task, and returns it as it comes out of storage.
async fn start(client: &Client, tool: &str, arguments: Value) -> Result<Task, Failure> {
    match client.call_tool(tool, arguments).into_task().await? {
        Started::Task(task) => Ok(serde_json::from_str(&serde_json::to_string(&task)?)?),
        Started::Done(result) => Err(format!("wanted a task, got {result:?}").into()),
    }
}

async fn stored(client: &Client) -> Result<String, Failure> {
    let mut task = client.task(start(client, "compute", json!({ "label": "seven" })).await?);
    let seen = task.status().await?;
    let result = task.wait().await?;
    expect(result.text() == "seven: computed", || format!("got {result:?}"))?;
    let ended = task.status().await?.status;
    expect(ended == TaskStatus::Completed, || format!("it is {ended}"))?;
    Ok(format!("{}, then {ended}", seen.status))
}

async fn cancelled(client: &Client) -> Result<String, Failure> {
    let mut task = client.task(start(client, "endless", json!({})).await?);
    let seen = task.status().await?.status;
    expect(seen == TaskStatus::Working, || format!("it is {seen}"))?;
    task.cancel().await?;
    match task.wait().await {
        Err(error) if is_cancelled(&error) => Ok(error.to_string()),
        other => Err(format!("wanted a cancelled task, got {other:?}").into()),
    }
}

async fn unknown(client: &Client) -> Result<String, Failure> {
    match client.task(Task::new("compute", "no-such-task")).status().await {
        Err(Error::Task(error @ TaskError::Unknown { .. })) => Ok(error.to_string()),
        other => Err(format!("wanted an unknown task, got {other:?}").into()),
    }
}

async fn by_hand(client: &Client) -> Result<String, Failure> {
    let mut turn = client.task(start(client, "greet", json!({})).await?).turn().await?;
    for _ in 0..3 {
        turn = match turn {
            Turn::Asked(pending) => {
                let key = pending.open().next().ok_or("nothing is asked")?.key().to_owned();
                client.resume(pending.answer(&key, everything())?).await?
            }
            Turn::Task(task) => client.task(task).turn().await?,
            Turn::Done(result) if result.text() == "Hello, Ada!" => return Ok(result.text()),
            other => return Err(format!("got {other:?}").into()),
        };
    }
    Err("no end to it".into())
}

async fn by_key(client: &Client) -> Result<String, Failure> {
    let mut task = client.task(start(client, "greet", json!({})).await?);
    let key = loop {
        let seen = task.status().await?;
        match seen.input_requests.keys().next() {
            Some(key) => break key.clone(),
            None => sleep(Duration::from_millis(seen.poll_interval_ms.unwrap_or(50))).await,
        }
    };
    task.answer(&key, json!({ "name": "Ada" })).await?;
    let result = task.wait().await?;
    expect(result.text() == "Hello, Ada!", || format!("got {result:?}"))?;
    Ok(format!("`{key}`: {}", result.text()))
}
