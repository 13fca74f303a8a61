//! Calls that become tasks, in every dialect: against servers of our own, and against scripted ones.

mod by_hand;
mod driven;
mod hostile;
mod kinds;
#[cfg(feature = "validation")]
mod output;
mod own;
mod own_dialects;
mod sep_2322;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::Client;
use roundtrip::wire::{CancelTask, GetTask, Method as _, UpdateTask};
use serde_json::{Value, json};

use crate::rounds::script::{Answer, Log, done, scripted};

/// A task as `tasks/get` shows it, with more members.
#[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
fn task(status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "ttlMs": null,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "pollIntervalMs": 5000,
    });
    task.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    task
}

fn working() -> Value {
    task("working", json!({}))
}

fn asking<const N: usize>(questions: [(&str, Value); N]) -> Value {
    let questions: serde_json::Map<_, _> =
        questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
    task("input_required", json!({ "inputRequests": questions }))
}

fn completed() -> Value {
    task("completed", json!({ "result": done() }))
}

fn created() -> Value {
    task("working", json!({ "resultType": "task" }))
}

/// A client of a server whose calls are tasks, which are seen like this one after the other.
fn seen<const N: usize>(looks: [Value; N]) -> (Client, Arc<Log>) {
    answered(move |look| Answer::Result(looks[look.min(N - 1)].clone()))
}

/// A client of a server whose calls are tasks, and which answers `tasks/get` with what `look` makes of its number.
fn answered(look: impl Fn(usize) -> Answer + Send + Sync + 'static) -> (Client, Arc<Log>) {
    let looks = AtomicUsize::new(0);
    scripted(move |_, request| match request["method"].as_str() {
        Some(GetTask::NAME) => look(looks.fetch_add(1, Ordering::SeqCst)),
        Some(UpdateTask::NAME | CancelTask::NAME) => Answer::Result(json!({ "resultType": "complete" })),
        _ => Answer::Result(created()),
    })
}

/// Methods of the requests so far.
fn methods(log: &Log) -> Vec<String> {
    let method = |request: Value| request["method"].as_str().expect("a method").to_owned();
    log.requests().into_iter().map(method).collect()
}

/// Answers that were sent, one value for each `tasks/update`.
fn answers(log: &Log) -> Vec<Value> {
    let updates = log.requests().into_iter().filter(|request| request["method"] == UpdateTask::NAME);
    updates.map(|request| request["params"]["inputResponses"].clone()).collect()
}
