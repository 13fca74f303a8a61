//! The messages that SEP-2322 prints for tasks.

use std::time::Duration;

use roundtrip::{Ask, Form, MemoryTasks, Server, Tasks, Tool, ToolError, When};
use serde_json::{Value, json};

use super::{EXTENSION, SEP_2322, TaskClient, keys, says};
use crate::support::{Running, changed, message, meta};

#[derive(Form)]
struct Echo {
    input: String,
}

async fn echo(ask: Ask) -> Result<String, ToolError> {
    let Echo { input } = ask.form("echo_input", "Please provide the input string to echo back").await?;
    Ok(format!("Echo: {input}"))
}

/// A server with these tools that speaks SEP-2322's dialect, to all that do not declare the extension.
fn opened(tools: impl IntoIterator<Item = Tool>) -> Server {
    let server = Server::new("tasks", "1.0.0").tasks(Tasks::new(MemoryTasks::new()).undeclared());
    tools.into_iter().fold(server, Server::tool)
}

/// The same, for those that declare the dialect.
pub(super) fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    let server = Server::new("tasks", "1.0.0").tasks(Tasks::new(MemoryTasks::new()).sep_2322());
    tools.into_iter().fold(server, Server::tool)
}

/// The `_meta` that relates a message to a task.
pub(super) fn related(id: &str) -> Value {
    json!({ "io.modelcontextprotocol/related-task": { "taskId": id } })
}

/// Asserts that everything printed is there, with its value unless it is an id or a time.
#[track_caller]
fn assert_printed(printed: &Value, actual: &Value) {
    let Value::Object(members) = printed else { return assert_eq!(printed, actual) };
    for (name, printed) in members {
        let actual = actual.get(name).unwrap_or_else(|| panic!("no `{name}` in {actual}"));
        match &**name {
            "taskId" | "createdAt" | "lastUpdatedAt" => assert!(actual.is_string(), "{name}: {actual}"),
            // It grows with the time for which nothing has changed.
            "pollInterval" => assert!(actual.as_u64() >= printed.as_u64(), "{name}: {actual}"),
            _ => assert_printed(printed, actual),
        }
    }
}

fn task(status: &str, message: &str) -> Value {
    json!({
        "taskId": "", "status": status, "statusMessage": message, "createdAt": "", "lastUpdatedAt": "",
        "ttl": 60000, "pollInterval": 100,
    })
}

/// The task that `tools/call` has created; its id.
fn created(result: &Value) -> String {
    result["task"]["taskId"].as_str().unwrap_or_else(|| panic!("a task: {result}")).to_owned()
}

fn question() -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": {
            "echo_input": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "Please provide the input string to echo back",
                    "requestedSchema": {
                        "type": "object",
                        "properties": { "input": { "type": "string" } },
                        "required": ["input"],
                    },
                },
            },
        },
        "_meta": related(""),
    })
}

/// T20, T21, T22, T24, T25: the twelve messages of the echo example, from a client that declares the dialect, and from one that
/// declares nothing where the author allows it.
#[tokio::test]
async fn the_twelve_messages_of_the_echo_example() {
    let echo = || [Tool::new("echo", echo).task(When::Offered)];
    for client in [
        TaskClient::of(server(echo())).sep_2322(),
        TaskClient::of(opened(echo())).sep_2322(),
        TaskClient::of(opened(echo())).without_extension(),
    ] {
        let result = client.result("tools/call", json!({ "name": "echo", "task": { "ttl": 60000 } })).await;
        let message = "Task has been created for echo tool invocation.";
        assert_printed(&json!({ "task": task("working", message) }), &result);
        let id = created(&result);

        let asks = client.asks(&id).await;
        assert_printed(&task("input_required", "Input Required to Proceed call tasks/result"), &asks);

        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        assert_printed(&question(), &result);
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);
        assert!(result.get("requestState").is_none(), "the handler has set no state: {result}");

        let answer = json!({
            "inputResponses": { "echo_input": { "action": "accept", "content": { "input": "Hello World!" } } },
            "_meta": related(&id),
        });
        let acknowledged = client.result("tasks/input_response", answer).await;
        assert_printed(&json!({ "_meta": related("") }), &acknowledged);
        assert_eq!(acknowledged["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);

        let done = client.ended(&id).await;
        let message = "Task has been completed successfully, call tasks/result";
        assert_printed(&task("completed", message), &done);

        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        let printed = json!({
            "resultType": "complete",
            "isError": false,
            "content": [{ "type": "text", "text": "Echo: Hello World!" }],
            "_meta": related(""),
        });
        assert_printed(&printed, &result);
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);
    }
}

/// T11, T25: the twelve messages over HTTP, with the headers of the published table: version and method on every request, the name on
/// `tools/call` alone.
#[tokio::test]
async fn the_twelve_messages_over_http_with_the_published_headers() {
    let running = Running::start(opened([Tool::new("echo", echo).task(When::Offered)])).await;
    let send = async |id: u64, method: &str, mut params: Value| {
        let own = params.get_mut("_meta").map(Value::take);
        params["_meta"] = meta();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        if let Some(Value::Object(own)) = own {
            params["_meta"].as_object_mut().expect("an object").extend(own);
        }
        let request = message(id, method, params);
        let named = (method == "tools/call").then_some("echo");
        let head = changed(&request, "Mcp-Name", named);
        let answer = running.connect().await.post(&head, request.to_string().as_bytes()).await;
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!(id)), "{answer:?}");
        answer.result()
    };
    let call = json!({ "name": "echo", "task": { "ttl": 60000 } });
    let id = created(&send(1, "tools/call", call).await);
    let about = json!({ "taskId": id });
    let until = async |wanted: &str| {
        let looking = async {
            loop {
                let task = send(2, "tasks/get", about.clone()).await;
                if task["status"] == wanted {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), looking).await.expect("in time")
    };
    until("input_required").await;
    assert_printed(&question(), &send(3, "tasks/result", about.clone()).await);
    let answer = json!({
        "inputResponses": { "echo_input": { "action": "accept", "content": { "input": "Hello World!" } } },
        "_meta": related(&id),
    });
    assert_printed(&json!({ "_meta": related("") }), &send(4, "tasks/input_response", answer).await);
    until("completed").await;
    let result = send(6, "tasks/result", about.clone()).await;
    assert_eq!(result["content"], json!([{ "type": "text", "text": "Echo: Hello World!" }]));
}

