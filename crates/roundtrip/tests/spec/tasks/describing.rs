//! Status messages and parts of a result that are being stored when the handler ends.

use std::sync::Arc;

use roundtrip::server::Peer;
use roundtrip::{Parts, Server, State, Status, Tasks, Tool, When};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::clocked::Clocked;
use super::{EXTENSION, TaskClient, text};
use crate::support::{message, messages_of, meta};

#[derive(Clone, Default)]
struct Signals {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

fn client(store: &Clocked, signals: &Signals, tool: Tool) -> TaskClient {
    let server = Server::new("tasks", "1.0.0").state(signals.clone());
    TaskClient::of(server.tool(tool.task(When::Required)).tasks(Tasks::new(store.store())))
}

/// T14: the last message of a handler is the task's, also where the handler ends while the message is being stored.
#[tokio::test]
async fn a_message_is_not_lost_at_the_end() {
    async fn job(State(signals): State<Signals>, status: Status) -> &'static str {
        signals.begun.notify_one();
        signals.go_on.notified().await;
        status.set("almost done");
        signals.go_on.notified().await;
        "done"
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, Tool::new("job", job));
    let id = client.start("job", json!({})).await;
    signals.begun.notified().await;
    let described = store.hold_answer();
    signals.go_on.notify_one();
    described.reached.notified().await;
    assert_eq!(client.get(&id).await["statusMessage"], "almost done");
    signals.go_on.notify_one();
    let task = client.ended(&id).await;
    assert_eq!((text(&task), &task["statusMessage"]), ("done", &json!("almost done")));
}

/// T14: the message of a handler whose task is cancelled is the last that it has set.
#[tokio::test]
async fn a_message_is_not_lost_when_its_task_is_cancelled() {
    async fn job(State(signals): State<Signals>, status: Status) -> &'static str {
        status.set("first");
        signals.begun.notify_one();
        signals.go_on.notified().await;
        status.set("second");
        signals.begun.notify_one();
        std::future::pending().await
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, Tool::new("job", job));
    let first = store.hold_answer();
    let id = client.start("job", json!({})).await;
    first.reached.notified().await;
    first.release.notify_one();
    signals.begun.notified().await;
    // The next message would be stored half a second later.
    signals.go_on.notify_one();
    signals.begun.notified().await;
    client.cancel(&id).await;
    let task = client.ended(&id).await;
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("cancelled"), &json!("second")));
}

/// G5: parts that are being stored when the handler ends are stored under their numbers, with those behind them.
#[tokio::test]
async fn parts_are_not_lost_at_the_end() {
    async fn story(State(signals): State<Signals>, mut out: Parts) -> Parts {
        signals.begun.notify_one();
        signals.go_on.notified().await;
        out.text("Once ").await;
        signals.go_on.notified().await;
        out.text("upon ").await;
        out
    }
    let (store, signals) = (Clocked::default(), Signals::default());
    let client = client(&store, &signals, Tool::new("story", story));
    let send = async |method: &str, mut params: Value| {
        let mut meta = meta();
        let extensions = json!({ EXTENSION: {}, "dev.roundtrip/stream": {} });
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": extensions });
        params["_meta"] = meta;
        messages_of(&client.endpoint, &Peer::default(), &message(1, method, params)).await
    };
    let created = send("tools/call", json!({ "name": "story" })).await;
    let id = created[0]["result"]["taskId"].as_str().expect("an id").to_owned();
    signals.begun.notified().await;
    let described = store.hold_answer();
    signals.go_on.notify_one();
    described.reached.notified().await;
    signals.go_on.notify_one();
    client.ended(&id).await;
    let mut messages = send("tasks/get", json!({ "taskId": id, "stream": { "from": 0 } })).await;
    messages.pop().expect("a response");
    let parts: Vec<_> = messages
        .iter()
        .map(|part| (part["params"]["part"].clone(), part["params"]["content"]["text"].clone()))
        .collect();
    assert_eq!(parts, [(json!(0), json!("Once ")), (json!(1), json!("upon "))]);
}
