//! Parts of a task's result.

use std::sync::Arc;

use roundtrip::server::{Endpoint, Peer};
use roundtrip::{Ask, MemoryTasks, Parts, Server, State, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{EXTENSION, SEP_2322};
use crate::asking::yes;
use crate::support::{message, messages_of, meta};

/// Sends two parts, asks, waits to be told, and sends two more.
async fn story(ask: Ask, State(go_on): State<Arc<Notify>>, mut out: Parts) -> Result<Parts, ToolError> {
    out.text("Once ").await;
    out.text("upon ").await;
    ask.confirm("more", "More?").await?;
    out.text("a ").await;
    go_on.notified().await;
    out.text("time").await;
    Ok(out)
}

struct Fixture {
    endpoint: Endpoint,
    go_on: Arc<Notify>,
    extension: &'static str,
}

impl Fixture {
    fn new(extension: &'static str) -> Self {
        let go_on = Arc::new(Notify::new());
        let tasks = Tasks::new(MemoryTasks::new()).sep_2322();
        let tool = Tool::new("story", story).task(When::Required);
        let server = Server::new("tasks", "1.0.0").state(Arc::clone(&go_on)).tool(tool).tasks(tasks);
        Self { endpoint: server.build().expect("a server"), go_on, extension }
    }

    fn request(&self, method: &str, mut params: Value) -> Value {
        let extensions = json!({ (self.extension): {}, "dev.roundtrip/stream": {} });
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {}, "extensions": extensions });
        if let Some(Value::Object(own)) = params.get_mut("_meta").map(Value::take) {
            meta.as_object_mut().expect("an object").extend(own);
        }
        params["_meta"] = meta;
        message(1, method, params)
    }

    /// The parts, with their numbers, and the response.
    async fn send(&self, request: &Value) -> (Vec<(u64, String)>, Value) {
        let mut messages = messages_of(&self.endpoint, &Peer::default(), request).await;
        let response = messages.pop().expect("a response");
        let parts = messages.iter().map(|part| {
            assert_eq!(part["method"], "notifications/dev.roundtrip/part");
            assert_eq!(part["params"]["requestId"], 1);
            let text = part["params"]["content"]["text"].as_str().expect("text");
            (part["params"]["part"].as_u64().expect("a number"), text.to_owned())
        });
        (parts.collect(), response)
    }

    async fn ask(&self, method: &str, params: Value) -> (Vec<(u64, String)>, Value) {
        let (parts, response) = self.send(&self.request(method, params)).await;
        assert!(response.get("error").is_none(), "{response}");
        (parts, response["result"].clone())
    }

    /// Looks at a task from a part on until `is` says so.
    async fn until(&self, id: &str, from: u32, is: impl Fn(&[(u64, String)], &Value) -> bool) -> Value {
        let looking = async {
            loop {
                let params = json!({ "taskId": id, "stream": { "from": from } });
                let (parts, task) = self.ask("tasks/get", params).await;
                if is(&parts, &task) {
                    return task;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), looking).await.expect("in time")
    }
}

fn numbered(first: u64, texts: &[&str]) -> Vec<(u64, String)> {
    (first..).zip(texts.iter().map(|text| (*text).to_owned())).collect()
}

/// G5: a task stores its parts, through questions and the runs after them; `tasks/get` gives those from a number on.
#[tokio::test]
async fn parts_of_a_task_are_stored() {
    let fixture = Fixture::new(EXTENSION);
    let (_, created) = fixture.ask("tools/call", json!({ "name": "story" })).await;
    let id = created["taskId"].as_str().expect("an id").to_owned();
    let first = numbered(0, &["Once ", "upon "]);
    fixture.until(&id, 0, |parts, task| parts == first && task["status"] == "input_required").await;
    let (none, task) = fixture.ask("tasks/get", json!({ "taskId": id })).await;
    assert!(none.is_empty() && task.get("parts").is_none(), "a look that does not ask for them: {task}");
    fixture.ask("tasks/update", json!({ "taskId": id, "inputResponses": yes("more") })).await;
    // The handler runs again: what is stored is not stored twice.
    let next = numbered(2, &["a "]);
    fixture.until(&id, 2, |parts, task| parts == next && task["status"] == "working").await;
    fixture.go_on.notify_one();
    let task = fixture.until(&id, 2, |_, task| task["status"] == "completed").await;
    assert_eq!(task["result"]["content"], json!([{ "type": "text", "text": "Once upon a time" }]));
    for (from, texts) in [(0, &["Once ", "upon ", "a ", "time"][..]), (3, &["time"]), (4, &[]), (900, &[])] {
        let params = json!({ "taskId": id, "stream": { "from": from } });
        let (parts, _) = fixture.ask("tasks/get", params).await;
        assert_eq!(parts, numbered(from, texts), "after the fact, from {from} on");
    }
    for wrong in
        [json!(true), json!({ "from": -1 }), json!({ "from": "0" }), json!({ "from": 0.5 }), json!([])]
    {
        let request = fixture.request("tasks/get", json!({ "taskId": id, "stream": wrong }));
        assert_eq!(fixture.send(&request).await.1["error"]["code"], -32602, "{wrong}");
    }
}

