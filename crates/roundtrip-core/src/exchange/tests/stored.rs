//! A flow that is stored between two requests.

use serde_json::{Value, json};

use super::super::Pending;
use super::{asked, asks, call, paused, people, sent, state_only};
use crate::wire::{CallTool, GetPrompt, Raw};

fn store(pending: &Pending) -> String {
    serde_json::to_string(pending).expect("serialises")
}

fn restore(text: &str) -> Pending {
    serde_json::from_str(text).expect("what was stored")
}

/// C9: what is stored goes on where it was: answers so far, questions still open, state, bounds and counts.
#[test]
fn a_stored_flow_goes_on_where_it_was() {
    let mut result = asks(json!({ "a": people(), "b": people() }), Some("st\u{0}ate"));
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } });
    let meta = [("com.example/x", Raw::from(json!(1)))].into_iter().collect();
    let exchange = call().with_meta(meta).idempotency_key(Some("k".to_owned()));
    let pending = asked(exchange, result).answer("a", json!({ "people": 3 })).expect("fits");
    let restored = restore(&store(&pending));
    assert_eq!(restored.open().map(|question| question.key()).collect::<Vec<_>>(), ["b"]);
    assert_eq!((restored.round(), restored.server().map(|server| &*server.name)), (1, Some("s")));
    let restored = restore(&store(&restored.decline("b").expect("fits")));
    let retry = restored.resume().expect("answered");
    let direct = pending.decline("b").expect("fits").resume().expect("answered");
    assert_eq!(sent(&retry), sent(&direct));
    assert_eq!((retry.meta(), retry.request_key().as_deref()), (direct.meta(), Some("k.2")));
    let next = asked(retry, asks(json!({ "c": people() }), None));
    assert_eq!(next.round(), 2);
}

/// C9: a flow that only waits can be stored as well, and keeps its pace.
#[test]
fn a_stored_pause_keeps_its_pace() {
    let (_, pending) = paused(call(), state_only("1"));
    let (_, pending) = paused(pending.resume().expect("nothing to answer"), state_only("2"));
    assert_eq!(restore(&store(&pending)).pause().as_millis(), 100);
}

/// C9: a flow is taken up as the call that it is, and with answers that fit.
#[test]
fn what_was_tampered_with_in_storage_is_noticed() {
    let pending = asked(call(), asks(json!({ "a": people() }), None)).answer("a", json!({ "people": 3 }));
    let text = store(&pending.expect("fits"));
    let error = serde_json::from_str::<Pending<GetPrompt>>(&text).expect_err("another method");
    assert!(error.to_string().contains("`tools/call`, not of `prompts/get`"), "{error}");
    let mut value: Value = serde_json::from_str(&text).expect("json");
    value["answers"]["a"]["content"]["people"] = json!(99);
    let error = serde_json::from_value::<Pending<CallTool>>(value).expect_err("a misfit");
    assert!(error.to_string().contains("`a` does not fit"), "{error}");
    let mut value: Value = serde_json::from_str(&text).expect("json");
    let members = ["method", "flow", "server", "questions", "answers", "state", "task"];
    let list: Vec<Value> = members.iter().map(|member| value[member].take()).collect();
    let error = serde_json::from_value::<Pending>(list.into()).expect_err("a list");
    assert!(error.to_string().contains("sequence"), "{error}");
}
