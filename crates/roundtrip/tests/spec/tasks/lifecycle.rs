//! Creation, status, end and removal of tasks.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::wire::ErrorObject;
use roundtrip::{MemoryTasks, Progress, Server, Status, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{EXTENSION, TaskClient, server, text};

fn greet(when: When) -> Tool {
    Tool::new("greet", async || "Hello!").task(when)
}

/// T1, T2: a call of a client that declares the extension is answered with a task, which can be read at once; its result is
/// that of the call.
#[tokio::test]
async fn a_call_becomes_a_task() {
    let client = TaskClient::of(server([greet(When::Offered)]));
    let created = client.result("tools/call", json!({ "name": "greet" })).await;
    assert_eq!(
        (&created["resultType"], &created["status"]),
        (&json!("task"), &json!("working")),
        "{created}"
    );
    assert_eq!(created["ttlMs"], 24 * 60 * 60 * 1000);
    assert!(created["pollIntervalMs"].as_u64().is_some_and(|interval| interval > 0), "{created}");
    let id = created["taskId"].as_str().expect("an id");
    assert_eq!(id.len(), 32, "128 bits in hexadecimal");
    let task = client.ended(id).await;
    assert_eq!(text(&task), "Hello!");
    assert_eq!(task["resultType"], "complete", "the result of tasks/get, not of the call");
    assert_eq!(task["createdAt"], created["createdAt"]);
    assert!(task["createdAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{task}");
    assert!(task.get("requestState").is_none() && task.get("inputRequests").is_none(), "{task}");
    assert_eq!(client.get(id).await, task, "what was stored is what every reader gets");
}

/// T1: without the extension a tool that may be a task runs in the call, and one that must be is -32021, naming the extension.
#[tokio::test]
async fn a_client_without_the_extension_gets_no_task() {
    let required = Tool::new("train", async || "trained").task(When::Required);
    let client = TaskClient::of(server([greet(When::Offered), required])).without_extension();
    let result = client.result("tools/call", json!({ "name": "greet" })).await;
    assert_eq!(result["content"][0]["text"], "Hello!", "{result}");
    let refused = client.send("tools/call", json!({ "name": "train" })).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(required[EXTENSION].is_object(), "{refused}");
}

/// T2, T10: requests about tasks need the extension; the methods of other dialects are unknown, and so is every method where
/// the server has no tasks.
#[tokio::test]
async fn requests_about_tasks_need_the_extension() {
    let client = TaskClient::of(server([greet(When::Offered)]));
    let id = client.start("greet", json!({})).await;
    let about = json!({ "taskId": id, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let (code, message) = client.clone().without_extension().error(method, about.clone()).await;
        assert!(code == -32021 && message.contains(EXTENSION), "{method}: {code} {message}");
    }
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        assert_eq!(client.error(method, about.clone()).await.0, -32601, "{method}");
    }
    let without = TaskClient::of(Server::new("plain", "1.0.0").tool(Tool::new("greet", async || "Hello!")));
    assert_eq!(without.error("tasks/get", about).await.0, -32601);
    let discovered = client.result("server/discover", json!({})).await;
    assert!(discovered["capabilities"]["extensions"][EXTENSION].is_object(), "{discovered}");
}

/// T2, T5: an id that is unknown, malformed, or another's, is -32602, all with the same words.
#[tokio::test]
async fn a_task_of_another_looks_unknown() {
    let ada = TaskClient::of(server([greet(When::Offered)])).by("ada");
    let id = ada.start("greet", json!({})).await;
    ada.ended(&id).await;
    let bob = TaskClient::at(&ada.endpoint).by("bob");
    let nobody = TaskClient::at(&ada.endpoint);
    let unknown = "0123456789abcdef0123456789abcdef";
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (client, id) in [(&bob, &*id), (&nobody, &*id), (&ada, unknown), (&ada, "../../etc"), (&ada, "")]
        {
            let (code, message) = client.error(method, json!({ "taskId": id, "inputResponses": {} })).await;
            assert_eq!(code, -32602, "{method} {id}");
            assert_eq!(message, format!("params.taskId: no such task: {id}"));
        }
    }
}

/// T3: a tool error is `completed`, a JSON-RPC error `failed`; the end is final.
#[tokio::test]
async fn how_a_call_ends_is_its_status() {
    async fn fails() -> Result<String, ToolError> {
        Err(ToolError::new("out of paper"))
    }
    async fn breaks() -> Result<String, ErrorObject> {
        Err(ErrorObject::new(7, "broken"))
    }
    async fn panics() -> String {
        panic!("a bug")
    }
    let client = TaskClient::of(server([
        Tool::new("fails", fails).task(When::Required),
        Tool::new("breaks", breaks).task(When::Required),
        Tool::new("panics", panics).task(When::Required),
    ]));
    let failed = client.ended(&client.start("fails", json!({})).await).await;
    assert_eq!(
        (&failed["status"], &failed["result"]["isError"]),
        (&json!("completed"), &json!(true)),
        "{failed}"
    );
    let id = client.start("breaks", json!({})).await;
    let broken = client.ended(&id).await;
    assert_eq!((&broken["status"], &broken["error"]["code"]), (&json!("failed"), &json!(7)), "{broken}");
    assert_eq!(client.cancel(&id).await["resultType"], "complete");
    assert_eq!(client.get(&id).await, broken, "a task that has ended stays as it is");
    let panicked = client.ended(&client.start("panics", json!({})).await).await;
    assert_eq!((&panicked["status"], &panicked["error"]["code"]), (&json!("failed"), &json!(-32603)));
}

/// T2, T8: cancelling is acknowledged with nothing, and drops the handler.
#[tokio::test]
async fn a_task_can_be_cancelled() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let noted = (Arc::clone(&begun), Arc::clone(&dropped));
    let waits = Tool::new("waits", move || {
        let (begun, dropped) = noted.clone();
        async move {
            let _dropped = Dropped(dropped);
            begun.notify_one();
            std::future::pending::<String>().await
        }
    });
    let client = TaskClient::of(server([waits.task(When::Required)]));
    let id = client.start("waits", json!({})).await;
    begun.notified().await;
    let acknowledged = client.cancel(&id).await;
    assert_eq!(acknowledged, json!({ "resultType": "complete" }), "nothing but an acknowledgement");
    dropped.notified().await;
    let task = client.ended(&id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
}

/// T6: a caller has a bounded number of live tasks, and is told so; those that have ended do not count.
#[tokio::test]
async fn a_caller_has_a_bounded_number_of_tasks() {
    let held = Tool::new("held", async || std::future::pending::<String>().await).task(When::Required);
    let tasks = Tasks::new(MemoryTasks::new()).per_caller(2);
    let server = Server::new("tasks", "1.0.0").tool(held).tool(greet(When::Required)).tasks(tasks);
    let ada = TaskClient::of(server).by("ada");
    let first = ada.start("held", json!({})).await;
    ada.start("held", json!({})).await;
    let (_, message) = ada.error("tools/call", json!({ "name": "held" })).await;
    assert!(message.contains("a caller may have 2"), "{message}");
    let bob = TaskClient::at(&ada.endpoint).by("bob");
    bob.start("held", json!({})).await;
    ada.cancel(&first).await;
    ada.ended(&first).await;
    ada.start("greet", json!({})).await;
}

/// T6: a task whose time to live is over has failed, wherever its handler is, and its handler is dropped.
#[tokio::test]
async fn the_time_to_live_is_kept() {
    let held = Tool::new("held", async || std::future::pending::<String>().await).task(When::Required);
    let tasks = Tasks::new(MemoryTasks::new()).keep_for(Duration::from_millis(300));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(held).tasks(tasks));
    let begun = std::time::Instant::now();
    let id = client.start("held", json!({})).await;
    let task = client.ended(&id).await;
    assert!(begun.elapsed() >= Duration::from_millis(300), "never earlier than `ttlMs`");
    assert_eq!((&task["status"], &task["ttlMs"]), (&json!("failed"), &json!(300)), "{task}");
    assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains("time to live")), "{task}");
}

