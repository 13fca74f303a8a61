//! Requests of SEP-2322's dialect, with what may be wrong with them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body::Body as _;
use roundtrip::wire::ErrorObject;
use roundtrip::{Ask, Form, MemoryTasks, Question, Reply, Round, Server, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_service::Service as _;

use super::sep_2322::{related, server};
use super::{TaskClient, keys, says};
use crate::support::{message, meta};

#[derive(Form)]
struct Name {
    name: String,
}

async fn hello(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("name", "Who are you?").await?;
    Ok(format!("Hello, {name}!"))
}

fn client(tools: impl IntoIterator<Item = Tool>) -> TaskClient {
    TaskClient::of(server(tools)).sep_2322()
}

async fn start(client: &TaskClient, tool: &str, task: Value) -> String {
    let created = client.result("tools/call", json!({ "name": tool, "task": task })).await;
    created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}")).to_owned()
}

/// T20: a `ttl` is honoured up to the time that the author allows, which is also that of a call that names none; a `task` that
/// is no object and a `ttl` that is no time are -32602.
#[tokio::test]
async fn a_ttl_is_capped() {
    let tasks = Tasks::new(MemoryTasks::new()).sep_2322().keep_for(Duration::from_secs(3600));
    let tool = Tool::new("hello", hello).task(When::Offered);
    let client = TaskClient::of(Server::new("tasks", "1.0.0").tool(tool).tasks(tasks)).sep_2322();
    for (wanted, ttl) in [
        (r#"{"ttl":60000}"#, 60_000),
        (r#"{"ttl":60000.9}"#, 60_000),
        (r#"{"ttl":0}"#, 1_000),
        (r#"{"ttl":3600001}"#, 3_600_000),
        (r#"{"ttl":1e300}"#, 3_600_000),
        (r#"{"ttl":null}"#, 3_600_000),
        ("{}", 3_600_000),
    ] {
        let wanted: Value = serde_json::from_str(wanted).expect("JSON");
        let created = client.result("tools/call", json!({ "name": "hello", "task": wanted })).await;
        assert_eq!(created["task"]["ttl"], ttl, "{wanted}");
    }
    for wrong in [json!(true), json!([]), json!("60000"), json!({ "ttl": -1 }), json!({ "ttl": "60000" })] {
        let (code, message) = client.error("tools/call", json!({ "name": "hello", "task": wrong })).await;
        assert!(code == -32602 && message.starts_with("params.task"), "{wrong}: {code} {message}");
    }
}

/// T20: without `task` a tool that may be a task runs in the call, and one that must be is refused; a tool that is none runs in
/// the call whether `task` is sent or not.
#[tokio::test]
async fn a_call_asks_for_a_task() {
    let plain = Tool::new("plain", async || "done");
    let required = Tool::new("train", async || "trained").task(When::Required);
    let client = client([plain, required, Tool::new("hello", hello).task(When::Offered)]);
    let asks = client.result("tools/call", json!({ "name": "hello" })).await;
    assert_eq!(asks["resultType"], "input_required", "{asks}");
    let (code, message) = client.error("tools/call", json!({ "name": "train" })).await;
    assert!(code == -32602 && message.contains("task"), "{code} {message}");
    let done = client.result("tools/call", json!({ "name": "plain", "task": {} })).await;
    assert_eq!(done["content"][0]["text"], "done", "{done}");
}

/// T24: `tasks/result` waits while the task works, for a while; a client that hangs up loses nothing.
#[tokio::test(start_paused = true)]
async fn the_result_is_waited_for() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let slow = move || {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            "done"
        }
    };
    let client = client([Tool::new("slow", slow).task(When::Offered)]);
    let id = start(&client, "slow", json!({})).await;
    let about = json!({ "taskId": id });
    let hung_up =
        tokio::time::timeout(Duration::from_secs(5), client.ask("tasks/result", about.clone())).await;
    assert!(hung_up.is_err(), "{hung_up:?}");
    let late = client.ask("tasks/result", about.clone()).await;
    assert!(late["error"]["message"].as_str().is_some_and(|told| told.contains("ask again")), "{late}");
    let (waited, ()) = tokio::join!(client.ask("tasks/result", about.clone()), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        go_on.notify_one();
    });
    assert_eq!(waited["result"]["content"][0]["text"], "done", "{waited}");
    assert_eq!(client.result("tasks/result", about).await["content"][0]["text"], "done");
}

/// T24, H4: a task that takes longer than `tasks/result` waits is HTTP 200 with the error, also for a client that takes JSON only: a
/// load balancer does not take the instance for a sick one.
#[tokio::test(start_paused = true)]
async fn a_task_that_takes_long_is_not_an_http_error() {
    let never = async || std::future::pending::<String>().await;
    let http = server([Tool::new("slow", never).task(When::Offered)]).into_http().expect("a server");
    let post = async |method: &str, mut params: Value, name: &str| {
        params["_meta"] = meta();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "extensions": { super::SEP_2322: {} } });
        let request = http::Request::post("http://localhost/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(message(1, method, params).to_string())
            .expect("a request");
        let response = http.clone().call(request).await.expect("a response");
        let status = response.status().as_u16();
        let mut body = pin!(response.into_body());
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await.expect("a body").expect("no error");
        let message = frame.into_data().expect("data");
        (status, serde_json::from_slice::<Value>(&message).expect("JSON"))
    };
    let (_, created) = post("tools/call", json!({ "name": "slow", "task": {} }), "slow").await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {created}"));
    let (status, late) = post("tasks/result", json!({ "taskId": id }), id).await;
    assert_eq!((status, &late["error"]["code"]), (200, &json!(503)), "{late}");
}

/// T24: the result of a task that has failed is its error, that of a cancelled one -32602; an unknown one is unknown.
#[tokio::test]
async fn a_task_may_end_without_a_result() {
    async fn broken() -> Result<String, ErrorObject> {
        Err(ErrorObject::new(7, "broken"))
    }
    let client = client([
        Tool::new("broken", broken).task(When::Offered),
        Tool::new("hello", hello).task(When::Offered),
        Tool::new("wrong", async || Err::<String, _>(ToolError::from("no luck"))).task(When::Offered),
    ]);
    let id = start(&client, "broken", json!({})).await;
    assert_eq!(client.error("tasks/result", json!({ "taskId": id })).await, (7, "broken".to_owned()));
    let failed = client.get(&id).await;
    assert_eq!((&failed["status"], &failed["statusMessage"]), (&json!("failed"), &json!("broken")));

    let id = start(&client, "wrong", json!({})).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!((&result["isError"], &client.get(&id).await["status"]), (&json!(true), &json!("completed")));

    let id = start(&client, "hello", json!({})).await;
    client.asks(&id).await;
    let cancelled = client.cancel(&id).await;
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    for method in ["tasks/result", "tasks/cancel"] {
        let (code, message) = client.error(method, json!({ "taskId": id })).await;
        assert!(code == -32602 && message.contains("cancelled"), "{method}: {code} {message}");
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let (code, message) = client.error(method, json!({ "taskId": "nonsense" })).await;
        assert!(code == -32602 && message.contains("no such task"), "{method}: {code} {message}");
    }
}

/// T24: a task that works is cancelled before `tasks/cancel` is answered, and its handler is dropped.
#[tokio::test]
async fn a_task_that_works_is_cancelled() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::new(Notify::new());
    let noted = Arc::clone(&dropped);
    let endless = move || {
        let noted = Dropped(Arc::clone(&noted));
        async move {
            std::future::pending::<()>().await;
            drop(noted);
            "never"
        }
    };
    let client = client([Tool::new("endless", endless).task(When::Offered)]);
    let id = start(&client, "endless", json!({})).await;
    assert_eq!(client.cancel(&id).await["status"], "cancelled");
    dropped.notified().await;
}

/// T22: answers name their task in `_meta`; those to an ended task are -32602, and those to a task that asks nothing are
/// acknowledged and ignored.
#[tokio::test]
async fn answers_name_their_task() {
    let endless = Tool::new("endless", std::future::pending::<String>).task(When::Offered);
    let client = client([endless, Tool::new("hello", hello).task(When::Offered)]);
    let answers = json!({ "name": says("Ada") });
    let (code, message) = client.error("tasks/input_response", json!({ "inputResponses": answers })).await;
    assert!(code == -32602 && message.contains("io.modelcontextprotocol/related-task"), "{code} {message}");
    let respond = |id: &str, answers: &Value| json!({ "inputResponses": answers, "_meta": related(id) });
    let (code, message) = client.error("tasks/input_response", respond("nonsense", &answers)).await;
    assert!(code == -32602 && message.contains("no such task"), "{code} {message}");

    let id = start(&client, "endless", json!({})).await;
    client.result("tasks/input_response", respond(&id, &answers)).await;
    assert_eq!(client.get(&id).await["status"], "working");

    let id = start(&client, "hello", json!({})).await;
    client.asks(&id).await;
    client.result("tasks/input_response", respond(&id, &json!({ "other": says("Bob") }))).await;
    assert_eq!(client.get(&id).await["status"], "input_required");
    client.result("tasks/input_response", respond(&id, &answers)).await;
    assert_eq!(client.ended(&id).await["status"], "completed");
    let (code, message) = client.error("tasks/input_response", respond(&id, &answers)).await;
    assert!(code == -32602 && message.contains("completed"), "{code} {message}");
}

/// T21, T22: state that a handler sets goes out as `requestState`, which the answers have to bring back. It is bound to the task
/// and to its caller.
#[tokio::test]
async fn state_goes_out_and_comes_back() {
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        let seen: u32 = round.state()?.unwrap_or(0);
        round.set_state(&(seen + 1))?;
        match round.answer::<Name>("name")? {
            None => Ok(round.ask([Question::form::<Name>("name", "Who?")])),
            Some(Name { name }) => Ok(Reply::text(format!("{name}, after {seen}"))),
        }
    }
    let client = client([Tool::new("by_hand", by_hand).task(When::Offered)]).by("ada");
    let (id, other) =
        (start(&client, "by_hand", json!({})).await, start(&client, "by_hand", json!({})).await);
    let asks = client.result("tasks/result", json!({ "taskId": id })).await;
    let others = client.result("tasks/result", json!({ "taskId": other })).await;
    let respond = |state: Option<&Value>| {
        let mut params = json!({ "inputResponses": { "name": says("Ada") }, "_meta": related(&id) });
        state.into_iter().for_each(|state| params["requestState"] = state.clone());
        params
    };
    for wrong in [None, Some(&json!("forged")), Some(&others["requestState"])] {
        let refused = client.error("tasks/input_response", respond(wrong)).await;
        assert_eq!(refused, (-32602, "Invalid or expired requestState".to_owned()), "{wrong:?}");
        assert_eq!(client.get(&id).await["status"], "input_required");
    }
    client.result("tasks/input_response", respond(Some(&asks["requestState"]))).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "Ada, after 1", "{result}");
}

