//! Clocks that jump, and times to live that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::{Ask, Form, Server, State, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::clocked::Clocked;
use super::{Dropped, TaskClient, says, text};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Form)]
struct Name {
    name: String,
}

/// Signals of a handler, for the test.
#[derive(Clone, Default)]
struct Signals {
    runs: Arc<AtomicUsize>,
    first: Arc<AtomicUsize>,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
    dropped: Arc<Notify>,
}

/// Takes a step, waits for the test, and asks.
async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
    let _dropped = Dropped(Arc::clone(&signals.dropped));
    signals.runs.fetch_add(1, Ordering::SeqCst);
    ask.remember("first", async || signals.first.fetch_add(1, Ordering::SeqCst)).await?;
    signals.begun.notify_one();
    signals.go_on.notified().await;
    let Name { name } = ask.form("name", "Who?").await?;
    Ok(format!("Hello, {name}!"))
}

fn client(store: &Clocked, signals: &Signals, tasks: impl FnOnce(Tasks) -> Tasks) -> TaskClient {
    let tool = Tool::new("job", job).task(When::Required);
    let tasks = tasks(Tasks::new(store.store()));
    TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).state(signals.clone()).tasks(tasks))
}

/// The code and the message of the error that a task is read with, once it is gone.
async fn gone(client: &TaskClient, id: &str) -> (Value, Value) {
    loop {
        let answer = client.send("tasks/get", json!({ "taskId": id })).await;
        if let Some(error) = answer.get("error") {
            return (error["code"].clone(), error["message"].clone());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// T7, T15: a clock that jumps forward ends every lease. A process that finds its own task due continues with it under the next
/// fence: no second run begins, and the step that runs is not begun again.
#[tokio::test]
async fn a_process_that_finds_its_own_task_due_continues_with_it() {
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, |tasks| tasks.lease(3 * HOUR));
    let id = client.start("job", json!({})).await;
    signals.begun.notified().await;
    assert_eq!(store.stored(&id).await.fence, 1);
    store.jump(6 * HOUR);
    while store.stored(&id).await.fence == 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    signals.go_on.notify_one();
    client.asks(&id).await;
    assert_eq!(signals.runs.load(Ordering::SeqCst), 1, "the first run goes on");
    signals.go_on.notify_one();
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&client.ended(&id).await), "Hello, Ada!");
    assert_eq!(signals.first.load(Ordering::SeqCst), 1, "its result was stored");
}

/// T8: a process that has taken its own task again hears of its cancellation at once: its lease has hours to go.
#[tokio::test]
async fn a_task_that_was_taken_again_can_be_cancelled() {
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, |tasks| tasks.lease(3 * HOUR));
    let id = client.start("job", json!({})).await;
    signals.begun.notified().await;
    store.jump(6 * HOUR);
    while store.stored(&id).await.fence == 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.cancel(&id).await;
    assert_eq!(client.ended(&id).await["status"], "cancelled");
}

/// T7: a clock that is set back keeps no handler from going on, and no answer from its task.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_loses_nothing() {
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, |tasks| tasks);
    let id = client.start("job", json!({})).await;
    signals.begun.notified().await;
    store.jump_back(HOUR);
    signals.go_on.notify_one();
    client.asks(&id).await;
    store.jump_back(HOUR);
    signals.go_on.notify_one();
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&client.ended(&id).await), "Hello, Ada!");
    assert_eq!(signals.first.load(Ordering::SeqCst), 1);
}

/// T6: a task whose time to live ends while it works has failed, not before, and its handler is dropped; then it is gone.
#[tokio::test(start_paused = true)]
async fn a_time_to_live_ends_in_mid_work() {
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, |tasks| tasks.keep_for(MINUTE));
    let begun = Instant::now();
    let id = client.start("job", json!({})).await;
    signals.dropped.notified().await;
    // The time to live is to the millisecond, and counts from the creation.
    assert!(begun.elapsed() + Duration::from_millis(50) >= MINUTE, "{:?}", begun.elapsed());
    let task = client.ended(&id).await;
    assert_eq!((&task["status"], &task["ttlMs"]), (&json!("failed"), &json!(60_000)), "{task}");
    assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains("time to live")), "{task}");
    store.jump(2 * MINUTE);
    let (code, message) = gone(&client, &id).await;
    assert_eq!((code, message), (json!(-32602), json!(format!("params.taskId: no such task: {id}"))));
}

/// T6: a task whose time to live ends while it asks has failed, not before; an answer changes nothing any more. Then it is gone.
#[tokio::test(start_paused = true)]
async fn a_time_to_live_ends_in_mid_question() {
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, |tasks| tasks.keep_for(MINUTE));
    let id = client.start("job", json!({})).await;
    signals.go_on.notify_one();
    client.asks(&id).await;
    store.jump(MINUTE - Duration::from_secs(20));
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(client.get(&id).await["status"], "input_required", "it has been looked at, and has time left");
    store.jump(Duration::from_secs(20));
    let task = client.ended(&id).await;
    assert_eq!(task["status"], "failed", "{task}");
    assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains("time to live")), "{task}");
    assert!(task.get("inputRequests").is_none(), "{task}");
    client.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(client.get(&id).await["status"], "failed");
    store.jump(2 * MINUTE);
    assert_eq!(gone(&client, &id).await.0, -32602);
}