/// G5: in SEP-2322's dialect `tasks/result` with `stream` streams the parts as they are stored, and then the result; `stream` may
/// stand beside the parameters.
#[tokio::test]
async fn the_result_of_a_task_is_streamed() {
    let fixture = Fixture::new(SEP_2322);
    let (_, created) = fixture.ask("tools/call", json!({ "name": "story", "task": {} })).await;
    let id = created["task"]["taskId"].as_str().expect("an id").to_owned();
    let (parts, asked) = fixture.ask("tasks/result", json!({ "taskId": id, "stream": {} })).await;
    assert_eq!(parts, numbered(0, &["Once ", "upon "]));
    assert!(asked["inputRequests"].get("more").is_some(), "{asked}");
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
    fixture.ask("tasks/input_response", json!({ "inputResponses": yes("more"), "_meta": related })).await;
    fixture.go_on.notify_one();
    let mut request = fixture.request("tasks/result", json!({ "taskId": id }));
    request["stream"] = json!({});
    let (parts, response) = fixture.send(&request).await;
    assert_eq!(parts, numbered(0, &["Once ", "upon ", "a ", "time"]));
    assert_eq!(response["result"]["content"][0]["text"], "Once upon a time", "{response}");
    let (none, _) = fixture.ask("tasks/result", json!({ "taskId": id })).await;
    assert!(none.is_empty());
}

/// G5: a task of a client that does not take parts stores none; one stores a mebibyte at most, and its result is whole.
#[tokio::test]
async fn stored_parts_are_bounded() {
    async fn long(mut out: Parts) -> Parts {
        for _ in 0..300 {
            out.text("x".repeat(10_000)).await;
        }
        out
    }
    let tool = Tool::new("long", long).task(When::Required);
    let server = Server::new("tasks", "1.0.0").tool(tool).tasks(Tasks::new(MemoryTasks::new()));
    let endpoint = server.build().expect("a server");
    let fixture = Fixture { endpoint, go_on: Arc::default(), extension: EXTENSION };
    let (_, created) = fixture.ask("tools/call", json!({ "name": "long" })).await;
    let id = created["taskId"].as_str().expect("an id").to_owned();
    let task = fixture.until(&id, 0, |_, task| task["status"] == "completed").await;
    assert_eq!(task["result"]["content"][0]["text"].as_str().map(str::len), Some(3_000_000));
    let (parts, _) = fixture.ask("tasks/get", json!({ "taskId": id, "stream": {} })).await;
    assert!((100..105).contains(&parts.len()), "{}", parts.len());

    let mut request = fixture.request("tools/call", json!({ "name": "long" }));
    let capabilities = &mut request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    capabilities["extensions"] = json!({ EXTENSION: {} });
    let created = fixture.send(&request).await.1;
    let id = created["result"]["taskId"].as_str().expect("an id").to_owned();
    fixture.until(&id, 0, |parts, task| parts.is_empty() && task["status"] == "completed").await;
}

/// G1, G5: with `stream_undeclared` a task stores its parts for a client that declares nothing, which reads them by `tasks/result` with
/// `stream` beside `params`, as the note among the founding documents sketches it.
#[tokio::test]
async fn parts_of_a_task_for_a_client_that_declares_nothing() {
    async fn count(mut out: Parts) -> Parts {
        out.text("one ").await;
        out.text("two").await;
        out
    }
    let tool = Tool::new("count", count).task(When::Offered);
    let tasks = Tasks::new(MemoryTasks::new()).undeclared();
    let server = Server::new("tasks", "1.0.0").tool(tool).tasks(tasks).stream_undeclared();
    let fixture = Fixture { endpoint: server.build().expect("a server"), ..Fixture::new(SEP_2322) };
    let call = message(1, "tools/call", json!({ "name": "count", "task": {} }));
    let (_, created) = fixture.send(&call).await;
    let id = created.pointer("/result/task/taskId").unwrap_or_else(|| panic!("a task: {created}"));
    let mut result = message(1, "tasks/result", json!({ "taskId": id }));
    result["stream"] = json!({});
    let (parts, response) = fixture.send(&result).await;
    assert_eq!(parts, numbered(0, &["one ", "two"]));
    assert_eq!(response["result"]["content"][0]["text"], "one two", "{response}");
}
