//! Tasks of callers with tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use roundtrip::authorize::Verified;
use roundtrip::{Ask, Authorize, Caller, Form, MemoryTasks, Server, State, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Desk, ISSUER, RESOURCE, capable, guarded, issuer, lacking};
use crate::support::{Answer, Running, accept};

#[derive(Form)]
struct Sure {
    sure: bool,
}

async fn report(ask: Ask, caller: Caller, State(go): State<Arc<Notify>>) -> Result<String, ToolError> {
    go.notified().await;
    let Sure { sure } = ask.form("sure", "Go on?").await?;
    caller.need_scopes(["implied"])?;
    let claims = caller.claims().ok_or("no claims")?;
    let tenant = claims.all.get("tenant").and_then(Value::as_str).unwrap_or_default();
    Ok(format!("{sure} {tenant} {} {}", caller.has_scopes(["report"]), caller.has_scopes(["later"])))
}

fn server(go: &Arc<Notify>) -> Server {
    Server::new("reports", "1")
        .tasks(Tasks::new(MemoryTasks::new()))
        .state(Arc::clone(go))
        .tool(Tool::new("report", report).task(When::Required).scopes(["report"]))
}

async fn start(desk: &Desk, token: &str) -> String {
    let params = json!({ "name": "report", "arguments": {}, "_meta": capable() });
    let created = desk.request(token, "tools/call", params).await.result();
    created["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}")).to_owned()
}

async fn about(desk: &Desk, token: &str, method: &str, id: &str) -> Answer {
    let mut params = json!({ "taskId": id, "_meta": capable() });
    if method == "tasks/update" {
        params["inputResponses"] = json!({ "sure": accept(&json!({ "sure": true })) });
    }
    desk.request(token, method, params).await
}

/// The task, once it has a status.
async fn until(desk: &Desk, token: &str, id: &str, status: &str) -> Value {
    let looking = async {
        loop {
            let task = about(desk, token, "tasks/get", id).await.result();
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looking).await.expect("in time")
}

/// O17, O33, O36: requests about a task need the scopes of its tool at that moment; the task of another is unknown, and its id
/// alone opens nothing.
#[tokio::test]
async fn requests_about_a_task_need_the_scopes_of_its_tool() {
    let go = Arc::new(Notify::new());
    let desk = Desk::guarded(server(&go), |guard| guard.implies("report", ["implied"])).await;
    let (wide, narrow) = (desk.token("alice", "report"), desk.token("alice", ""));
    let id = start(&desk, &wide).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(lacking(&about(&desk, &narrow, method, &id).await), (403, Some("report".to_owned())));
        let others = about(&desk, &desk.token("bob", "report"), method, &id).await;
        assert_eq!(others.refusal().1, -32602, "{method}: {others:?}");
        assert_eq!(about(&desk, "none", method, &id).await.status, 401);
    }
    go.notify_one();
    until(&desk, &wide, &id, "input_required").await;
    assert_eq!(about(&desk, &wide, "tasks/update", &id).await.status, 200);
    go.notify_one();
    until(&desk, &wide, &id, "completed").await;
    let ended = about(&desk, &narrow, "tasks/get", &id).await;
    assert_eq!(lacking(&ended).0, 403, "its result is guarded, too");
}

/// O36: a task keeps principal, scopes and claims that it was made with, and no token: a worker runs after the token has expired,
/// with no scope that a later one has.
#[tokio::test]
async fn a_task_outlives_its_token() {
    let (go, expired) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let over = Arc::clone(&expired);
    let guard = Authorize::at(RESOURCE).issuer(ISSUER).implies("report", ["implied"]).verify(move |token| {
        let over = over.load(Ordering::SeqCst) && token.expose() == "first";
        let scopes = if token.expose() == "first" { vec!["report"] } else { vec!["report", "later"] };
        async move {
            let verified = Verified::new(ISSUER, "alice").audience(RESOURCE).scopes(scopes);
            Ok::<_, std::io::Error>((!over).then(|| verified.claim("tenant", "blue")))
        }
    });
    let running = Running::start_http(guarded(server(&go), guard)).await;
    let desk = Desk { running, issuer: issuer() };
    let id = start(&desk, "first").await;
    expired.store(true, Ordering::SeqCst);
    assert_eq!(about(&desk, "first", "tasks/get", &id).await.status, 401);
    go.notify_one();
    until(&desk, "second", &id, "input_required").await;
    assert_eq!(about(&desk, "second", "tasks/update", &id).await.status, 200);
    go.notify_one();
    let task = until(&desk, "second", &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "true blue true false");
}
