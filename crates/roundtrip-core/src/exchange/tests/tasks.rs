//! Calls that go on as tasks.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Action, Exchange, FlowLimits, Task};
use super::{asked, asks, call, done, people, reply, sent};
use crate::error::{ApiMisuse, Error, GaveUp, PeerMisbehaved, ServerRejection, TaskError};
use crate::wire::{CallTool, ErrorObject, Raw, TaskStatus};

const MINUTE: Duration = Duration::from_secs(60);

/// A task as `tasks/get` shows it, with more members.
#[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
fn task(status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "ttlMs": null,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "pollIntervalMs": 5000,
    });
    let more = more.as_object().cloned().expect("an object");
    task.as_object_mut().expect("an object").extend(more);
    task
}

fn working() -> Value {
    task("working", json!({}))
}

#[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
fn asking(questions: Value) -> Value {
    task("input_required", json!({ "inputRequests": questions }))
}

/// The flow after a reply that leaves it a task.
fn waits(exchange: Exchange<CallTool>, result: Value) -> Task {
    match reply(exchange, result) {
        Ok(Action::Wait(task)) => task,
        other => panic!("a task, not {other:?}"),
    }
}

/// A call that has become a task.
fn created(seed: Value) -> Task {
    created_by(call(), seed)
}

fn created_by(call: Exchange<CallTool>, seed: Value) -> Task {
    let mut seed = seed;
    seed["resultType"] = json!("task");
    waits(call, seed)
}

fn stored(task: &Task) -> Task {
    let text = serde_json::to_string(task).expect("serialises");
    assert!(!text.contains("Nopa"), "arguments are not kept: {text}");
    serde_json::from_str(&text).expect("what was stored")
}

fn pause(task: &Task) -> Duration {
    task.pause_after(Duration::ZERO)
}

/// C14, T26: a call becomes a task, which is looked at, asks, is answered under its own method, and ends with the call's result.
#[test]
fn a_task_is_driven_by_the_same_machine() {
    let task = created(working());
    assert_eq!((task.id(), task.target().as_deref()), ("t-1", Some("book")));
    let look = task.poll();
    assert_eq!((look.method(), sent(&look)), ("tasks/get", json!({ "taskId": "t-1" })));
    assert!(look.request_key().is_none());
    let task = waits(look, working());
    let pending = asked(task.poll(), asking(json!({ "a": people() })));
    assert_eq!((pending.method(), pending.target().as_deref()), ("tools/call", Some("book")));
    assert_eq!(pending.task().map(|task| task.status), Some(TaskStatus::InputRequired));
    let update = pending.answer("a", json!({ "people": 2 })).expect("fits").resume().expect("answered");
    assert_eq!(update.method(), "tasks/update");
    let responses = json!({ "a": { "action": "accept", "content": { "people": 2, "window": true } } });
    assert_eq!(sent(&update), json!({ "taskId": "t-1", "inputResponses": responses }));
    let task = waits(update, json!({ "resultType": "complete" }));
    let ended = reply(task.poll(), self::task("completed", json!({ "result": done() })));
    assert!(matches!(ended, Ok(Action::Done(_))), "{ended:?}");
}

/// T26: a question that was answered is not shown again, in whatever state the server still shows it, here or in another
/// process; one that was only shown is.
#[test]
fn an_answered_question_is_not_shown_again() {
    let both = asking(json!({ "a": people(), "b": people() }));
    let pending = asked(created(working()).poll(), both.clone());
    let update = pending.decline("a").expect("fits").resume().expect("a part is enough");
    let task = stored(&waits(update, json!({})));
    let pending = asked(task.poll(), both.clone());
    assert_eq!(pending.questions().map(|question| question.key()).collect::<Vec<_>>(), ["b"]);
    assert!(matches!(
        pending.clone().resume(),
        Err(Error::ApiMisuse(ApiMisuse::Unanswered { keys })) if keys == ["b"]
    ));
    let task = waits(pending.decline("b").expect("fits").resume().expect("answered"), json!({}));
    let task = stored(&waits(task.poll(), both));
    assert_eq!(task.last_seen().status, TaskStatus::InputRequired);
}

