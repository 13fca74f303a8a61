//! Tasks in SEP-2322's dialect, of scripted servers: `tasks/get`, `tasks/result` and `tasks/input_response`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::{GaveUp, PeerMisbehaved, ServerRejection, TaskDialect, TaskError};
use roundtrip::wire::TaskStatus;
use roundtrip::{Client, Error, FormRequest, Pending, Started, Task, Turn};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::methods;
use crate::fixture::text;
use crate::rounds::script::{Answer, Log, asks, done, party, scripted};

const SEP_2322: &str = "dev.roundtrip/tasks-sep-2322";

/// A task as `tasks/get` shows it, without what its status brings along.
fn bare(status: &str) -> Value {
    json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "ttl": null,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "pollInterval": 5000,
    })
}

fn created() -> Value {
    json!({ "resultType": "complete", "task": bare("working") })
}

/// A client of a server that shows its task like this one after the other, and answers `tasks/result` so.
fn played(
    looks: impl Fn(usize) -> Answer + Send + Sync + 'static,
    results: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> (Client, Arc<Log>) {
    let (looked, fetched) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (client, log) = scripted(move |_, request| match request["method"].as_str() {
        Some("tasks/get") => looks(looked.fetch_add(1, Ordering::SeqCst)),
        Some("tasks/result") => results(fetched.fetch_add(1, Ordering::SeqCst)),
        Some("tools/call") => Answer::Result(created()),
        _ => Answer::Result(json!({ "resultType": "complete" })),
    });
    (client.tasks(TaskDialect::Sep2322), log)
}

fn seen<const N: usize, const M: usize>(looks: [&'static str; N], results: [Value; M]) -> (Client, Arc<Log>) {
    played(
        move |look| Answer::Result(bare(looks[look.min(N - 1)])),
        move |result| Answer::Result(results[result.min(M - 1)].clone()),
    )
}

fn refused(code: i64) -> Answer {
    Answer::LateError(Duration::ZERO, json!({ "code": code, "message": "no" }))
}

fn answering(client: Client) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = client.on_form(move |form: FormRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.accept(json!({ "people": 2 })) }
    });
    (client, asked)
}

/// T26: a call asks for a task with `task`; its questions and its result are fetched by `tasks/result`, the answers go to
/// `tasks/input_response` with the state of the questions, and `_meta` names the task. Every request declares the dialect.
#[tokio::test(start_paused = true)]
async fn a_task_is_driven_to_its_end() {
    let (client, log) =
        seen(["working", "input_required", "completed"], [asks([("a", party())], Some("s-1")), done()]);
    let (client, _) = answering(client);
    let begun = Instant::now();
    let call = client.call_tool("book", json!({ "at": "Nopa" })).keep_for(Duration::from_secs(60));
    assert_eq!(text(&call.await.expect("a result")), "done");
    assert_eq!(begun.elapsed(), Duration::from_secs(15), "as often as the server says");
    let sent = methods(&log);
    assert_eq!(
        sent.join(" "),
        "tools/call tasks/get tasks/get tasks/result tasks/input_response tasks/get tasks/result"
    );
    assert_eq!(log.params(0)["task"], json!({ "ttl": 60_000 }));
    let accepted = json!({ "action": "accept", "content": { "people": 2, "window": true } });
    assert_eq!(
        log.params(4),
        json!({ "taskId": "t-1", "inputResponses": { "a": accepted }, "requestState": "s-1" })
    );
    for (number, method) in sent.iter().enumerate() {
        assert_eq!(log.declared(number)["extensions"], json!({ SEP_2322: {} }));
        let related = &log.requests()[number]["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        let answers = method == "tasks/input_response";
        assert_eq!(*related, if answers { json!({ "taskId": "t-1" }) } else { Value::Null }, "{method}");
    }
}

/// T23, T26: a question that is asked again is answered again, under the same key as in the SEP or under a new one; a server
/// that never stops is given up before the next question is shown.
#[tokio::test(start_paused = true)]
async fn a_question_may_be_asked_again() {
    let party = |key: &str| asks([(key, party())], None);
    let (client, _log) = seen(
        ["input_required", "input_required", "input_required", "completed"],
        [party("party"), party("party"), party("party~2"), done()],
    );
    let (client, asked) = answering(client);
    assert_eq!(text(&client.call_tool("book", ()).await.expect("a result")), "done");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let (client, _log) = seen(["input_required"], [party("party")]);
    let (client, asked) = answering(client);
    let error = client.call_tool("book", ()).await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(GaveUp::TooManyRounds { .. })), "{error:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 10);
}

