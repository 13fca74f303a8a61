//! Scripted replies, and the steps they lead to.

mod answers;
mod dialects;
mod properties;
mod rounds;
mod stored;
mod tasks;

use std::time::Duration;

use serde_json::{Value, json};

use super::{Action, Exchange, FlowLimits, Params, Pending};
use crate::error::Error;
use crate::wire::{CallTool, Raw};

/// A call of a tool with one argument.
fn call() -> Exchange<CallTool> {
    let params: Params = [("name", json!("book")), ("arguments", json!({ "at": "Nopa" }))]
        .map(|(name, value)| (name, Raw::from(value)))
        .into_iter()
        .collect();
    Exchange::new(params)
}

fn reply(exchange: Exchange<CallTool>, result: Value) -> Result<Action<CallTool>, Error> {
    exchange.reply(Raw::from(result).as_ref(), Duration::ZERO)
}

/// Returns the flow after a reply that asks.
fn asked(exchange: Exchange<CallTool>, result: Value) -> Pending {
    match reply(exchange, result) {
        Ok(Action::Ask(pending)) => pending,
        other => panic!("questions, not {other:?}"),
    }
}

/// Returns the pause and the flow after a reply that asks nothing.
fn paused(exchange: Exchange<CallTool>, result: Value) -> (Duration, Pending) {
    match reply(exchange, result) {
        Ok(Action::Pause(pause, pending)) => (pause, pending),
        other => panic!("a pause, not {other:?}"),
    }
}

fn sent(exchange: &Exchange<CallTool>) -> Value {
    serde_json::to_value(exchange.params()).expect("parameters serialise")
}

fn misuse(result: Result<impl std::fmt::Debug, Error>) -> String {
    match result {
        Err(Error::ApiMisuse(why)) => why.to_string(),
        other => panic!("misuse, not {other:?}"),
    }
}

/// A form that asks how many people.
fn people() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "How many?", "requestedSchema": {
        "type": "object",
        "properties": {
            "people": { "type": "integer", "minimum": 1, "maximum": 12 },
            "window": { "type": "boolean", "default": true },
        },
        "required": ["people", "window"],
    } } })
}

fn asks(questions: Value, state: Option<&str>) -> Value {
    let mut result = json!({ "resultType": "input_required" });
    result["inputRequests"] = questions;
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn state_only(state: &str) -> Value {
    json!({ "resultType": "input_required", "requestState": state })
}

fn done() -> Value {
    json!({ "resultType": "complete", "content": [] })
}

fn bounded(rounds: u32) -> Exchange<CallTool> {
    call().limits(FlowLimits { rounds, ..FlowLimits::default() })
}
