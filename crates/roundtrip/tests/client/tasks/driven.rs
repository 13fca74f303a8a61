//! Tasks that a call drives to their end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::{PeerMisbehaved, Sent, ServerRejection, TaskError};
use roundtrip::{Client, Error, FormRequest, Started, Task, UrlAnswer, UrlRequest};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{answered, answers, asking, completed, methods, seen, task, working};
use crate::fixture::text;
use crate::rounds::script::{Answer, done, page, party, replies};

const HOUR: Duration = Duration::from_secs(3600);

/// A client that fills forms in, and counts them.
fn counting(client: Client) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = client.on_form(move |form: FormRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.accept(json!({ "people": 2 })) }
    });
    (client, asked)
}

/// C14, T26: a call that becomes a task is looked at as often as the server says, its questions go to the handlers, their answers
/// to `tasks/update`, and its result is that of the call. Every request about it declares the extension.
#[tokio::test(start_paused = true)]
async fn a_task_is_driven_to_its_end_by_its_call() {
    let (client, log) = seen([working(), asking([("a", party())]), completed()]);
    let origin = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&origin);
    let client = client.on_form(move |form: FormRequest| {
        *keep.lock().expect("an origin") = Some(form.origin.clone());
        async move { form.accept(json!({ "people": 2 })) }
    });
    let begun = Instant::now();
    let result = client.call_tool("book", json!({ "at": "Nopa" })).await.expect("a result");
    assert_eq!(text(&result), "done");
    assert_eq!(begun.elapsed(), Duration::from_secs(15));
    assert_eq!(methods(&log), ["tools/call", "tasks/get", "tasks/get", "tasks/update", "tasks/get"]);
    let accepted = json!({ "action": "accept", "content": { "people": 2, "window": true } });
    assert_eq!(log.params(3), json!({ "taskId": "t-1", "inputResponses": { "a": accepted } }));
    for number in 0..5 {
        assert_eq!(log.declared(number)["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    }
    let origin = origin.lock().expect("an origin").clone().expect("it was asked");
    assert_eq!((origin.method, origin.target.as_deref(), &*origin.key), ("tools/call", Some("book"), "a"));
}

/// T26: a key that was answered is not shown again, however often the server shows it.
#[tokio::test(start_paused = true)]
async fn a_question_is_shown_once() {
    let both = asking([("a", party()), ("b", party())]);
    let (client, log) = seen([asking([("a", party())]), asking([("a", party())]), both, completed()]);
    let (client, asked) = counting(client);
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let accepted = json!({ "action": "accept", "content": { "people": 2, "window": true } });
    assert_eq!(answers(&log), [json!({ "a": accepted }), json!({ "b": accepted })]);
}

/// T26: a task that fails, is cancelled or forgotten, ends its call with an error that says so.
#[tokio::test(start_paused = true)]
async fn how_a_task_ended_is_how_its_call_ended() {
    let failed = task("failed", json!({ "error": { "code": 7, "message": "broken" } }));
    let error = seen([failed]).0.call_tool("book", ()).await.expect_err("failed");
    assert!(matches!(&error, Error::Rejected(ServerRejection::Other(error)) if error.code == 7), "{error:?}");
    let error = seen([task("cancelled", json!({}))]).0.call_tool("book", ()).await.expect_err("cancelled");
    assert!(matches!(&error, Error::Task(TaskError::Cancelled { .. })), "{error:?}");
    let unknown = json!({ "code": -32602, "message": "no such task" });
    let (client, _log) = answered(move |_| Answer::LateError(Duration::ZERO, unknown.clone()));
    let error = client.call_tool("book", ()).await.expect_err("forgotten");
    assert!(matches!(&error, Error::Task(TaskError::Unknown { .. })), "{error:?}");
    let failed_tool = json!({ "resultType": "complete", "content": [], "isError": true });
    let (client, _log) = seen([task("completed", json!({ "result": failed_tool }))]);
    assert_eq!(client.call_tool("book", ()).await.expect("a result").is_error, Some(true));
}

/// C8, T26: a task may take days: the timeout is for each request, and the deadline for everything.
#[tokio::test(start_paused = true)]
async fn a_task_may_take_days() {
    let slow = || task("working", json!({ "pollIntervalMs": 3_600_000 }));
    let days =
        move |look| Answer::Late(Duration::from_secs(50), if look < 72 { slow() } else { completed() });
    let (client, log) = answered(days);
    client.call_tool("book", ()).await.expect("a result after three days");
    let looks = methods(&log).iter().filter(|method| *method == "tasks/get").count();
    assert_eq!((looks, log.len()), (73, 1 + 73 + 1), "one attempt to listen");
    let (client, log) = seen([working()]);
    let error = client.call_tool("book", ()).deadline(HOUR).await.expect_err("out of time");
    assert!(matches!(error, Error::Timeout { after, .. } if after == HOUR), "{error:?}");
    let so_far = log.len();
    sleep(HOUR).await;
    assert_eq!(log.len(), so_far, "nothing is sent afterwards");
}

/// T26: a call that is dropped leaves its task as it is: cancelling one is a request of its own.
#[tokio::test(start_paused = true)]
async fn dropping_a_call_does_not_cancel_its_task() {
    let (client, log) = seen([working()]);
    let call = client.call_tool("book", ()).into_future();
    assert!(timeout(HOUR, call).await.is_err(), "it works");
    assert!(!methods(&log).contains(&"tasks/cancel".to_owned()));
}

/// C12: a client that is closed waits for no task.
#[tokio::test(start_paused = true)]
async fn closing_a_client_ends_the_wait_for_a_task() {
    let (client, log) = seen([task("working", json!({ "pollIntervalMs": 3_600_000 }))]);
    let begun = Instant::now();
    let call = client.call_tool("book", ()).into_future();
    let (ended, ()) = tokio::join!(call, async {
        sleep(Duration::from_secs(1)).await;
        client.close().await;
    });
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
    assert_eq!((begun.elapsed(), log.len()), (Duration::from_secs(1), 1));
}

/// T26: a task outlives its connection: requests about it are sent again, answers included, for as long as an outage may take.
#[tokio::test(start_paused = true)]
async fn a_task_outlives_an_outage() {
    let (client, log) = answered(|look| match look {
        1..20 => Answer::Broken(Sent::Maybe),
        20 => Answer::LateError(Duration::ZERO, json!({ "code": 503, "message": "busy" })),
        21 => Answer::Result(completed()),
        _ => Answer::Result(working()),
    });
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(log.len(), 1 + 22);
    let (client, _log) = answered(|_| Answer::Broken(Sent::Maybe));
    let begun = Instant::now();
    let error = client.call_tool("book", ()).await.expect_err("out of reach");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("`tasks/get` of `book`"), "the tool is named: {error}");
    assert!((60..180).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// T26: the hook is told of the task, and of every change of its status and its message.
#[tokio::test(start_paused = true)]
async fn a_hook_sees_the_status() {
    let says = |message: &str| task("working", json!({ "statusMessage": message }));
    let (client, _log) = seen([says("1"), says("1"), says("2"), asking([("a", party())]), completed()]);
    let (client, _) = counting(client);
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let call = client.call_tool("book", ()).on_status(move |task| {
        let message = task.status_message.clone().unwrap_or_default();
        keep.lock().expect("a list").push(format!("{} {} {message}", task.task_id, task.status));
    });
    call.await.expect("a result");
    let told = told.lock().expect("a list").clone();
    assert_eq!(told, ["t-1 working ", "t-1 working 1", "t-1 working 2", "t-1 input_required "]);
}

/// C13: the hook for rounds sees a task's questions, and can refuse them; no handler is asked.
#[tokio::test(start_paused = true)]
async fn a_hook_can_refuse_the_questions_of_a_task() {
    let (client, log) = seen([asking([("a", party())])]);
    let (client, asked) = counting(client);
    let call = client.call_tool("book", ()).on_round(|round| match round.task() {
        Some(task) => Err(format!("not in {}", task.task_id)),
        None => Ok(()),
    });
    let error = call.await.expect_err("refused");
    assert!(matches!(&error, Error::Handler(why) if why.to_string() == "not in t-1"), "{error:?}");
    assert_eq!((asked.load(Ordering::SeqCst), answers(&log).len()), (0, 0));
}

/// E5: a task cannot send people anywhere that a call cannot.
#[tokio::test(start_paused = true)]
async fn pages_of_a_task_are_checked() {
    let mut unsafe_page = page();
    unsafe_page["params"]["url"] = json!("javascript:alert(1)");
    let (client, _log) = seen([asking([("a", unsafe_page)])]);
    let client = client.on_url(async |_: UrlRequest| -> UrlAnswer { panic!("shown") });
    let error = client.call_tool("book", ()).await.expect_err("no page");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::UnsafeUrl(_))), "{error:?}");
    let error = client.task(Task::new("book", "t-1")).status().await.expect_err("no page");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::UnsafeUrl(_))), "{error:?}");
}

