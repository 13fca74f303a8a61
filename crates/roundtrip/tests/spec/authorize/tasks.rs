//! Tasks of callers with tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use roundtrip::authorize::Verified;
use roundtrip::seal::TokenVersion;
use roundtrip::{Ask, Authorize, Caller, Form, MemoryTasks, Server, State, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Desk, ISSUER, RESOURCE, bearer, capable, guarded, issuer, lacking};
#[cfg(feature = "legacy")]
use crate::peers::{V2025_11_25, Web, everything, request};
use crate::seal::ring;
use crate::support::{Answer, Connection, Running, accept, headers, message};

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

/// S4, O36: from the second version of tokens on, the answers of a task come from the OAuth client that its call came from. Another
/// client of the same user may read and cancel it, and a task of an older instance takes answers from each.
#[tokio::test]
async fn a_task_is_answered_by_the_client_of_its_call() {
    let through =
        |desk: &Desk, client: &str| desk.issuer.token("alice").client_id(client).scopes(["report"]).sign();
    let (go, store) = (Arc::new(Notify::new()), Arc::new(MemoryTasks::new()));
    let shared = || server(&go).seal(ring(&[1])).tasks(Tasks::new(Arc::clone(&store)));
    let implied = |guard: Authorize| guard.implies("report", ["implied"]);
    let before = Desk::guarded(shared(), implied).await;
    let after = shared().token_version(TokenVersion::V2);
    let after = Desk::with(before.issuer.clone(), after, implied).await;
    let (agent, browser) = (through(&before, "agent"), through(&before, "browser"));

    let bound = start(&after, &agent).await;
    go.notify_one();
    for desk in [&after, &before] {
        until(desk, &browser, &bound, "input_required").await;
        let refused = about(desk, &browser, "tasks/update", &bound).await;
        assert_eq!(refused.refusal().1, -32602);
        assert!(refused.error_message().contains("OAuth client"), "{refused:?}");
    }
    assert_eq!(about(&after, &agent, "tasks/update", &bound).await.status, 200);
    go.notify_one();
    until(&after, &browser, &bound, "completed").await;

    let unbound = start(&before, &agent).await;
    go.notify_one();
    until(&after, &browser, &unbound, "input_required").await;
    assert_eq!(about(&after, &browser, "tasks/update", &unbound).await.json().get("error"), None);
    go.notify_one();
    until(&after, &agent, &unbound, "completed").await;
    let cancelled = start(&after, &agent).await;
    assert_eq!(about(&after, &browser, "tasks/cancel", &cancelled).await.json().get("error"), None);
}

/// O33, O36: what a tool needs where its handler runs is checked with the rights that its call had. Where a worker's tool needs a
/// scope that the call did not, the task fails, and the handler does not run.
#[tokio::test]
async fn a_task_that_lacks_a_scope_where_it_runs_fails() {
    let (go, store) = (Arc::new(Notify::new()), Arc::new(MemoryTasks::new()));
    let server = |tool: Tool, at_once| {
        let tasks = Tasks::new(Arc::clone(&store)).at_once(at_once);
        Server::new("reports", "1").state(Arc::clone(&go)).tool(tool.task(When::Required)).tasks(tasks)
    };
    let front = Desk::open(server(Tool::new("report", async || "open"), 0)).await;
    let token = front.token("alice", "report");
    let id = start(&front, &token).await;
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let guarded = move || {
        runs.store(true, Ordering::SeqCst);
        async { "payroll" }
    };
    let _worker = server(Tool::new("report", guarded).scopes(["payroll"]), 1).build().expect("a worker");
    let task = until(&front, &token, &id, "failed").await;
    assert!(task["error"]["message"].as_str().is_some_and(|text| text.contains("payroll")), "{task}");
    assert!(!ran.load(Ordering::SeqCst));
}

/// A server with a tool that needs scopes, and one that needs none. Both wait.
fn two_tools(go: &Arc<Notify>) -> Server {
    async fn free(State(go): State<Arc<Notify>>) -> &'static str {
        go.notified().await;
        "free"
    }
    server(go).tool(Tool::new("free", free).task(When::Offered))
}

fn ids(list: &Value) -> Vec<&str> {
    let tasks = list["tasks"].as_array().unwrap_or_else(|| panic!("tasks: {list}"));
    tasks.iter().map(|task| task["taskId"].as_str().expect("an id")).collect()
}

/// T24, O33, O36: a list has the caller's own tasks, and of those the ones that its token is enough for at that moment.
#[tokio::test]
async fn a_list_of_tasks_has_what_the_caller_may_use() {
    let go = Arc::new(Notify::new());
    let server = two_tools(&go).tasks(Tasks::new(MemoryTasks::new()).sep_2322());
    let desk = Desk::open(server).await;
    let mut meta = capable();
    meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] =
        json!({ "dev.roundtrip/tasks-sep-2322": {} });
    let ask = async |token: &str, method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        desk.request(token, method, params).await
    };
    let (wide, narrow) = (desk.token("alice", "report"), desk.token("alice", ""));
    let mut own = Vec::new();
    for tool in ["report", "free"] {
        let created = ask(&wide, "tools/call", json!({ "name": tool, "arguments": {}, "task": {} })).await;
        let created = created.result();
        own.push(created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned());
    }
    let mut all = own.clone();
    all.sort_unstable();
    let list = ask(&wide, "tasks/list", json!({})).await.result();
    let mut listed = ids(&list);
    listed.sort_unstable();
    assert_eq!(listed, all);
    assert_eq!(ids(&ask(&narrow, "tasks/list", json!({})).await.result()), [&own[1]]);
    let bob = desk.token("bob", "report");
    assert!(ids(&ask(&bob, "tasks/list", json!({})).await.result()).is_empty());
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let params = json!({ "taskId": own[0] });
        let refused = ask(&narrow, method, params.clone()).await;
        assert_eq!(lacking(&refused), (403, Some("report".to_owned())), "{method}");
        assert_eq!(ask(&bob, method, params).await.refusal().1, -32602, "{method}");
    }
    let mut answers = json!({ "inputResponses": { "sure": accept(&json!({ "sure": true })) } });
    answers["_meta"] = meta.clone();
    answers["_meta"]["io.modelcontextprotocol/related-task"] = json!({ "taskId": own[0] });
    let refused = desk.request(&narrow, "tasks/input_response", answers.clone()).await;
    assert_eq!(lacking(&refused).0, 403);
    assert_eq!(desk.request(&bob, "tasks/input_response", answers).await.refusal().1, -32602);
}

