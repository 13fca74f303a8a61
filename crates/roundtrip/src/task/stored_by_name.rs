//! Tests: stored tasks are objects, and a list of the values of their members is not taken for them.

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::json;
use serde_json::{Value, json};

use super::view::{View, prefixed};
use super::{Ended, Millis, OrphanTask, Record, TaskCall, TaskId, TaskOwner};
use crate::listed::assert_read_by_name;

/// A record with a question, and the answer to it.
fn record() -> Value {
    let page = json!({ "mode": "url", "message": "m", "url": "https://a" });
    json!({
        "tool": "t", "status": "input_required", "message": null, "created": 1, "updated": 2, "ttl": null,
        "flow": vec![0; 16], "rounds": 1, "waits": 0,
        "questions": [{ "wire": "k", "key": "k", "request": { "method": "elicitation/create", "params": page } }],
        "spent": [], "answers": { "k": 1 }, "cancelled": false, "left": null, "stateful": false, "parts": [0, 0],
        "failure": null, "client": null,
    })
}

fn call() -> Value {
    json!({
        "params": 1, "principal": "ada", "rights": { "scopes": "a b", "claims": {} }, "extensions": { "e": 1 },
    })
}

#[test]
fn a_list_is_not_taken_for_the_record_of_a_task() {
    assert_read_by_name(&record(), |stored| Record::read(stored.to_string().as_bytes()).is_ok());
}

#[test]
fn a_list_is_not_taken_for_the_call_of_a_task() {
    assert_read_by_name(&call(), |stored| {
        json::from_slice::<TaskCall>(stored.to_string().as_bytes()).is_ok()
    });
}

#[test]
fn a_list_is_not_taken_for_a_task_that_clients_see() {
    let task = json!({ "taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "" });
    assert_read_by_name(&task, |stored| {
        let view = View { updated: Millis(1), tool: b"t", task: stored.to_string().as_bytes() }.joined();
        Record::read_view(&view, None, Millis(1)).is_ok()
    });
}

#[test]
fn a_list_is_not_taken_for_what_an_earlier_release_has_stored() {
    let mut stored = record();
    stored["call"] = call();
    stored["error"] = json!({ "code": 1, "message": "m" });
    assert_read_by_name(&stored, |stored| {
        let mut work = Vec::new();
        prefixed(&mut work, stored.to_string().as_bytes());
        let view = View { updated: Millis(1), tool: b"t", task: b"" }.joined().into();
        let (id, owner) = (TaskId::new([0; 16]), TaskOwner::new(None));
        let orphan = OrphanTask { id, owner, version: 1, view, work: work.into() };
        orphan.adopted(Digest::of("a", &[]), Digest::of("b", &[])).is_ok()
    });
}

#[test]
fn a_list_is_not_taken_for_an_error_that_a_task_ended_with() {
    let failed = Ended::Failed(roundtrip_core::wire::ErrorObject::internal("m")).encoded().expect("bytes");
    let kind = failed.slice(..1);
    let error: Value = json::from_slice(&failed[1..]).expect("an error");
    assert_read_by_name(&error, |stored| {
        Ended::decode(&[&kind[..], stored.to_string().as_bytes()].concat()).is_ok()
    });
}