/// T26: a server that names this dialect alone is spoken to in it: after `server/discover`, and after the refusal of a call.
#[tokio::test(start_paused = true)]
async fn the_dialect_is_learnt_from_the_server() {
    let play = |_: usize, request: &Value| match request["method"].as_str() {
        Some("server/discover") => Answer::Result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
            "capabilities": { "extensions": { SEP_2322: {} } },
        })),
        Some("tools/call") if request["params"].get("task").is_none() => {
            let required = json!({ "requiredCapabilities": { "extensions": { SEP_2322: {} } } });
            let error = json!({ "code": -32021, "message": "a task", "data": required });
            Answer::LateError(Duration::ZERO, error)
        }
        Some("tools/call") => Answer::Result(created()),
        Some("tasks/get") => Answer::Result(bare("completed")),
        _ => Answer::Result(done()),
    };
    let (client, log) = scripted(play);
    assert_eq!(text(&client.call_tool("book", ()).await.expect("a result")), "done");
    assert_eq!(methods(&log), ["tools/call", "tools/call", "tasks/get", "tasks/result"]);
    assert_eq!(log.declared(0)["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(log.params(4)["task"], json!({}), "it is remembered");
    let (client, log) = scripted(play);
    client.discover().await.expect("a server");
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(methods(&log), ["server/discover", "tools/call", "tasks/get", "tasks/result"]);
    let (client, log) = scripted(play);
    let error = client.tasks(TaskDialect::Extension).call_tool("book", ()).await.expect_err("refused");
    assert!(matches!(error, Error::Rejected(ServerRejection::MissingCapability(_))), "{error:?}");
    assert_eq!(log.len(), 1, "the user's choice stands");
}

/// T26: the error of a task that failed is that of its call, whatever its code; a cancelled and a forgotten one are named.
#[tokio::test(start_paused = true)]
async fn how_a_task_ended_is_how_its_call_ended() {
    for code in [7, -32602] {
        let (client, _log) = played(|_| Answer::Result(bare("failed")), move |_| refused(code));
        let error = client.call_tool("book", ()).await.expect_err("failed");
        assert!(matches!(&error, Error::Rejected(refusal) if refusal.error().code == code), "{error:?}");
        let task = client.task(Task::new("book", "t-1")).status().await.expect("a status");
        assert_eq!((task.status, task.error.map(|error| error.code)), (TaskStatus::Failed, Some(code)));
    }
    let error = seen(["cancelled"], [done()]).0.call_tool("book", ()).await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
    let (client, _log) = played(|_| refused(-32602), |_| refused(-32602));
    let error = client.call_tool("book", ()).await.expect_err("forgotten");
    assert!(matches!(error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
}

/// T26: a task that moves on between two requests, because another client has answered or cancelled it, is looked at again; a
/// `tasks/result` that takes too long is too.
#[tokio::test(start_paused = true)]
async fn a_task_that_moves_on_is_looked_at_again() {
    let (client, _log) = played(
        |look| Answer::Result(bare(["input_required", "input_required", "completed"][look.min(2)])),
        |result| match result {
            0 => refused(503),
            1 => Answer::Silence,
            _ => Answer::Result(done()),
        },
    );
    assert_eq!(text(&client.call_tool("book", ()).await.expect("a result")), "done");
    let (client, _log) = played(
        |look| Answer::Result(bare(["input_required", "cancelled"][look.min(1)])),
        |_| refused(-32602),
    );
    let error = client.call_tool("book", ()).await.expect_err("cancelled");
    assert!(matches!(error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
}

/// T26, Z2: rubbish is named, and a server that never comes to an end is given up.
#[tokio::test(start_paused = true)]
async fn servers_that_break_the_rules_are_named() {
    let mut other = bare("working");
    other["taskId"] = json!("another");
    for look in [other, json!({ "resultType": "complete" }), json!({ "task": bare("working") }), bare("done")]
    {
        let shown = look.clone();
        let (client, _log) = played(move |_| Answer::Result(shown.clone()), |_| Answer::Result(done()));
        let error = client.call_tool("book", ()).await.expect_err("rubbish");
        let is_named = matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_)));
        assert!(is_named, "{error:?} for {look}");
    }
    for result in [
        json!({}),
        json!({ "resultType": "task" }),
        json!({ "resultType": "input_required" }),
        bare("working"),
    ] {
        let (client, _log) = seen(["completed"], [result.clone()]);
        let error = client.call_tool("book", ()).await.expect_err("rubbish");
        let is_named = matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_)));
        assert!(is_named, "{error:?} for {result}");
    }
    for task in [json!(7), json!({}), json!({ "taskId": "x" })] {
        let (client, _log) = scripted(move |_, _| Answer::Result(json!({ "task": task.clone() })));
        let error = client.tasks(TaskDialect::Sep2322).call_tool("book", ()).await.expect_err("no task");
        assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::MalformedResult(_))), "{error:?}");
    }
    for code in [503, -32602] {
        let (client, log) = played(|_| Answer::Result(bare("input_required")), move |_| refused(code));
        let error = client.call_tool("book", ()).await.expect_err("no end");
        assert!(matches!(error, Error::GaveUp(GaveUp::PolledTooLong { .. })), "{error:?}");
        assert!(log.len() < 200, "{} requests", log.len());
    }
}

