//! Workers that are asked to stop.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::{Ask, Form, Server, State, Tasks, Tool, ToolError, When};
use serde_json::json;
use tokio::sync::Notify;
use tokio::try_join;

use super::clocked::Clocked;
use super::{Dropped, TaskClient, says, text};

/// Length of the leases here: no task is taken up because its lease is over.
const LEASE: Duration = Duration::from_secs(600);

#[derive(Form)]
struct Name {
    name: String,
}

#[derive(Clone, Default)]
struct Signals {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
    dropped: Arc<Notify>,
}

impl Signals {
    /// Says that the handler has begun, and waits for the test. The value says when the handler is dropped.
    async fn meet(&self) -> Dropped {
        self.begun.notify_one();
        let dropped = Dropped(Arc::clone(&self.dropped));
        self.go_on.notified().await;
        dropped
    }
}

fn server(store: &Clocked, signals: &Signals, tool: Tool) -> Server {
    server_with(store, signals, tool, LEASE)
}

fn server_with(store: &Clocked, signals: &Signals, tool: Tool, lease: Duration) -> Server {
    let tasks = Tasks::new(store.store()).lease(lease);
    Server::new("tasks", "1.0.0").tool(tool.task(When::Required)).state(signals.clone()).tasks(tasks)
}

/// Starts a task, drains its worker while the handler waits, and returns the task once the handler is dropped.
async fn drained(client: &TaskClient, signals: &Signals) -> String {
    let id = client.start("job", json!({})).await;
    signals.begun.notified().await;
    client.endpoint.drain();
    signals.go_on.notify_one();
    signals.dropped.notified().await;
    id
}

/// Waits until the worker that drains has given the task back. Returns whether any worker may take it at once.
async fn given_back(store: &Clocked, id: &str) -> bool {
    let looking = async {
        while store.stored(id).await.is_held {
            tokio::task::yield_now().await;
        }
        store.is_waiting(id).await
    };
    tokio::time::timeout(Duration::from_secs(10), looking).await.expect("it is given back")
}

/// T18: a worker that is asked to stop gives its task back at its next question; another asks on.
#[tokio::test]
async fn a_task_is_given_back_at_a_question() {
    async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
        let _dropped = signals.meet().await;
        let Name { name } = ask.form("name", "Who?").await?;
        Ok(format!("Hello, {name}!"))
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let drains = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    let id = drained(&drains, &signals).await;
    assert!(!given_back(&store, &id).await, "there is nothing to do");
    let other = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    signals.go_on.notify_one();
    other.update(&id, json!({ "name": says("Ada") })).await;
    assert_eq!(text(&other.ended(&id).await), "Hello, Ada!");
}

/// T18: a worker that is asked to stop gives its task back at its next checkpoint, at once: another goes on from there.
#[tokio::test]
async fn a_task_is_given_back_at_a_checkpoint() {
    async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
        let _dropped = signals.meet().await;
        ask.checkpoint("here").await?;
        Ok("done".to_owned())
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let drains = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    let id = drained(&drains, &signals).await;
    assert!(given_back(&store, &id).await, "at once");
    let other = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    signals.go_on.notify_one();
    assert_eq!(text(&other.ended(&id).await), "done");
}

/// T18: a task that is given back at a step is due at once, whatever else it waits for: of two questions one is open.
#[tokio::test]
async fn a_task_is_given_back_beside_a_question() {
    async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
        let second = async {
            let two: Name = ask.form("two", "Two?").await?;
            let step = async || {
                signals.meet().await;
                two.name
            };
            ask.remember("step", step).await
        };
        let (one, two) = try_join!(async { Ok(ask.form::<Name>("one", "One?").await?) }, second)?;
        Ok(format!("{} {two}", one.name))
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let drains = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    let id = drains.start("job", json!({})).await;
    drains.asks(&id).await;
    drains.update(&id, json!({ "two": says("second") })).await;
    signals.begun.notified().await;
    drains.endpoint.drain();
    signals.go_on.notify_one();
    assert!(given_back(&store, &id).await, "at once");
    let other = TaskClient::of(server(&store, &signals, Tool::new("job", job)));
    other.asks(&id).await;
    other.update(&id, json!({ "one": says("first") })).await;
    assert_eq!(text(&other.ended(&id).await), "first second");
}

/// T18: a renewal that waits while the task is given back does not take it back.
#[tokio::test]
async fn a_task_that_is_given_back_is_not_renewed() {
    async fn job(ask: Ask, State(signals): State<Signals>) -> Result<String, ToolError> {
        let _dropped = signals.meet().await;
        ask.remember("step", async || "done".to_owned()).await
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let drains =
        TaskClient::of(server_with(&store, &signals, Tool::new("job", job), Duration::from_millis(300)));
    let id = drains.start("job", json!({})).await;
    signals.begun.notified().await;
    drains.endpoint.drain();
    let giving = store.hold_change();
    signals.go_on.notify_one();
    giving.reached.notified().await;
    // The lease is renewed meanwhile.
    let before = store.renewals();
    while store.renewals() < before + 2 {
        tokio::task::yield_now().await;
    }
    giving.release.notify_one();
    signals.dropped.notified().await;
    assert!(store.is_waiting(&id).await && !store.stored(&id).await.is_held, "no worker has it");
}