/// T27, O33, O36: the same in sessions of 2025-11-25, each request by the token that it comes with.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn tasks_of_sessions_need_their_scopes() {
    let (go, issuer) = (Arc::new(Notify::new()), issuer());
    let web = Web::at(guarded(two_tools(&go), Authorize::testing(RESOURCE, &issuer)));
    let token = |who: &str, scopes: &[&str]| format!("Bearer {}", issuer.token(who).scopes(scopes).sign());
    let alice = token("alice", &["report"]);
    let wide = web.with("authorization", &alice).session(V2025_11_25, &everything()).await;
    let narrow = wide.with("authorization", &token("alice", &[]));
    let mut own = Vec::new();
    for tool in ["report", "free"] {
        let call = request(1, "tools/call", json!({ "name": tool, "arguments": {}, "task": {} }));
        let created = wide.post(&call).await.json().await;
        let id = created["result"]["task"]["taskId"].as_str();
        own.push(id.unwrap_or_else(|| panic!("{created}")).to_owned());
    }
    let list = request(2, "tasks/list", json!({}));
    assert_eq!(ids(&wide.post(&list).await.json().await["result"]).len(), 2);
    assert_eq!(ids(&narrow.post(&list).await.json().await["result"]), [&own[1]]);
    let stranger = token("bob", &["report"]);
    let bob = web.with("authorization", &stranger).session(V2025_11_25, &everything()).await;
    assert!(ids(&bob.post(&list).await.json().await["result"]).is_empty());
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let about = request(3, method, json!({ "taskId": own[0] }));
        let refused = narrow.post(&about).await;
        let challenge = refused.header("www-authenticate").unwrap_or_else(|| panic!("{method}: a challenge"));
        assert!(refused.status == 403 && challenge.contains("scope=\"report\""), "{method}: {challenge}");
        assert_eq!(bob.post(&about).await.json().await["error"]["code"], -32602, "{method}");
    }
    let cancelled = wide.post(&request(4, "tasks/cancel", json!({ "taskId": own[0] }))).await.json().await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
}

/// Opens a subscription to tasks, and returns it with the ids that were agreed to.
async fn watch(desk: &Desk, token: &str, ids: &[&str]) -> (Connection, Value) {
    let params = json!({ "notifications": { "taskIds": ids }, "_meta": capable() });
    let listen = message(1, "subscriptions/listen", params);
    let mut headers = headers(&listen);
    headers.push(bearer(token));
    let mut connection = desk.running.connect().await;
    connection.send("POST", &headers, listen.to_string().as_bytes()).await;
    assert_eq!(connection.head().await.status, 200);
    let acknowledged = connection.event().await.expect("an acknowledgement");
    let agreed = acknowledged["params"]["notifications"].get("taskIds").cloned();
    (connection, agreed.unwrap_or_else(|| json!([])))
}

/// The next task of a subscription that has ended.
async fn ended(subscription: &mut Connection) -> Value {
    loop {
        let told = subscription.event().await.expect("a change");
        if told["params"]["status"] != "working" {
            return told["params"]["taskId"].clone();
        }
    }
}

/// T9, O33, O36: a subscription agrees to tasks that the caller may use, and tells of no other: neither of another caller's, nor
/// of one whose tool its token is not enough for.
#[tokio::test]
async fn changes_of_tasks_are_told_to_callers_that_may_use_them() {
    let go = Arc::new(Notify::new());
    let desk = Desk::open(two_tools(&go)).await;
    let (wide, narrow, bob) =
        (desk.token("alice", "report"), desk.token("alice", ""), desk.token("bob", "report"));
    let create = async |token: &str, tool: &str| {
        let params = json!({ "name": tool, "arguments": {}, "_meta": capable() });
        let created = desk.request(token, "tools/call", params).await.result();
        created["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}")).to_owned()
    };
    let (report, free) = (create(&wide, "report").await, create(&wide, "free").await);
    let bobs = create(&bob, "free").await;
    let all = [&*report, &*free, &*bobs];
    let (mut told, agreed) = watch(&desk, &wide, &all).await;
    assert_eq!(agreed, json!([report, free]));
    let (mut less, agreed) = watch(&desk, &narrow, &all).await;
    assert_eq!(agreed, json!([free]));
    let (mut other, agreed) = watch(&desk, &bob, &all).await;
    assert_eq!(agreed, json!([bobs]));
    // The guarded task changes first: a subscription that is told of it is told before it hears of others.
    assert_eq!(about(&desk, &wide, "tasks/cancel", &report).await.status, 200);
    assert_eq!(ended(&mut told).await, *report);
    assert_eq!(about(&desk, &wide, "tasks/cancel", &free).await.status, 200);
    assert_eq!(about(&desk, &bob, "tasks/cancel", &bobs).await.status, 200);
    assert_eq!(ended(&mut less).await, *free);
    assert_eq!(ended(&mut other).await, *bobs);
}