/// T26, C14: a client that is restarted in the middle of a question answers it all the same, with the state that came with it; the
/// handle and the question are stored as JSON.
#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_question() {
    let (first, _log) = seen(["input_required"], [asks([("a", party())], Some("s-1"))]);
    let Started::Task(task) = first.call_tool("book", ()).into_task().await.expect("a task") else {
        panic!("a task");
    };
    let stored = serde_json::to_string(&task).expect("serialises");
    let Turn::Asked(pending) = first.task(task).turn().await.expect("a turn") else { panic!("it asks") };
    let asked = serde_json::to_string(&pending).expect("serialises");
    drop(first);

    // The other process has no settings of its own: what was stored tells the dialect.
    let (second, log) = scripted(|_, request| match request["method"].as_str() {
        Some("tasks/get") => Answer::Result(bare("completed")),
        Some("tasks/result") => Answer::Result(done()),
        _ => Answer::Result(json!({ "resultType": "complete" })),
    });
    let pending: Pending = serde_json::from_str(&asked).expect("what was stored");
    let answered = pending.answer("a", json!({ "people": 2 })).expect("fits");
    let Turn::Task(_) = second.resume(answered).await.expect("a turn") else { panic!("it goes on") };
    assert_eq!(log.params(0)["requestState"], json!("s-1"));
    assert_eq!(log.declared(0)["extensions"], json!({ SEP_2322: {} }));
    let task: Task = serde_json::from_str(&stored).expect("what was stored");
    assert_eq!(text(&second.task(task).wait().await.expect("a result")), "done");
    assert_eq!(methods(&log), ["tasks/input_response", "tasks/get", "tasks/result"]);
}

/// T26: a task by its identifier alone, in the client's dialect: its status is in full, it is answered one question at a time, and
/// the hook sees its status.
#[tokio::test(start_paused = true)]
async fn a_task_is_found_again_by_its_id() {
    let both = || asks([("a", party()), ("b", party())], None);
    let (client, log) = seen(
        ["input_required", "input_required", "input_required", "completed"],
        [both(), both(), asks([("b", party())], None), done()],
    );
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let mut task = client.task(Task::new("book", "t-1")).on_status(move |task| {
        keep.lock().expect("a list").push(task.status);
    });
    let status = task.status().await.expect("a status");
    assert_eq!((status.status, status.input_requests.len()), (TaskStatus::InputRequired, 2));
    task.answer("a", json!({ "people": 2 })).await.expect("an answer");
    task.answer("b", json!({ "people": 3 })).await.expect("an answer");
    assert_eq!(text(&task.wait().await.expect("a result")), "done");
    let answers = methods(&log).iter().filter(|method| *method == "tasks/input_response").count();
    assert_eq!(answers, 2);
    assert!(told.lock().expect("a list").contains(&TaskStatus::InputRequired));
}
