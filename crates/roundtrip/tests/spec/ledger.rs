//! The ledger: a round runs at most once, and its repeat gets the recorded reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use roundtrip::server::ledger::IDEMPOTENCY_KEY;
use roundtrip::server::{Endpoint, Event, InFlight, Peer};
use roundtrip::wire::{ErrorObject, Message};
use roundtrip::{Args, Ask, MemoryLedger, Principal, Prompt, Resource, Server, State, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::message;

mod hang_ups;
mod repeats;
mod stores;

#[derive(Deserialize, JsonSchema)]
struct Order {
    what: String,
}

/// What has been done, outside `once` on purpose, and when it may go on.
#[derive(Clone, Default)]
struct Shop {
    done: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Shop {
    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }

    fn work(&self) -> usize {
        self.done.fetch_add(1, Ordering::SeqCst) + 1
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

fn server(shop: &Shop) -> Server {
    Server::new("shop", "1")
        .state(shop.clone())
        .tool(Tool::new("order", order))
        .tool(Tool::new("slow", slow))
        .tool(Tool::new("shaky", shaky))
        .prompt(Prompt::new("hint", async |State(shop): State<Shop>| format!("hint {}", shop.work())))
        .resource(Resource::new("shop://count", "count", async |State(shop): State<Shop>| {
            format!("count {}", shop.work())
        }))
}

fn endpoint(shop: &Shop, ledger: &MemoryLedger) -> Endpoint {
    server(shop).ledger(ledger.clone()).build().expect("a server")
}

/// Parameters with a key of the caller's own.
fn keyed(key: impl Into<Value>, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": crate::support::VERSION,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        IDEMPOTENCY_KEY: key.into(),
    });
    params
}

fn plain(params: Value) -> Value {
    let mut params = keyed("", params);
    params["_meta"].as_object_mut().expect("an object").remove(IDEMPOTENCY_KEY);
    params
}

fn soup() -> Value {
    json!({ "name": "order", "arguments": { "what": "soup" } })
}

/// The call that answers a round's question with yes or no.
fn answer(asked: &Value, key: &str, yes: bool) -> Value {
    let mut params = plain(soup());
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "accept", "content": { "confirm": yes } } });
    params
}

fn begin_as(principal: Option<&str>, endpoint: &Endpoint, method: &str, params: Value) -> InFlight {
    let text = message(1, method, params).to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("a request") };
    let decoded = endpoint.decode(&request).expect("parameters that fit");
    let peer = Peer { principal: principal.map(Principal::new), ..Peer::default() };
    endpoint.begin(request.id.clone(), &decoded, &peer)
}

async fn end(endpoint: &Endpoint, mut call: InFlight) -> Value {
    loop {
        if let Event::Response(outcome) = call.event().await {
            let mut out = Vec::new();
            endpoint.encode(&mut out, call.id(), outcome);
            return serde_json::from_slice(&out).expect("JSON");
        }
    }
}

async fn call_as(principal: Option<&str>, endpoint: &Endpoint, params: Value) -> Value {
    end(endpoint, begin_as(principal, endpoint, "tools/call", params)).await
}

async fn call(endpoint: &Endpoint, params: Value) -> Value {
    call_as(None, endpoint, params).await
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {message}"))
}

fn poll(call: &mut InFlight) {
    assert!(call.poll_event(&mut Context::from_waker(Waker::noop())).is_pending());
}