/// T26: how a task ended is the outcome of its call.
#[test]
fn a_task_without_a_result_is_an_error() {
    let end = |result: Value| reply(created(working()).poll(), result).expect_err("no result");
    let failed = end(task("failed", json!({ "error": { "code": -32603, "message": "broken" } })));
    assert!(matches!(&failed, Error::Rejected(ServerRejection::Other(error)) if error.code == -32603));
    let cancelled = end(task("cancelled", json!({ "statusMessage": "too late" })));
    assert!(matches!(&cancelled, Error::Task(TaskError::Cancelled { .. })));
    assert_eq!(cancelled.to_string(), "the task of `tools/call` of `book` was cancelled: too late");
    for (status, more) in [
        ("completed", json!({})),
        ("completed", json!({ "result": 7 })),
        ("completed", json!({ "result": asks(json!({ "a": people() }), None) })),
        ("failed", json!({})),
        ("failed", json!({ "error": "broken" })),
        ("working", json!({ "taskId": "t-2" })),
        ("asleep", json!({})),
    ] {
        let error = end(task(status, more));
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_))), "{error:?}");
    }
}

/// T26: a task that the server does not know is named; other errors are left as they are.
#[test]
fn a_forgotten_task_is_named() {
    let unknown = || Error::from(ErrorObject::invalid_params("no such task"));
    let error = created(working()).poll().failed(unknown());
    assert!(matches!(&error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
    assert!(error.to_string().contains("`tools/call` of `book`"), "{error}");
    assert!(matches!(call().failed(unknown()), Error::Rejected(_)));
    let other = created(working()).poll().failed(Error::Closed);
    assert!(matches!(other, Error::Closed));
}

/// T26: the server sets the pace, within bounds.
#[test]
fn the_pace_is_the_servers_within_bounds() {
    let paced = |more: Value| pause(&created(task("working", more)));
    assert_eq!(pause(&created(working())), Duration::from_secs(5));
    assert_eq!(paced(json!({ "pollIntervalMs": 0 })), Duration::from_millis(50));
    assert_eq!(paced(json!({ "pollIntervalMs": u64::MAX })), Duration::from_secs(3600));
    assert_eq!(paced(json!({ "pollIntervalMs": 60_000, "ttlMs": 60_000 })), Duration::from_secs(30));
    assert_eq!(paced(json!({ "pollIntervalMs": 60_000, "ttlMs": 0 })), Duration::from_millis(50));
    let mut unpaced = created(task("working", json!({ "pollIntervalMs": null })));
    let mut pauses = Vec::new();
    for _ in 0..8 {
        pauses.push(pause(&unpaced).as_millis());
        unpaced = waits(unpaced.poll(), task("working", json!({ "pollIntervalMs": null })));
    }
    assert_eq!(pauses, [50, 100, 200, 250, 500, 1000, 2000, 2000]);
    let task = created(working());
    assert_eq!(task.pause_after(Duration::from_secs(4)), Duration::from_secs(1));
    assert_eq!(task.pause_after(MINUTE), Duration::from_millis(50));
    assert_eq!(pause(&created(asking(json!({})))), Duration::ZERO, "there is nothing to wait for");
}

/// T26: a task that never ends is given up a while after its time to live, and not before.
#[test]
fn a_time_to_live_is_a_bound() {
    let mut task = created(task("working", json!({ "ttlMs": 600_000, "pollIntervalMs": 60_000 })));
    let mut looks = 0;
    let error = loop {
        let seen = self::task("working", json!({ "ttlMs": 600_000, "pollIntervalMs": 60_000 }));
        match reply(task.poll(), seen) {
            Ok(Action::Wait(next)) => task = stored(&next),
            Ok(other) => panic!("a task, not {other:?}"),
            Err(error) => break error,
        }
        looks += 1;
    };
    assert!(
        matches!(&error, Error::Task(TaskError::Expired { ttl, .. }) if *ttl == 10 * MINUTE),
        "{error:?}"
    );
    assert_eq!(looks, 11);
}

/// T26: a task that keeps asking what it was told is given up; one that asks something new is not.
#[test]
fn a_task_that_does_not_take_an_answer_is_given_up() {
    let question = asking(json!({ "a": people() }));
    let answered = |task: Task, result: &Value| {
        let pending = asked(task.poll(), result.clone());
        let key = pending.questions().next().expect("a question").key().to_owned();
        waits(pending.decline(&key).expect("fits").resume().expect("answered"), json!({}))
    };
    let mut task = answered(created(working()), &question);
    let mut looks = 0;
    let error = loop {
        let result = if looks % 2 == 0 { question.clone() } else { working() };
        match reply(task.poll(), result) {
            Ok(Action::Wait(next)) => task = next,
            Ok(other) => panic!("a task, not {other:?}"),
            Err(error) => break error,
        }
        looks += 1;
        if looks == 40 {
            task = answered(task, &asking(json!({ "b": people() })));
        }
    };
    assert!(matches!(error, Error::GaveUp(GaveUp::PolledTooLong { .. })), "{error:?}");
    // Five minutes of 5 seconds each, every other look, from the last new question on.
    assert_eq!(looks, 40 + 2 * 60);
}

/// C6, T26: questions of a task count as rounds of its call, and too many of them are refused before they are shown.
#[test]
fn questions_of_a_task_are_bounded() {
    let limits = FlowLimits { rounds: 2, questions: 3, ..FlowLimits::default() };
    let mut task = created_by(call().limits(limits), working());
    for key in ["a", "b"] {
        let pending = asked(task.poll(), asking(json!({ key: people() })));
        task = waits(pending.decline(key).expect("fits").resume().expect("answered"), json!({}));
    }
    let error = reply(task.clone().poll(), asking(json!({ "c": people() }))).expect_err("too many rounds");
    assert!(matches!(error, Error::GaveUp(GaveUp::TooManyRounds { .. })), "{error:?}");
    let flood = json!({ "c": people(), "d": people(), "e": people(), "f": people() });
    let error = reply(task.poll(), asking(flood)).expect_err("too many questions");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::TooManyQuestions { .. })), "{error:?}");
}

