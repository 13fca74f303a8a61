//! Servers whose tasks break the rules, or never end. Every one of them ends in a named error, and no handler is asked in vain.

use std::time::Duration;

use roundtrip::client::{GaveUp, PeerMisbehaved, TaskError};
use roundtrip::{Error, FormAnswer, FormRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{answered, answers, asking, methods, seen, task};
use crate::rounds::script::{Answer, party, replies};

async fn ends(look: Value) -> Error {
    let (client, _log) = seen([look]);
    client.call_tool("book", ()).await.expect_err("no result")
}

/// T26, Z2: tasks that are none are named.
#[tokio::test(start_paused = true)]
async fn tasks_that_break_the_rules_are_named() {
    for look in [
        task("completed", json!({})),
        task("completed", json!({ "result": "done" })),
        task("completed", json!({ "result": { "resultType": "task" } })),
        task("failed", json!({ "error": 7 })),
        task("done", json!({})),
        task("working", json!({ "taskId": "another" })),
        task("working", json!({ "pollIntervalMs": -1 })),
        json!({ "resultType": "input_required", "requestState": "s" }),
        json!({ "resultType": "complete" }),
    ] {
        let error = ends(look.clone()).await;
        let named = matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_)));
        assert!(named, "{error:?} for {look}");
    }
    for id in [String::new(), "x".repeat(100_000)] {
        let (client, log) = replies([task("working", json!({ "resultType": "task", "taskId": id }))]);
        let error = client.call_tool("book", ()).await.expect_err("no task");
        assert!(error.to_string().contains("an id of") && error.to_string().len() < 200, "{error}");
        assert_eq!(log.len(), 1);
    }
}

/// T26, Z2: a flood of questions is refused before any is shown.
#[tokio::test(start_paused = true)]
async fn a_flood_of_questions_reaches_no_handler() {
    let questions: serde_json::Map<_, _> = (0..33).map(|number| (number.to_string(), party())).collect();
    let (client, log) = seen([task("input_required", json!({ "inputRequests": questions }))]);
    let client = client.on_form(async |_: FormRequest| -> FormAnswer { panic!("asked in vain") });
    let error = client.call_tool("book", ()).await.expect_err("too many");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::TooManyQuestions { .. })), "{error:?}");
    assert!(answers(&log).is_empty());
}

/// C6, T26: a task that always has another question is given up, before that question is asked.
#[tokio::test(start_paused = true)]
async fn a_task_that_keeps_asking_is_given_up() {
    let (client, log) = answered(|look| Answer::Result(asking([(&*look.to_string(), party())])));
    let client = client.on_form(async |form: FormRequest| form.decline());
    let error = client.call_tool("book", ()).await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(GaveUp::TooManyRounds { .. })), "{error:?}");
    assert_eq!(answers(&log).len(), 10);
}

/// T26: a task that never takes its answer is looked at for a while, and given up.
#[tokio::test(start_paused = true)]
async fn a_task_that_takes_no_answer_is_given_up() {
    let (client, log) = seen([asking([("a", party())])]);
    let client = client.on_form(async |form: FormRequest| form.decline());
    let begun = Instant::now();
    let error = client.call_tool("book", ()).max_polling(Duration::from_secs(60)).await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(GaveUp::PolledTooLong { .. })), "{error:?}");
    assert!((50..=80).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!(answers(&log).len(), 1);
}

/// T26: a task that never ends is given up once its time to live is over, whatever pace it asks for.
#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_given_up() {
    for (pace, most) in [(0, 3_000), (5_000, 30), (u64::MAX, 10)] {
        let (client, log) = seen([task("working", json!({ "pollIntervalMs": pace, "ttlMs": 60_000 }))]);
        let begun = Instant::now();
        let error = client.call_tool("book", ()).await.expect_err("no end");
        assert!(matches!(error, Error::Task(TaskError::Expired { .. })), "{error:?}");
        assert!((100..=160).contains(&begun.elapsed().as_secs()), "{pace}: {:?}", begun.elapsed());
        assert!(log.len() < most, "{pace}: {} requests", log.len());
    }
}

/// T26: a task is over when it is first seen ended, whatever it turns into.
#[tokio::test(start_paused = true)]
async fn the_first_end_counts() {
    let (client, log) = seen([
        asking([]),
        task("working", json!({})),
        asking([]),
        task("cancelled", json!({})),
        super::completed(),
    ]);
    let error = client.call_tool("book", ()).await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
    assert_eq!(methods(&log).len(), 1 + 4);
}
