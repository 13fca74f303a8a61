//! Requests about tasks over HTTP: their names, and the principals behind their tokens.

use std::sync::Arc;

use roundtrip::task::{Millis, TaskKey, TaskOwner, TaskStore as _};
use roundtrip::{Caller, MemoryTasks, Principal, Server, Tasks, Tool, When};
use serde_json::{Value, json};

use super::sep_2322::related;
use super::{EXTENSION, SEP_2322, key, text};
use crate::support::{Answer, Running, changed, headers, message, meta};

/// The `_meta` of a request that declares an extension.
fn declaring(extension: &str) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { extension: {} } });
    meta
}

/// T11, H2: `Mcp-Name` is the id of the task. The extension requires it (SEP-2663); in SEP-2322's dialect, whose headers nobody has
/// published, it is compared where it is present.
#[tokio::test]
async fn the_name_is_the_id_wherever_it_is_present() {
    for (extension, missing) in [(EXTENSION, true), (SEP_2322, false)] {
        let tool = Tool::new("greet", async || "hello").task(When::Offered);
        let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
        let running = Running::start(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks)).await;
        let meta = declaring(extension);
        let call = json!({ "name": "greet", "task": {}, "_meta": meta });
        let created = running.call("tools/call", call).await.result();
        let id = created.pointer("/task/taskId").unwrap_or(&created["taskId"]).as_str().expect("an id");
        let mut names_it = meta.clone();
        names_it
            .as_object_mut()
            .expect("an object")
            .extend(related(id).as_object().expect("an object").clone());
        let about = json!({ "taskId": id, "_meta": meta });
        let requests = match extension {
            EXTENSION => vec![
                ("tasks/get", about.clone()),
                ("tasks/update", json!({ "taskId": id, "inputResponses": {}, "_meta": meta })),
                ("tasks/cancel", about),
            ],
            _ => vec![
                ("tasks/get", about.clone()),
                ("tasks/result", about.clone()),
                ("tasks/cancel", about),
                ("tasks/input_response", json!({ "inputResponses": {}, "_meta": names_it })),
            ],
        };
        for (method, params) in requests {
            let request = message(1, method, params);
            let mut connection = running.connect().await;
            let mut code = async |head: &[(String, String)]| {
                let answer = connection.post(head, request.to_string().as_bytes()).await.json();
                answer["error"]["code"].as_i64()
            };
            let other = changed(&request, "Mcp-Name", Some("other"));
            assert_eq!(code(&other).await, Some(-32020), "{extension} {method}");
            let unnamed = changed(&request, "Mcp-Name", None);
            assert_eq!(code(&unnamed).await == Some(-32020), missing, "{extension} {method}");
            assert_ne!(code(&headers(&request)).await, Some(-32020), "{extension} {method}");
        }
    }
}

/// A server whose callers have tokens: the principal is in front of the dot.
async fn running(store: &Arc<MemoryTasks>) -> Running {
    let whoami = async |caller: Caller| caller.principal.map(|who| who.to_string()).unwrap_or_default();
    let tool = Tool::new("whoami", whoami).task(When::Required);
    let server = Server::new("tasks", "1.0.0").tool(tool).tasks(Tasks::new(Arc::clone(store)));
    let http = server.into_http().expect("a server").principal(|parts| {
        let token = parts.headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?;
        token.split_once('.').map(|(name, _)| Principal::new(name))
    });
    Running::start_http(http).await
}

async fn send(running: &Running, token: &str, method: &str, mut params: Value) -> Answer {
    params["_meta"] = declaring(EXTENSION);
    let request = message(1, method, params);
    let mut head = headers(&request);
    head.push(("Authorization".to_owned(), format!("Bearer {token}")));
    running.connect().await.post(&head, request.to_string().as_bytes()).await
}

/// T5: a task belongs to the principal, not to its token: a token that was refreshed has it, another's does not. No token is stored.
#[tokio::test]
async fn a_token_may_be_refreshed() {
    let store = Arc::new(MemoryTasks::new());
    let running = running(&store).await;
    let created =
        send(&running, "ada.first-secret", "tools/call", json!({ "name": "whoami" })).await.result();
    let id = json!({ "taskId": created["taskId"] });
    let key =
        TaskKey { owner: TaskOwner::new(Some("ada")), ..key(created["taskId"].as_str().expect("an id")) };
    let stored = store.read(&key, Millis(0)).await.expect("a store").expect("a task");
    let call = store.load(&key).await.expect("a store").map(|work| work.call).unwrap_or_default();
    for bytes in [&stored.work, &stored.view, &call] {
        assert!(!String::from_utf8_lossy(bytes).contains("secret"));
    }
    let task = loop {
        let task = send(&running, "ada.second-secret", "tasks/get", id.clone()).await.result();
        if task["status"] != "working" {
            break task;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(text(&task), "ada");
    assert_eq!(send(&running, "bob.first-secret", "tasks/get", id).await.json()["error"]["code"], -32602);
}

/// T9, T5: another's task is left out of the acknowledgement of those that are watched.
#[tokio::test]
async fn anothers_task_cannot_be_watched() {
    let running = running(&Arc::default()).await;
    let created = send(&running, "ada.x", "tools/call", json!({ "name": "whoami" })).await.result();
    for (token, seen) in [("ada.y", json!([created["taskId"]])), ("bob.x", json!([]))] {
        let notifications = json!({ "taskIds": [created["taskId"]] });
        let params = json!({ "notifications": notifications, "_meta": declaring(EXTENSION) });
        let request = message(1, "subscriptions/listen", params);
        let mut head = headers(&request);
        head.push(("Authorization".to_owned(), format!("Bearer {token}")));
        let mut connection = running.connect().await;
        connection.send("POST", &head, request.to_string().as_bytes()).await;
        assert_eq!(connection.head().await.status, 200);
        let acknowledged = connection.event().await.expect("an acknowledgement");
        let ids = acknowledged["params"]["notifications"].get("taskIds").cloned().unwrap_or(json!([]));
        assert_eq!(ids, seen, "{token}: {acknowledged}");
    }
}
