//! Tools that run as tasks: waited for, answered, failed, cancelled.

use roundtrip_interop::report::{Failure, Report, expect};
use serde_json::Value;

use crate::command::{Roundtrip, says};

/// Tools that ask, and the texts of their answers.
const ASKING: [(&str, &str); 3] =
    [("greet", "Hello, Ada!"), ("rounds", "Ada likes teal"), ("together", "Ada likes teal")];

/// Greatest number of times that a task may ask.
const MAX_ROUNDS: usize = 3;

/// Runs the checks. Tasks of the handshake eras end with their session, and are for one process.
pub(crate) async fn check(report: &mut Report, roundtrip: &Roundtrip, handshake: bool) {
    report.check("call compute", computed(roundtrip)).await;
    report.check("call greet --decline-all", declined(roundtrip)).await;
    report.check("call fail", failed(roundtrip)).await;
    if roundtrip.is_shared() && !handshake {
        for (tool, text) in ASKING {
            let name = format!("call {tool} --detach, task wait, answer, wait");
            report.check(&name, answered(roundtrip, tool, text)).await;
        }
        report.check("call --detach, task status, cancel, wait", cancelled(roundtrip)).await;
        report.check("task status of no task", unknown(roundtrip)).await;
    }
}

async fn computed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["compute", "--arg", "label=seven", "--json"]).await?;
    says(&ran.exits(0)?, "seven: computed")
}

/// Checks that other processes see the questions of a task and answer them: their keys are the task's own.
async fn answered(roundtrip: &Roundtrip, tool: &str, text: &str) -> Result<String, Failure> {
    let id = detached(roundtrip, tool).await?;
    for _ in 0..=MAX_ROUNDS {
        let ran = roundtrip.run(&["task", "wait"], &["--id", &id, "--json"]).await?;
        if ran.code != 10 {
            return says(&ran.exits(0)?, text);
        }
        let file = roundtrip.answers(&ran.answers()?.into())?;
        roundtrip.run(&["task", "answer"], &["--id", &id, "--answers", &file, "--json"]).await?.exits(0)?;
    }
    Err(format!("it asks more than {MAX_ROUNDS} times").into())
}

async fn declined(roundtrip: &Roundtrip) -> Result<String, Failure> {
    roundtrip.run(&["call"], &["greet", "--decline-all", "--json"]).await?.exits(4)?.text()
}

async fn failed(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["call"], &["fail", "--json"]).await?.exits(1)?;
    let text = ran.text()?;
    expect(text.contains("always fails"), || format!("got {ran:?}"))?;
    Ok(text)
}

/// Starts a task, and leaves it to itself. Returns its identifier.
pub(crate) async fn detached(roundtrip: &Roundtrip, tool: &str) -> Result<String, Failure> {
    let started = roundtrip.run(&["call"], &[tool, "--detach", "--json"]).await?.exits(0)?.json()?;
    Ok(started["taskId"].as_str().ok_or_else(|| format!("no task: {started}"))?.to_owned())
}

/// Checks that other processes find a task.
async fn cancelled(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let id = detached(roundtrip, "endless").await?;
    let seen: Value = roundtrip.run(&["task", "status"], &["--id", &id, "--json"]).await?.exits(0)?.json()?;
    expect(seen["status"] == "working", || format!("it is {seen}"))?;
    roundtrip.run(&["task", "cancel"], &["--id", &id, "--json"]).await?.exits(0)?;
    let ran = roundtrip.run(&["task", "wait"], &["--id", &id, "--json"]).await?.exits(1)?;
    Ok(ran.error()?["message"].to_string())
}

async fn unknown(roundtrip: &Roundtrip) -> Result<String, Failure> {
    let ran = roundtrip.run(&["task", "status"], &["no-such-task", "--json"]).await?.exits(6)?;
    Ok(ran.error()?["message"].to_string())
}
