//! Tasks that a call waits for, through their questions, to every kind of end.

use roundtrip::client::TaskError;
use roundtrip::{Client, Error};
use roundtrip_interop::report::{Failure, Report, expect};
use roundtrip_interop::user::{Act, User};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{run, run_with};

/// Tasks at the same time.
const MANY: usize = 20;

/// Tools that ask, their questions (sorted) and their answers.
const ASKING: [(&str, &[&str], &str); 3] = [
    ("greet", &["What is your name?"], "Hello, Ada!"),
    ("rounds", &["Ada, what is your favourite colour?", "What is your name?"], "Ada likes teal"),
    ("together", &["What is your favourite colour?", "What is your name?"], "Ada likes teal"),
];

pub(crate) async fn check(report: &mut Report, client: &Client) {
    report.check("compute", computed(client.clone(), "seven".to_owned())).await;
    for (tool, asked, text) in ASKING {
        report.check(tool, answered(client, tool, asked, text)).await;
    }
    for act in [Act::Decline, Act::Cancel] {
        report.check(&format!("greet, {}", act.word()), refused(client, act)).await;
    }
    report.check("fail", tool_error(client)).await;
    report.check("broken", protocol_error(client)).await;
    report.check("many tasks at the same time", at_once(client)).await;
}

async fn computed(client: Client, label: String) -> Result<String, Failure> {
    let result = run_with(&client, "compute", json!({ "label": label })).await?;
    let right = result.is_error != Some(true) && result.text() == format!("{label}: computed");
    expect(right, || format!("got {result:?}"))?;
    Ok(result.text())
}

async fn answered(client: &Client, tool: &str, asked: &[&str], text: &str) -> Result<String, Failure> {
    let user = User::default();
    let result = run(&user.at(client), tool).await?;
    let right = result.is_error != Some(true) && result.text() == text;
    expect(right, || format!("wanted `{text}`, got {result:?}"))?;
    let questions = user.questions();
    expect(questions == asked, || format!("asked {questions:?}"))?;
    Ok(format!("{asked:?}: {text}"))
}

async fn refused(client: &Client, act: Act) -> Result<String, Failure> {
    let result = run(&User::who([act]).at(client), "greet").await?;
    let right = result.is_error == Some(true) && result.text().contains(act.word());
    expect(right, || format!("wanted a tool error with `{}` in it, got {result:?}", act.word()))?;
    Ok(result.text())
}

async fn tool_error(client: &Client) -> Result<String, Failure> {
    let result = run(client, "fail").await?;
    let right = result.is_error == Some(true) && result.text().contains("always fails");
    expect(right, || format!("wanted a tool error, got {result:?}"))?;
    Ok(result.text())
}

/// Checks a task that fails without a result. Not every SDK has these.
async fn protocol_error(client: &Client) -> Result<String, Failure> {
    if !client.list_tools().await?.iter().any(|tool| tool.name == "broken") {
        return Ok("not among the tools of this SDK".to_owned());
    }
    match client.call_tool("broken", json!({})).await {
        Err(Error::Rejected(rejection)) => Ok(rejection.error().to_string()),
        other => Err(format!("wanted the error of the task, got {other:?}").into()),
    }
}

async fn at_once(client: &Client) -> Result<String, Failure> {
    let mut calls = JoinSet::new();
    for number in 0..MANY {
        calls.spawn(computed(client.clone(), number.to_string()));
    }
    let mut answers = 0;
    while let Some(call) = calls.join_next().await {
        call??;
        answers += 1;
    }
    Ok(format!("{answers} answers, each to its call"))
}

/// Returns whether a task was cancelled.
pub(crate) fn is_cancelled(error: &Error) -> bool {
    matches!(error, Error::Task(TaskError::Cancelled { .. }))
}