/// T14: descriptions and progress are the task's `statusMessage`; however many there are, the last one counts.
#[tokio::test]
async fn a_handler_describes_its_state() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let chatty = move |status: Status, progress: Progress| {
        let wait = Arc::clone(&wait);
        async move {
            for n in 0..100_000 {
                status.set(format!("row {n}"));
            }
            wait.notified().await;
            progress.report((3, 4));
            wait.notified().await;
            status.set("x".repeat(100_000));
            "done"
        }
    };
    let client = TaskClient::of(server([Tool::new("chatty", chatty).task(When::Required)]));
    let id = client.start("chatty", json!({})).await;
    client.until(&id, |task| task["statusMessage"] == "row 99999").await;
    go_on.notify_one();
    client.until(&id, |task| task["statusMessage"] == "3 of 4").await;
    go_on.notify_one();
    let task = client.ended(&id).await;
    assert_eq!(task["statusMessage"].as_str().map(str::len), Some(1024), "a bounded description");
}

/// A tool that may be a task needs a store.
#[test]
fn a_missing_store_is_found_at_start() {
    let error = Server::new("tasks", "1.0.0").tool(greet(When::Offered)).build().expect_err("no store");
    assert!(error.to_string().contains("`.tasks(..)`"), "{error}");
}

/// T11: on HTTP, `Mcp-Name` is the id of the task.
#[tokio::test]
async fn the_name_of_a_request_about_a_task_is_its_id() {
    use crate::support::{Running, changed, headers, message, meta};
    let running = Running::start(server([greet(When::Required)])).await;
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
    let created = running.call("tools/call", json!({ "name": "greet", "_meta": meta })).await.result();
    let id = created["taskId"].as_str().expect("an id");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = message(1, method, json!({ "taskId": id, "inputResponses": {}, "_meta": meta }));
        let mut connection = running.connect().await;
        for name in [None, Some("other")] {
            let wrong = changed(&request, "Mcp-Name", name);
            let refused = connection.post(&wrong, request.to_string().as_bytes()).await.refusal();
            assert_eq!(refused, (400, -32020), "{method} {name:?}");
        }
        connection.post(&headers(&request), request.to_string().as_bytes()).await.result();
    }
}