/// T26: tasks are declared where they matter, and not at all by a client that is told not to; a server that makes one all the
/// same breaks the protocol.
#[tokio::test(start_paused = true)]
async fn tasks_are_declared_for_tools_and_can_be_turned_off() {
    let (client, log) = replies([done(), json!({ "messages": [] })]);
    client.call_tool("book", ()).await.expect("a result");
    client.get_prompt("review").await.expect("a prompt");
    assert_eq!(log.declared(0), json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    assert_eq!(log.declared(1), json!({}));
    let (client, log) = seen([completed()]);
    let error = client.without_tasks().call_tool("book", ()).await.expect_err("not offered");
    assert!(matches!(error, Error::PeerMisbehaved(PeerMisbehaved::NotOffered(_))), "{error:?}");
    assert_eq!((log.declared(0), log.len()), (json!({}), 1));
}

/// C14: a call hands its task over, or its result where it did not become one.
#[tokio::test(start_paused = true)]
async fn a_call_hands_its_task_over() {
    let (client, log) = replies([done()]);
    let started = client.call_tool("book", ()).into_task().await.expect("a result");
    assert!(matches!(started, Started::Done(result) if text(&result) == "done"));
    assert_eq!(log.len(), 1);
    let (client, log) = seen([completed()]);
    let started = client.call_tool("book", ()).into_task().await.expect("a task");
    assert!(matches!(started, Started::Task(task) if task.id() == "t-1"));
    assert_eq!(log.len(), 1, "it is not looked at");
}