/// T26: an identifier that no header can carry is refused when the task is created.
#[test]
fn identifiers_are_bounded() {
    for length in [0, 1025, 1 << 20] {
        let seed = task("working", json!({ "resultType": "task", "taskId": "x".repeat(length) }));
        let error = reply(call(), seed).expect_err("no identifier");
        assert!(error.to_string().contains(&format!("an id of {length} bytes")), "{error}");
        assert!(error.to_string().len() < 200, "{error}");
    }
}

/// C14: rounds come first, and a task after them; arguments, answers and state end there.
#[test]
fn rounds_come_before_a_task() {
    let pending = asked(call(), asks(json!({ "a": people() }), Some("s3cret")));
    let retry = pending.answer("a", json!({ "people": 11 })).expect("fits").resume().expect("answered");
    let task = created_by(retry, working());
    let text = serde_json::to_string(&task).expect("serialises");
    assert!(!text.contains("s3cret") && !text.contains("11") && !text.contains("Nopa"), "{text}");
    assert!(!format!("{task:?}").contains("t-1"), "{task:?}");
    assert_eq!(sent(&stored(&task).poll()), json!({ "taskId": "t-1" }));
}

/// T26: a task is found again by its identifier alone, and read in full by those who look at it themselves.
#[test]
fn a_task_is_found_again_by_its_identifier() {
    let mut task = Task::new("book", "t-1");
    assert_eq!(task.target().as_deref(), Some("book"));
    let result = Raw::from(self::task("completed", json!({ "resultType": "task", "result": done() })));
    let seen = task.observe(result.as_ref()).expect("a task");
    assert!(seen.result.is_some() && task.last_seen().result.is_none());
    assert_eq!(task.last_seen().status, TaskStatus::Completed);
    let other = Raw::from(self::task("working", json!({ "taskId": "t-2" })));
    assert!(matches!(task.observe(other.as_ref()), Err(Error::PeerMisbehaved(_))));
    assert!(Raw::from(Value::from("x")).to::<Task>().is_err());
}

/// W8: `tasks/get` without a `resultType` is complete, and so is one with the type that some examples of the extension have.
#[test]
fn the_type_of_a_look_may_be_left_out() {
    for result_type in [Value::Null, json!("task"), json!("complete")] {
        let mut result = working();
        match &result_type {
            Value::Null => drop(result.as_object_mut().and_then(|members| members.remove("resultType"))),
            named => result["resultType"] = named.clone(),
        }
        assert_eq!(waits(created(working()).poll(), result).id(), "t-1", "{result_type}");
    }
    let error = reply(created(working()).poll(), task("working", json!({ "resultType": "riddle" })));
    assert!(
        matches!(error, Err(Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(why))) if why.contains("`riddle`"))
    );
}

/// C15: a task in answer to a method that cannot be one is an unknown result.
#[test]
fn only_tools_become_tasks() {
    use crate::wire::ReadResource;
    let params = [("uri", Raw::from(json!("app://x")))].into_iter().collect();
    let mut seed = working();
    seed["resultType"] = json!("task");
    let error = Exchange::<ReadResource>::new(params)
        .reply(Raw::from(seed).as_ref(), Duration::ZERO)
        .expect_err("no task");
    assert!(
        matches!(&error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(why)) if why.contains("`task`"))
    );
}
