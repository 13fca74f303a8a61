//! Tasks that a caller looks after, here or in another process.

use std::time::Duration;

use roundtrip::client::{Answer as Given, ApiMisuse, Kind, TaskError};
use roundtrip::wire::TaskStatus;
use roundtrip::{Client, Error, FormAnswer, FormRequest, Pending, Started, Task, Turn};
use serde_json::json;

use super::{answered, answers, asking, completed, methods, seen, task, working};
use crate::fixture::text;
use crate::rounds::script::{Answer, page, party};

/// The task of a call, by way of storage.
async fn started(client: &Client) -> Task {
    let call = client.call_tool("book", json!({ "at": "Nopa" })).meta("com.example/tenant", 7);
    match call.into_task().await.expect("a task") {
        Started::Task(task) => {
            serde_json::from_str(&serde_json::to_string(&task).expect("json")).expect("json")
        }
        Started::Done(result) => panic!("a task, not {result:?}"),
    }
}

/// C14, T26: another process looks at a task, answers it one question at a time, and waits for it.
#[tokio::test(start_paused = true)]
async fn another_process_looks_after_a_task() {
    let task = started(&seen([working()]).0).await;
    let both = asking([("a", party()), ("b", page())]);
    let (other, log) = seen([both.clone(), both.clone(), both, working(), completed()]);
    let mut task = other.task(task);
    let status = task.status().await.expect("a status");
    assert_eq!((status.status, status.input_requests.len()), (TaskStatus::InputRequired, 2));
    task.answer("a", json!({ "people": 2 })).await.expect("an answer");
    task.give("b", Given::decline()).await.expect("an answer");
    let accepted = json!({ "action": "accept", "content": { "people": 2, "window": true } });
    assert_eq!(answers(&log), [json!({ "a": accepted }), json!({ "b": { "action": "decline" } })]);
    assert_eq!(text(&task.wait().await.expect("a result")), "done");
    let tenants = log.requests().iter().all(|request| request["params"]["_meta"]["com.example/tenant"] == 7);
    assert!(tenants, "the caller's `_meta` stays with the task");
}

/// T26: an answer that is not asked for, was given, or does not fit, is not sent.
#[tokio::test(start_paused = true)]
async fn answers_are_checked_before_they_are_sent() {
    let (client, log) = seen([asking([("a", party())])]);
    let mut task = client.task(Task::new("book", "t-1"));
    let error = task.answer("b", json!({})).await.expect_err("not asked");
    assert!(matches!(error, Error::ApiMisuse(ApiMisuse::NotAsked { .. })), "{error:?}");
    let error = task.answer("a", json!({ "people": 99 })).await.expect_err("too many");
    assert!(matches!(error, Error::ApiMisuse(ApiMisuse::UnfitAnswer(_))), "{error:?}");
    assert!(answers(&log).is_empty());
    task.answer("a", json!({ "people": 2 })).await.expect("an answer");
    let error = task.answer("a", json!({ "people": 3 })).await.expect_err("given");
    assert!(matches!(error, Error::ApiMisuse(ApiMisuse::NotAsked { .. })), "{error:?}");
    assert_eq!(answers(&log).len(), 1);
}

/// T26: a task is cancelled by a request of its own.
#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_by_request() {
    let (client, log) = seen([task("cancelled", json!({}))]);
    let mut task = client.task(started(&client).await);
    task.cancel().await.expect("heard");
    assert_eq!(
        (methods(&log).last().map(String::as_str), log.params(1)),
        (Some("tasks/cancel"), json!({ "taskId": "t-1" }))
    );
    let error = task.wait().await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
}

/// T26: every request about a task that the server has forgotten says so.
#[tokio::test(start_paused = true)]
async fn a_forgotten_task_is_named() {
    let (client, _log) = crate::rounds::script::scripted(|_, _| {
        Answer::LateError(Duration::ZERO, json!({ "code": -32602, "message": "no such task" }))
    });
    let mut task = client.task(Task::new("book", "t-1"));
    let answered = task.answer("a", json!({})).await;
    for outcome in [task.status().await.map(drop), task.cancel().await, task.wait().await.map(drop), answered]
    {
        let error = outcome.expect_err("forgotten");
        assert!(matches!(&error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
        assert!(!error.to_string().contains("t-1"), "{error}");
    }
}

/// C14, C9: by hand a task is a turn of its own; its questions are stored, answered and gone on with as those of a call are.
#[tokio::test(start_paused = true)]
async fn by_hand_a_task_is_a_turn_of_its_own() {
    let (client, log) =
        seen([working(), asking([("a", party()), ("b", party())]), asking([("b", party())]), completed()]);
    let client = client.on_form(async |_: FormRequest| -> FormAnswer { panic!("by hand") });
    let mut turn = client.call_tool("book", ()).one_round().await.expect("a turn");
    let mut turns = Vec::new();
    let result = loop {
        turn = match turn {
            Turn::Done(result) => break result,
            Turn::Task(task) => {
                turns.push("task".to_owned());
                client.task(task).turn().await.expect("a turn")
            }
            Turn::Asked(pending) => {
                let stored = serde_json::to_string(&pending).expect("serialises");
                let pending: Pending = serde_json::from_str(&stored).expect("what was stored");
                let first =
                    pending.open().next().map(|question| (question.key().to_owned(), question.kind()));
                let (key, kind) = first.expect("a question");
                assert_eq!(kind, Kind::Form);
                let answered = pending.answer(&key, json!({ "people": 2 })).expect("fits");
                turns.push(key);
                client.resume(answered).await.expect("a turn")
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        (text(&result), turns),
        ("done".to_owned(), ["task", "a", "task", "b", "task"].map(String::from).to_vec())
    );
    assert_eq!(answers(&log).len(), 2);
}

/// T26: a handle can be asked again after an error, and has what was learned before it.
#[tokio::test(start_paused = true)]
async fn a_handle_survives_an_error() {
    let (client, log) = answered(|look| match look {
        0 => Answer::Result(asking([("a", party())])),
        1 => Answer::LateError(Duration::ZERO, json!({ "code": 1, "message": "no" })),
        2 => Answer::Result(asking([("a", party())])),
        _ => Answer::Result(completed()),
    });
    let client = client.on_form(async |form: FormRequest| form.decline());
    let mut task = client.task(Task::new("book", "t-1"));
    assert!(matches!(task.wait().await, Err(Error::Rejected(_))));
    let stored = serde_json::to_string(task.task()).expect("serialises");
    let task: Task = serde_json::from_str(&stored).expect("what was stored");
    assert_eq!(text(&client.task(task).wait().await.expect("a result")), "done");
    assert_eq!(answers(&log).len(), 1, "what was answered is not asked again");
}
