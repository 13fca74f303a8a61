//! Messages of the tasks extension, as the extension prints them.

use roundtrip_core::wire::{
    CallTool, ClientRequest, CreateTaskResult, GetPrompt, GetTask, ResultError, RoundResult, TaskStatus,
    decode_complete, decode_round_result,
};
use serde_json::{Value, json};

use crate::results::raw;

fn task(status: &str) -> Value {
    json!({
        "taskId": "786512e2", "status": status, "createdAt": "2026-07-28T10:30:00Z",
        "lastUpdatedAt": "2026-07-28T10:40:00Z", "ttlMs": null, "pollIntervalMs": 5000,
    })
}

fn with(mut task: Value, members: Value) -> String {
    let Value::Object(members) = members else { panic!("an object") };
    task.as_object_mut().unwrap().extend(members);
    task.to_string()
}

/// T1: a call may be answered with a task, told by its `resultType`; a method that cannot be a task may not.
#[test]
fn a_task_is_told_by_its_result_type() {
    let text = with(task("working"), json!({ "resultType": "task" }));
    let Ok(RoundResult::Task(created)) = decode_round_result::<CallTool>(raw(&text)) else {
        panic!("a task");
    };
    assert_eq!((created.task.status, created.task.ttl_ms), (TaskStatus::Working, None));
    let written = serde_json::to_value(&*created).unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(&text).unwrap(), "it is written as it was read");
    let refused = decode_round_result::<GetPrompt>(raw(&text)).unwrap_err();
    assert!(matches!(refused, ResultError::UnknownType { .. }), "{refused}");
}

/// T2: `tasks/get` has the questions, the result or the error of the task inside it, each as it was sent.
#[test]
fn a_task_carries_what_its_status_brings_along() {
    let read = |status, members| {
        let text = with(with_type(task(status)), members);
        decode_complete::<GetTask>(raw(&text)).unwrap().task
    };
    let asks = read("input_required", json!({ "inputRequests": { "name": { "method": "roots/list" } } }));
    assert_eq!(asks.input_requests["name"].method(), "roots/list");
    let done = read("completed", json!({ "result": { "content": [], "n": 1.50 } }));
    assert_eq!(done.result.unwrap().get(), r#"{"content":[],"n":1.5}"#);
    let failed = read("failed", json!({ "error": { "code": -32603, "message": "broke" } }));
    assert_eq!(failed.error.unwrap().code, -32603);
    assert!(read("cancelled", json!({})).status.is_terminal());
    let unknown = with(with_type(task("paused")), json!({}));
    decode_complete::<GetTask>(raw(&unknown)).unwrap_err();
}

fn with_type(mut task: Value) -> Value {
    task["resultType"] = "complete".into();
    task
}

/// T11: the id of the task is the target of every request about one, which HTTP mirrors in `Mcp-Name`.
#[test]
fn the_target_of_a_request_is_its_task() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta, "taskId": "t", "inputResponses": {} }).to_string();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = ClientRequest::decode(method, Some(raw(&params))).unwrap();
        assert_eq!((request.method(), request.target()), (method, Some("t")));
    }
    let request = ClientRequest::decode("tasks/result", Some(raw(&params))).unwrap();
    assert_eq!(request.target(), Some("t"));
    let mut related = meta.clone();
    related["io.modelcontextprotocol/related-task"] = json!({ "taskId": "t" });
    let answers = json!({ "_meta": related, "inputResponses": {}, "requestState": "s" }).to_string();
    let request = ClientRequest::decode("tasks/input_response", Some(raw(&answers))).unwrap();
    assert_eq!(request.target(), Some("t"), "it is named in `_meta`");
    let again = request.to_params().unwrap();
    assert_eq!(ClientRequest::decode("tasks/input_response", Some(&again)).unwrap().target(), Some("t"));
    let error = ClientRequest::decode("tasks/input_response", Some(raw(&params))).unwrap_err();
    assert!(error.code == -32602 && error.message.contains("related-task"), "{error:?}");
    let without = json!({ "_meta": meta }).to_string();
    let error = ClientRequest::decode("tasks/get", Some(raw(&without))).unwrap_err();
    assert!(error.code == -32602 && error.message.contains("taskId"), "{error:?}");
    let result: CreateTaskResult = serde_json::from_value(with_task_type()).unwrap();
    assert_eq!(result.task.task_id, "786512e2");
}

fn with_task_type() -> Value {
    let mut value = task("working");
    value["resultType"] = "task".into();
    value
}