/// T10: methods of another dialect are unknown to a request in the extension, before its headers and parameters are looked at;
/// also where the server speaks that dialect.
#[tokio::test]
async fn a_method_of_another_dialect_is_unknown_whatever_it_brings() {
    use crate::support::{Running, changed, message, meta};
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
    let one = server([greet(When::Required)]);
    let both = server([greet(When::Required)]).tasks(Tasks::new(MemoryTasks::new()).sep_2322());
    for server in [one, both] {
        let running = Running::start(server).await;
        let mut connection = running.connect().await;
        for method in ["tasks/result", "tasks/input_response", "tasks/list"] {
            for params in [json!({ "taskId": "1", "_meta": meta }), json!({ "_meta": meta })] {
                let request = message(1, method, params);
                let unnamed = changed(&request, "Mcp-Name", None);
                let refused = connection.post(&unnamed, request.to_string().as_bytes()).await.refusal();
                assert_eq!(refused, (404, -32601), "{request}");
            }
        }
    }
}

/// T9: who watches tasks is told of their changes, each notification the whole task; ids that are unknown or another's are left
/// out of the acknowledgement.
#[tokio::test]
async fn changes_of_a_task_are_announced() {
    use crate::support::{Running, message, meta};
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let waits = move || {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            "done"
        }
    };
    let running = Running::start(server([Tool::new("waits", waits).task(When::Required)])).await;
    let mut meta = meta();
    let listen = |meta: &Value, ids: &[&str]| {
        let params = json!({ "notifications": { "taskIds": ids }, "_meta": meta });
        message("watch", "subscriptions/listen", params)
    };
    let refused = running.call("subscriptions/listen", listen(&meta, &["x"])["params"].clone()).await;
    assert_eq!(refused.refusal(), (400, -32021));
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
    let created = running.call("tools/call", json!({ "name": "waits", "_meta": meta })).await.result();
    let id = created["taskId"].as_str().expect("an id");
    let request = listen(&meta, &[id, "0123456789abcdef0123456789abcdef", "rubbish"]);
    let mut connection = running.connect().await;
    connection.send("POST", &crate::support::headers(&request), request.to_string().as_bytes()).await;
    assert_eq!(connection.head().await.status, 200);
    let acknowledged = connection.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]), "{acknowledged}");
    go_on.notify_one();
    let told = loop {
        let told = connection.event().await.expect("a notification");
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "watch");
        if told["params"]["status"] != "working" {
            break told;
        }
    };
    assert_eq!(text(&told["params"]), "done");
    assert_eq!(told["params"]["taskId"], id);
}

/// Z3: tasks in memory take a bounded number of bytes.
#[tokio::test]
async fn tasks_in_memory_are_bounded() {
    let held = Tool::new("held", async || std::future::pending::<String>().await).task(When::Required);
    let tasks = Tasks::new(MemoryTasks::bounded(4 * 1024));
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(held).tasks(tasks));
    client.start("held", json!({})).await;
    let mut refused = None;
    for _ in 0..10 {
        let answer = client.send("tools/call", json!({ "name": "held" })).await;
        refused = refused.or(answer["error"]["code"].as_i64());
    }
    assert_eq!(refused, Some(503));
}

/// Z3: a task that has to remember too much fails, and says so.
#[tokio::test]
async fn a_task_remembers_a_bounded_amount() {
    async fn greedy(ask: roundtrip::Ask) -> Result<String, ToolError> {
        ask.remember("all", async || "x".repeat(5 << 20)).await?;
        std::future::pending().await
    }
    let client = TaskClient::of(server([Tool::new("greedy", greedy).task(When::Required)]));
    let task = client.ended(&client.start("greedy", json!({})).await).await;
    assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains("may remember")), "{task}");
}