/// T23, T25: an answer that misses what is needed is acknowledged, the task stays `input_required`, and the next `tasks/result`
/// asks again.
#[tokio::test]
async fn an_answer_that_misses_what_is_needed() {
    let client = TaskClient::of(server([Tool::new("echo", echo).task(When::Offered)])).sep_2322();
    let id = created(&client.result("tools/call", json!({ "name": "echo", "task": {} })).await);
    client.asks(&id).await;
    let answer = json!({
        "inputResponses": {
            "echo_input": {
                "action": "accept",
                "content": { "not_requested_parameter": "Information the server did not request." },
            },
        },
        "_meta": related(&id),
    });
    let acknowledged = client.result("tasks/input_response", answer).await;
    assert_printed(&json!({ "_meta": related("") }), &acknowledged);
    assert_eq!(client.get(&id).await["status"], "input_required");
    let again = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!((&again["resultType"], keys(&again)), (&json!("input_required"), vec!["echo_input~2"]));
    assert_eq!(client.get(&id).await["status"], "input_required");
    let answer = json!({
        "inputResponses": { "echo_input~2": { "action": "accept", "content": { "input": "at last" } } },
        "_meta": related(&id),
    });
    client.result("tasks/input_response", answer).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "Echo: at last", "{result}");
}

/// T13, T25: rounds first, then a task, in the four steps of the SEP.
#[tokio::test]
async fn rounds_first_then_a_task() {
    #[derive(Form)]
    struct Name {
        name: String,
    }
    async fn export(ask: Ask) -> Result<String, ToolError> {
        let format: Name = ask.form("format", "Which format?").await?;
        ask.detach("collecting").await?;
        let place: Name = ask.form("place", "Where to?").await?;
        Ok(format!("{} to {}", format.name, place.name))
    }
    let tool = Tool::new("export", export).task(When::After(Duration::MAX));
    let client = TaskClient::of(server([tool])).sep_2322();
    let mut call = json!({ "name": "export", "task": { "ttl": 60000 } });
    let asks = client.result("tools/call", call.clone()).await;
    assert_eq!((&asks["resultType"], keys(&asks)), (&json!("input_required"), vec!["format"]));
    call["requestState"] = asks["requestState"].clone();
    call["inputResponses"] = json!({ "format": says("csv") });
    let id = created(&client.result("tools/call", call).await);
    let asks = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(keys(&asks), ["place"]);
    let answer = json!({ "inputResponses": { "place": says("the moon") }, "_meta": related(&id) });
    client.result("tasks/input_response", answer).await;
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "csv to the moon", "{result}");
}

/// T10, T20: the request chooses its dialect. One that declares the extension speaks it alone; one that declares neither speaks
/// none, unless the author allows it. `server/discover` names both.
#[tokio::test]
async fn the_request_chooses_its_dialect() {
    let tools = || [Tool::new("echo", echo).task(When::Offered)];
    let extension = TaskClient::of(server(tools()));
    let call = json!({ "name": "echo", "task": { "ttl": 60000 } });
    let created = extension.result("tools/call", call.clone()).await;
    assert_eq!(
        (&created["resultType"], &created["ttlMs"]),
        (&json!("task"), &json!(86_400_000)),
        "{created}"
    );
    let id = created["taskId"].as_str().expect("an id");
    let about = json!({ "taskId": id, "inputResponses": {}, "_meta": related(id) });
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        assert_eq!(extension.error(method, about.clone()).await.0, -32601, "{method}");
        let neither = extension.clone().without_extension();
        assert_eq!(neither.error(method, about.clone()).await.0, -32021, "{method}");
    }
    // Any dialect reads any task of its principal, in its own shape.
    let second = TaskClient::at(&extension.endpoint).sep_2322();
    let task = second.asks(id).await;
    assert_eq!((&task["ttl"], task.get("inputRequests")), (&json!(86_400_000), None), "{task}");
    assert_eq!(keys(&extension.asks(id).await), ["echo_input"]);
    assert_eq!(second.error("tasks/update", about.clone()).await.0, -32601);

    let discovered = extension.result("server/discover", json!({})).await;
    let extensions = &discovered["capabilities"]["extensions"];
    assert!(extensions[EXTENSION].is_object() && extensions[SEP_2322].is_object(), "{discovered}");
    let off = TaskClient::of(super::server(tools())).sep_2322();
    let discovered = off.result("server/discover", json!({})).await;
    assert!(discovered["capabilities"]["extensions"].get(SEP_2322).is_none(), "{discovered}");
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        assert_eq!(off.error(method, about.clone()).await.0, -32601, "{method}");
        assert_eq!(off.error(method, json!({})).await.0, -32601, "{method}");
    }
    let asks = off.result("tools/call", call).await;
    assert_eq!(asks["resultType"], "input_required", "`task` means nothing here: {asks}");
}
