//! A shop whose rounds are recorded, on any ledger: the crate `roundtrip-store` runs these tests on its own.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::server::ledger::IDEMPOTENCY_KEY;
use roundtrip::server::{Endpoint, Event, InFlight, Ledger, Peer};
use roundtrip::wire::{ErrorObject, Message};
use roundtrip::{
    Args, Ask, MemoryTasks, Principal, Prompt, Resource, Server, State, Tasks, Tool, ToolError, When,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A store of a test's own, empty at first.
pub(crate) trait Store {
    type Ledger: Counted;

    /// Opens another instance of it.
    fn instance(&self) -> impl Future<Output = Self::Ledger>;

    /// Opens an instance that holds so many records and bytes.
    fn bounded(&self, records: usize, bytes: usize) -> impl Future<Output = Self::Ledger>;

    /// Opens the shop of a test.
    fn shop(&self) -> Shop {
        Shop::default()
    }
}

/// A ledger whose records a test can count.
pub(crate) trait Counted: Ledger + Clone + 'static {
    fn count(&self) -> impl Future<Output = usize>;
}

/// Waits until the ledger holds so many records: a claim may be released by a task.
pub(crate) async fn assert_holds(ledger: &impl Counted, records: usize) {
    let mut found = ledger.count().await;
    for _ in 0..1_000 {
        if found == records {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        found = ledger.count().await;
    }
    assert_eq!(found, records, "records in the ledger");
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    what: String,
}

/// Effects so far, outside `once` on purpose, and the signal to go on.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    pub(crate) done: Arc<AtomicUsize>,
    pub(crate) go: Arc<Notify>,
    /// True if its tools could become tasks.
    pub(crate) has_tasks: bool,
}

impl Shop {
    /// Lets calls of a tool become tasks in a shop that has them, after longer than any test takes.
    pub(crate) fn offer(&self, tool: Tool) -> Tool {
        if self.has_tasks { tool.task(When::After(Duration::MAX)) } else { tool }
    }

    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    pub(crate) fn work(&self) -> usize {
        self.done.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Waits until so much has been done.
    pub(crate) async fn has_done(&self, work: usize) {
        while self.done() < work {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Every round of it does something.
async fn order(
    Args(Order { what }): Args<Order>,
    State(shop): State<Shop>,
    ask: Ask,
) -> Result<String, ToolError> {
    shop.work();
    if !ask.confirm("sure", format!("Order {what}?")).await? {
        return Err(ToolError::new("not sure"));
    }
    if !ask.confirm("pay", "Pay now?").await? {
        return Err(ToolError::new("not paid"));
    }
    Ok(format!("{what} ordered"))
}

/// It waits until it is let go, and says how often it has been run.
async fn slow(State(shop): State<Shop>) -> String {
    let run = shop.work();
    shop.go.notified().await;
    format!("run {run}")
}

/// The first time it panics, the second time it fails, and then it answers.
async fn shaky(State(shop): State<Shop>) -> Result<String, ToolError> {
    match shop.work() {
        1 => panic!("boom"),
        2 => Err(ErrorObject::internal("no luck").into()),
        3 => Err(ToolError::new("sold out")),
        run => Ok(format!("run {run}")),
    }
}

pub(crate) fn server(shop: &Shop) -> Server {
    let server = Server::new("shop", "1");
    let server = if shop.has_tasks { server.tasks(Tasks::new(MemoryTasks::new())) } else { server };
    server
        .state(shop.clone())
        .tool(shop.offer(Tool::new("order", order)))
        .tool(shop.offer(Tool::new("slow", slow)))
        .tool(shop.offer(Tool::new("shaky", shaky)))
        .prompt(Prompt::new("hint", async |State(shop): State<Shop>| format!("hint {}", shop.work())))
        .resource(Resource::new("shop://count", "count", async |State(shop): State<Shop>| {
            format!("count {}", shop.work())
        }))
}

pub(crate) fn endpoint(shop: &Shop, ledger: &(impl Ledger + Clone + 'static)) -> Endpoint {
    server(shop).ledger(ledger.clone()).build().expect("a server")
}

/// Parameters with a key of the caller's own. The client can have tasks, where the server has any.
pub(crate) fn keyed(key: impl Into<Value>, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        },
        IDEMPOTENCY_KEY: key.into(),
    });
    params
}

pub(crate) fn plain(params: Value) -> Value {
    let mut params = keyed("", params);
    params["_meta"].as_object_mut().expect("an object").remove(IDEMPOTENCY_KEY);
    params
}

pub(crate) fn soup() -> Value {
    json!({ "name": "order", "arguments": { "what": "soup" } })
}

/// The call that answers a round's question with yes or no.
pub(crate) fn answer(asked: &Value, key: &str, yes: bool) -> Value {
    let mut params = plain(soup());
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "accept", "content": { "confirm": yes } } });
    params
}

pub(crate) fn begin_as(
    principal: Option<&str>,
    endpoint: &Endpoint,
    method: &str,
    params: Value,
) -> InFlight {
    let mut text = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    text["params"] = params;
    let text = text.to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("a request") };
    let decoded = endpoint.decode(&request).expect("parameters that fit");
    let peer = Peer { principal: principal.map(Principal::new), ..Peer::default() };
    endpoint.begin(request.id.clone(), &decoded, &peer)
}

pub(crate) async fn end(endpoint: &Endpoint, mut call: InFlight) -> Value {
    loop {
        if let Event::Response(outcome) = call.event().await {
            let mut out = Vec::new();
            endpoint.encode(&mut out, call.id(), outcome);
            return serde_json::from_slice(&out).expect("JSON");
        }
    }
}

pub(crate) async fn call_as(principal: Option<&str>, endpoint: &Endpoint, params: Value) -> Value {
    end(endpoint, begin_as(principal, endpoint, "tools/call", params)).await
}

pub(crate) async fn call(endpoint: &Endpoint, params: Value) -> Value {
    call_as(None, endpoint, params).await
}

pub(crate) fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {message}"))
}