/// T24: a caller lists its own tasks, a page at a time; callers without a principal list none, because they share their tasks.
#[tokio::test]
async fn a_caller_lists_its_own_tasks() {
    let ada = client([Tool::new("hello", hello).task(When::Offered)]).by("ada");
    let bob = TaskClient::at(&ada.endpoint).sep_2322().by("bob");
    let mut own = Vec::new();
    for _ in 0..51 {
        own.push(start(&ada, "hello", json!({})).await);
    }
    start(&bob, "hello", json!({})).await;
    let first = ada.result("tasks/list", json!({})).await;
    let last = ada.result("tasks/list", json!({ "cursor": first["nextCursor"] })).await;
    assert!(last.get("nextCursor").is_none(), "{last}");
    let tasks = |page: &Value| page["tasks"].as_array().expect("tasks").clone();
    let listed = [tasks(&first), tasks(&last)].concat();
    let mut ids: Vec<&str> = listed.iter().map(|task| task["taskId"].as_str().expect("an id")).collect();
    ids.sort_unstable();
    own.sort_unstable();
    assert_eq!(ids, own);
    assert!(listed.iter().all(|task| task["ttl"].is_u64() && task["createdAt"].is_string()), "{listed:?}");
    assert_eq!(tasks(&bob.result("tasks/list", json!({})).await).len(), 1);
    let (code, message) = ada.error("tasks/list", json!({ "cursor": "nonsense" })).await;
    assert!(code == -32602 && message.contains("cursor"), "{code} {message}");
    let anyone = TaskClient::at(&ada.endpoint).sep_2322();
    assert_eq!(anyone.error("tasks/list", json!({})).await.0, -32601);
}

/// T4, T23: what is asked again has the reason in it, and a partial answer leaves the rest.
#[tokio::test]
async fn the_rest_is_asked_for() {
    async fn both(ask: Ask) -> Result<String, ToolError> {
        let (one, two) = tokio::try_join!(ask.form::<Name>("one", "One?"), ask.form::<Name>("two", "Two?"))?;
        Ok(format!("{} {}", one.name, two.name))
    }
    let client = client([Tool::new("both", both).task(When::Offered)]);
    let id = start(&client, "both", json!({})).await;
    let asks = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(keys(&asks), ["one", "two"]);
    let respond = |answers: Value| json!({ "inputResponses": answers, "_meta": related(&id) });
    client.result("tasks/input_response", respond(json!({ "two": says("second") }))).await;
    let asks = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(keys(&asks), ["one"]);
    client.result("tasks/input_response", respond(json!({ "one": says("first") }))).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "first second", "{result}");
}
