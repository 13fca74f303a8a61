//! Servers with tasks and a ledger: a round becomes one task at most, however often it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::server::ledger::IDEMPOTENCY_KEY;
use roundtrip::{Ask, Form, MemoryLedger, Server, State, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::clocked::Clocked;
use super::{TaskClient, says, text};

#[derive(Form)]
struct Name {
    name: String,
}

/// Effects so far, and the signals between handler and test.
#[derive(Clone, Default)]
struct Work {
    done: Arc<AtomicUsize>,
    begun: Arc<Notify>,
    go: Arc<Notify>,
}

impl Work {
    /// Does it, and waits until the test lets it go.
    async fn wait(&self) -> usize {
        let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        self.begun.notify_one();
        self.go.notified().await;
        done
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

/// Asks in a round, and is a task from there on.
async fn export(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("format", "Which format?").await?;
    ask.detach("collecting").await?;
    Ok(name)
}

/// Is a task from its beginning on, by its own wish; where it cannot be one, it does its work in the call.
async fn collect(ask: Ask, State(work): State<Work>) -> Result<String, ToolError> {
    ask.detach("collecting").await?;
    Ok(format!("collected {}", work.wait().await))
}

/// Takes a step in the call, and is a task after it.
async fn charge(ask: Ask, State(work): State<Work>) -> Result<String, ToolError> {
    let run = ask.once("charge", async |_| Ok::<_, ToolError>(work.wait().await)).await?;
    ask.detach("delivering").await?;
    Ok(format!("charge {run}"))
}

async fn train(State(work): State<Work>) -> String {
    format!("trained {}", work.wait().await)
}

fn client(tasks: Tasks, work: &Work, ledger: &MemoryLedger) -> TaskClient {
    let late = When::After(Duration::MAX);
    let server = Server::new("tasks", "1.0.0")
        .state(work.clone())
        .tool(Tool::new("export", export).task(late))
        .tool(Tool::new("collect", collect).task(late))
        .tool(Tool::new("charge", charge).task(late))
        .tool(Tool::new("train", train).task(When::Required));
    TaskClient::of(server.tasks(tasks).ledger(ledger.clone()))
}

/// A call with a key of its caller's own, that asks for a task in dialects where it has to.
fn keyed(tool: &str, key: &str) -> Value {
    json!({ "name": tool, "task": {}, "_meta": { IDEMPOTENCY_KEY: key } })
}

/// A call that runs until it is aborted, as a client hangs up.
fn spawned(client: &TaskClient, call: &Value) -> JoinHandle<Value> {
    let (client, call) = (client.clone(), call.clone());
    tokio::spawn(async move { client.ask("tools/call", call).await })
}

/// Hangs up, and waits until the server knows.
async fn hang_up(call: JoinHandle<Value>) {
    call.abort();
    assert!(call.await.is_err(), "it has not been answered");
}

/// M6, T1, T20: the reply that creates a task is recorded, in the extension and in the dialect of SEP-2322. A first round that is
/// repeated with its caller's key, and a later one that is repeated with its token, name the task that they became.
#[tokio::test]
async fn a_repeated_round_names_its_task() {
    let (store, work) = (Clocked::default(), Work::default());
    let extension = client(Tasks::new(store.store()).sep_2322(), &work, &MemoryLedger::new());
    let sep_2322 = extension.clone().sep_2322();
    for (client, at, key) in [(extension, "/taskId", "one"), (sep_2322, "/task/taskId", "two")] {
        let before = store.creates();
        let call = keyed("train", key);
        let created = client.result("tools/call", call.clone()).await;
        assert!(created.pointer(at).is_some_and(Value::is_string), "{created}");
        assert_eq!(client.result("tools/call", call).await, created);
        let mut call = json!({ "name": "export", "task": {} });
        let asks = client.result("tools/call", call.clone()).await;
        call["requestState"] = asks["requestState"].clone();
        call["inputResponses"] = json!({ "format": says("csv") });
        let created = client.result("tools/call", call.clone()).await;
        assert!(created.pointer(at).is_some_and(Value::is_string), "{created}");
        for format in ["csv", "pdf"] {
            call["inputResponses"] = json!({ "format": says(format) });
            assert_eq!(client.result("tools/call", call.clone()).await, created, "the first answers win");
        }
        assert_eq!(store.creates(), before + 2);
    }
}

/// M6: a client that hangs up while its call becomes a task loses nothing: the round goes on until the task is recorded, and the
/// repeat gets it. No second one is created, and the handler goes on.
#[tokio::test]
async fn hanging_up_while_a_task_is_created_creates_no_other() {
    for (tool, result) in [("train", "trained 1"), ("collect", "collected 1")] {
        let (store, work) = (Clocked::holding_new_tasks(), Work::default());
        let client = client(Tasks::new(store.store()), &work, &MemoryLedger::new());
        let call = keyed(tool, "k");
        let first = spawned(&client, &call);
        store.is_creating().await;
        hang_up(first).await;
        store.let_go();
        let created = client.result("tools/call", call.clone()).await;
        assert_eq!(client.result("tools/call", call).await, created);
        assert_eq!(store.creates(), 1, "{tool}");
        work.go.notify_one();
        let id = created["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}"));
        assert_eq!(text(&client.ended(id).await), result);
    }
}

/// M6: a round that goes on without its client, because it has begun a step, may still become a task, and is recorded as one.
#[tokio::test]
async fn a_round_without_a_client_becomes_a_task() {
    let work = Work::default();
    let client = client(Tasks::new(Clocked::default().store()), &work, &MemoryLedger::new());
    let call = keyed("charge", "k");
    let first = spawned(&client, &call);
    work.begun.notified().await;
    hang_up(first).await;
    work.go.notify_one();
    let created = client.result("tools/call", call.clone()).await;
    let id = created["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}"));
    assert_eq!(text(&client.ended(id).await), "charge 1");
    assert_eq!(client.result("tools/call", call).await, created);
    assert_eq!(work.done(), 1);
}

/// H5, M6: a call that cannot become a task goes on as a call: hanging up cancels it, and gives its round back.
#[tokio::test]
async fn a_call_without_room_for_its_task_is_cancelled_as_others_are() {
    let (store, work, ledger) = (Clocked::default(), Work::default(), MemoryLedger::new());
    let client = client(Tasks::new(store.store()).per_caller(1), &work, &ledger);
    client.start("train", json!({})).await;
    work.begun.notified().await;
    let call = keyed("collect", "k");
    let first = spawned(&client, &call);
    work.begun.notified().await;
    assert_eq!((store.creates(), ledger.len()), (2, 1), "it runs under its claim");
    hang_up(first).await;
    assert!(ledger.is_empty());
    let again = spawned(&client, &call);
    work.begun.notified().await;
    work.go.notify_waiters();
    let answer = again.await.expect("an answer");
    assert_eq!(answer["result"]["content"][0]["text"], "collected 3", "{answer}");
}
