//! Tasks: the extension `io.modelcontextprotocol/tasks` (SEP-2663).

mod asking;
mod cancelling;
mod clocked;
mod clocks;
mod deployments;
mod describing;
mod draining;
mod extensions;
mod faults;
mod faults_http;
pub(crate) mod kinds;
mod layer;
mod leases;
mod ledger;
mod lifecycle;
mod memory;
mod news;
mod orphans;
mod parts;
mod places;
mod sep_2322;
mod sep_2322_requests;
mod services;
mod stores;
mod waiting;
mod workers;
pub(crate) mod working;
mod working_dialects;

use std::sync::Arc;
use std::time::Duration;

use roundtrip::server::{Endpoint, Peer};
use roundtrip::{MemoryTasks, Principal, Server, Tasks, Tool};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{everything, message, messages_of, meta};

pub(crate) use layer::{key, take_all};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub(crate) const SEP_2322: &str = "dev.roundtrip/tasks-sep-2322";

/// A value of a handler, which says when the handler is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A client of one endpoint that speaks the extension.
#[derive(Clone)]
pub(crate) struct TaskClient {
    pub(crate) endpoint: Endpoint,
    peer: Peer,
    capabilities: Value,
}

/// A server with these tools, whose tasks are in memory.
pub(crate) fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    let server = Server::new("tasks", "1.0.0").tasks(Tasks::new(MemoryTasks::new()));
    tools.into_iter().fold(server, Server::tool)
}

impl TaskClient {
    pub(crate) fn of(server: Server) -> Self {
        Self::at(&server.build().expect("a server"))
    }

    pub(crate) fn at(endpoint: &Endpoint) -> Self {
        let mut capabilities = everything();
        capabilities["extensions"] = json!({ EXTENSION: {} });
        Self { endpoint: endpoint.clone(), peer: Peer::default(), capabilities }
    }

    pub(crate) fn by(mut self, principal: &str) -> Self {
        self.peer.principal = Some(Principal::new(principal));
        self
    }

    /// Has this extension in every request, as a layer of the HTTP stack would attach it.
    pub(crate) fn extension<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.peer.extensions.insert(extension);
        self
    }

    pub(crate) fn from(mut self, address: &str) -> Self {
        self.peer.address = Some(address.parse().expect("an address"));
        self
    }

    pub(crate) fn without_extension(mut self) -> Self {
        self.capabilities = everything();
        self
    }

    /// Can be asked this much.
    pub(crate) fn capable(mut self, capabilities: Value) -> Self {
        let extensions = self.capabilities["extensions"].take();
        self.capabilities = capabilities;
        self.capabilities["extensions"] = extensions;
        self
    }

    /// Speaks the dialect of SEP-2322.
    pub(crate) fn sep_2322(mut self) -> Self {
        self.capabilities["extensions"] = json!({ SEP_2322: {} });
        self
    }

    /// The whole message that answers a request, whenever it comes.
    pub(crate) async fn ask(&self, method: &str, mut params: Value) -> Value {
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        if let Some(Value::Object(own)) = params.get_mut("_meta").map(Value::take) {
            meta.as_object_mut().expect("an object").extend(own);
        }
        params["_meta"] = meta;
        messages_of(&self.endpoint, &self.peer, &message(1, method, params)).await.pop().expect("a response")
    }

    /// The whole message that answers a request.
    pub(crate) async fn send(&self, method: &str, params: Value) -> Value {
        let (client, method) = (self.clone(), method.to_owned());
        let answered = tokio::spawn(async move { client.ask(&method, params).await });
        let answered = tokio::time::timeout(Duration::from_secs(10), answered).await.expect("in time");
        answered.expect("no panic")
    }

    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.send(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) async fn error(&self, method: &str, params: Value) -> (i64, String) {
        let answer = self.send(method, params).await;
        let error = &answer["error"];
        let code = error["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"));
        (code, error["message"].as_str().expect("a message").to_owned())
    }

    /// Calls a tool that becomes a task; the task's id.
    pub(crate) async fn start(&self, tool: &str, arguments: Value) -> String {
        let created = self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn get(&self, id: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": id })).await
    }

    pub(crate) async fn update(&self, id: &str, answers: Value) -> Value {
        self.result("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Value {
        self.result("tasks/cancel", json!({ "taskId": id })).await
    }

    /// The task, once `is` says so.
    pub(crate) async fn until(&self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let task = self.get(id).await;
                if is(&task) {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(10), looking).await {
            Ok(task) => task,
            Err(_) => panic!("not in time: {}", self.get(id).await),
        }
    }

    pub(crate) async fn ended(&self, id: &str) -> Value {
        let ended = ["completed", "failed", "cancelled"];
        self.until(id, |task| ended.contains(&task["status"].as_str().expect("a status"))).await
    }

    pub(crate) async fn asks(&self, id: &str) -> Value {
        self.until(id, |task| task["status"] == "input_required").await
    }
}

/// The text of a completed task's result.
#[track_caller]
pub(crate) fn text(task: &Value) -> &str {
    assert_eq!(task["status"], "completed", "{task}");
    task.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_else(|| panic!("text: {task}"))
}

/// The keys of what a task asks.
pub(crate) fn keys(task: &Value) -> Vec<&str> {
    task["inputRequests"].as_object().expect("questions").keys().map(String::as_str).collect()
}

/// An answer to a form with one text.
pub(crate) fn says(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}
