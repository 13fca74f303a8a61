//! Tasks that work while they ask, in the dialects of the extension and of SEP-2322: the table of the manual, a test for a cell.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::{MemoryTasks, Server, Tasks};
use serde_json::{Value, json};

use super::working::Machine;
use super::{EXTENSION, TaskClient, says};
use crate::support::{Connection, Running, headers, message, meta};

/// State of a task that has asked beside a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AsksAndWorks,
    AsksOnly,
    AnsweredAndWorks,
    Cancelled,
    Expired,
}

/// The states, and the status of each.
const STATES: [(State, &str); 5] = [
    (State::AsksAndWorks, "input_required"),
    (State::AsksOnly, "input_required"),
    (State::AnsweredAndWorks, "working"),
    (State::Cancelled, "cancelled"),
    (State::Expired, "failed"),
];

fn server(machine: &Machine, keep_for: Duration) -> Server {
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322().keep_for(keep_for);
    Server::new("tasks", "1.0.0").tool(machine.tool()).tasks(tasks)
}

/// Time to live of the tasks of a state.
fn keep_for(state: State) -> Duration {
    if state == State::Expired { Duration::from_millis(500) } else { Duration::from_secs(60) }
}

/// Brings a task into a state. It is read in the dialect of the extension, and asks by now.
async fn bring(client: &TaskClient, machine: &Machine, id: &str, state: State) {
    if state == State::Expired {
        // Its time may be over before anybody has looked.
        client.ended(id).await;
        return;
    }
    client.asks(id).await;
    machine.booting.notified().await;
    match state {
        State::AsksAndWorks | State::Expired => {}
        State::AsksOnly => {
            machine.booted.notify_one();
            machine.dropped.notified().await;
        }
        State::AnsweredAndWorks => {
            client.update(id, json!({ "name": says("web") })).await;
            machine.named.notified().await;
        }
        State::Cancelled => {
            client.cancel(id).await;
            machine.booted.notify_one();
            client.ended(id).await;
        }
    }
}

/// A task of the extension in a state, and a client of its server.
async fn task_in(state: State) -> (TaskClient, Machine, String) {
    let machine = Machine::default();
    let client = TaskClient::of(server(&machine, keep_for(state)));
    let id = client.start("boot", json!({})).await;
    bring(&client, &machine, &id, state).await;
    (client, machine, id)
}

/// T2, T4: `tasks/get` of the extension.
#[tokio::test]
async fn the_extension_shows_the_state() {
    for (state, status) in STATES {
        let asks = status == "input_required";
        let (client, _machine, id) = task_in(state).await;
        let task = client.get(&id).await;
        assert_eq!(
            (&task["status"], task.get("inputRequests").is_some()),
            (&json!(status), asks),
            "{state:?}"
        );
        assert_eq!(task.get("error").is_some(), state == State::Expired, "{state:?}: {task}");
        let (code, _) = client.error("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(code, -32601, "{state:?}: it has no `tasks/result`");
    }
}

/// T21, T24: `tasks/get` and `tasks/result` of SEP-2322.
#[tokio::test]
async fn sep_2322_shows_the_state() {
    for (state, status) in STATES {
        let (client, machine, id) = task_in(state).await;
        let client = client.sep_2322();
        let about = json!({ "taskId": id });
        let task = client.result("tasks/get", about.clone()).await;
        assert_eq!((&task["status"], task.get("inputRequests")), (&json!(status), None), "{state:?}");
        match state {
            State::AsksAndWorks | State::AsksOnly => {
                let result = client.result("tasks/result", about).await;
                assert_eq!(result["resultType"], "input_required", "{state:?}");
                assert_eq!(result["inputRequests"]["name"]["params"]["message"], "Which name?", "{state:?}");
            }
            State::AnsweredAndWorks => {
                // It waits for the step.
                machine.booted.notify_one();
                let result = client.ask("tasks/result", about).await;
                assert_eq!(result["result"]["content"][0]["text"], "web is at 10.0.0.7", "{state:?}");
            }
            State::Cancelled => assert_eq!(client.error("tasks/result", about).await.0, -32602),
            State::Expired => {
                let (code, message) = client.error("tasks/result", about).await;
                assert!(code == -32603 && message.contains("time to live"), "{code} {message}");
            }
        }
    }
}

/// The next notification of a task with this status.
async fn announced(connection: &mut Connection, status: &str) -> Value {
    loop {
        let told = connection.event().await.expect("a notification");
        if told["method"] == "notifications/tasks" && told["params"]["status"] == status {
            return told["params"].clone();
        }
    }
}

/// T9: the notifications of the extension, each with the whole task.
#[tokio::test]
async fn the_extension_announces_the_state() {
    for (state, status) in STATES {
        let (machine, store) = (Machine::default(), Arc::new(MemoryTasks::new()));
        let instance = |tasks: Tasks| {
            let tasks = tasks.keep_for(keep_for(state));
            Server::new("tasks", "1.0.0").tool(machine.tool()).tasks(tasks)
        };
        let front = || instance(Tasks::new(Arc::clone(&store)).at_once(0));
        let (running, client) = (Running::start(front()).await, TaskClient::of(front()));
        let id = client.start("boot", json!({})).await;
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
        let params = json!({ "notifications": { "taskIds": [id] }, "_meta": meta });
        let request = message("watch", "subscriptions/listen", params);
        let mut connection = running.connect().await;
        connection.send("POST", &headers(&request), request.to_string().as_bytes()).await;
        assert_eq!(connection.head().await.status, 200);
        connection.event().await.expect("an acknowledgement");
        // It runs from here on.
        let _worker = instance(Tasks::new(Arc::clone(&store))).build().expect("a worker");
        let bringing = bring(&client, &machine, &id, state);
        let (told, ()) = tokio::join!(
            async {
                if state == State::AnsweredAndWorks {
                    announced(&mut connection, "input_required").await;
                }
                announced(&mut connection, status).await
            },
            bringing
        );
        assert_eq!(told.get("inputRequests").is_some(), status == "input_required", "{state:?}: {told}");
        assert_eq!(told["taskId"], id);
    }
}
