//! Answers, checked against their questions.

use serde_json::{Value, json};

use super::super::{Answer, Kind, Pending};
use super::{asked, asks, call, misuse, people, sent};
use crate::wire::{ElicitAction, ElicitResult};

fn page() -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Sign in", "url": "https://x.example" } })
}

fn sampling() -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "?" } }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 9 } })
}

fn one(question: Value) -> Pending {
    let questions = [("q".to_owned(), question)].into_iter().collect();
    asked(call(), asks(Value::Object(questions), None))
}

fn answered(pending: Pending) -> Value {
    sent(&pending.resume().expect("answered"))["inputResponses"]["q"].clone()
}

/// C11: defaults are filled in, and what was not asked for is left out.
#[test]
fn what_is_sent_is_what_the_form_asked_for() {
    let pending = one(people()).answer("q", json!({ "people": 2, "spare": 1 })).expect("fits");
    assert_eq!(answered(pending), json!({ "action": "accept", "content": { "people": 2, "window": true } }));
}

/// C11: an answer that breaks the schema is an error that says how, and nothing is sent.
#[test]
fn an_answer_that_breaks_the_schema_is_not_taken() {
    let why = misuse(one(people()).answer("q", json!({ "people": 13, "window": "yes" })));
    assert!(why.contains("`q`") && why.contains("at most 12") && why.contains("window"), "{why}");
    assert!(misuse(one(people()).answer("q", json!({}))).contains("people: is required"));
    assert!(misuse(one(people()).answer("q", "two")).contains("not the content of a form"));
    assert!(misuse(one(people()).answer("other", json!({}))).contains("did not ask `other`"));
}

/// C11: an answer of one kind is not taken for a question of another.
#[test]
fn an_answer_of_another_kind_is_not_taken() {
    let message = json!({ "role": "assistant", "content": { "type": "text", "text": "!" }, "model": "m" });
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    assert!(misuse(one(sampling()).answer("q", &roots)).contains("the model's message"));
    assert!(
        misuse(one(json!({ "method": "roots/list" })).answer("q", &message)).contains("the list of roots")
    );
    assert!(misuse(one(sampling()).decline("q")).contains("sampling"));
    assert!(misuse(one(people()).consent("q")).contains("web pages"));
    assert!(misuse(one(people()).give("q", Answer::ListRoots(Default::default()))).contains("form"));
    assert_eq!(answered(one(sampling()).answer("q", &message).expect("fits")), message);
    assert_eq!(answered(one(json!({ "method": "roots/list" })).answer("q", &roots).expect("fits")), roots);
}

/// E4: consent to a web page carries no content.
#[test]
fn consent_carries_no_content() {
    assert_eq!(answered(one(page()).consent("q").expect("fits")), json!({ "action": "accept" }));
    assert!(misuse(one(page()).answer("q", json!({ "token": "x" }))).contains("no content"));
    assert!(misuse(one(page()).give("q", Answer::accept(Default::default()))).contains("no content"));
}

/// A declined answer carries no content, whatever was typed before.
#[test]
fn a_declined_answer_has_no_content() {
    let typed = json!({ "people": 2 }).as_object().cloned();
    for action in [ElicitAction::Decline, ElicitAction::Cancel] {
        let answer = Answer::Elicit(ElicitResult { action, content: typed.clone() });
        let sent = answered(one(people()).give("q", answer).expect("fits"));
        assert!(sent.get("content").is_none(), "{sent}");
    }
}

/// Roots are `file://` URIs that stay where they are.
#[test]
fn roots_that_are_no_folders_are_not_sent() {
    for uri in ["https://x.example", "/home", "file:///a/../b", "file:///a/%2e%2E/b"] {
        let pending = one(json!({ "method": "roots/list" }));
        assert!(misuse(pending.answer("q", json!({ "roots": [{ "uri": uri }] }))).contains(uri));
    }
}

/// C9: a question can be looked at before it is answered.
#[test]
fn questions_can_be_looked_at() {
    let questions = json!({ "a": people(), "b": page(), "c": sampling(), "d": { "method": "roots/list" } });
    let pending = asked(call(), asks(questions, None));
    let seen: Vec<_> =
        pending.questions().map(|question| (question.key(), question.kind(), question.message())).collect();
    assert_eq!(
        seen,
        [
            ("a", Kind::Form, Some("How many?")),
            ("b", Kind::Url, Some("Sign in")),
            ("c", Kind::Sampling, None),
            ("d", Kind::Roots, None),
        ]
    );
    let form = pending.questions().next().expect("a form");
    assert!(form.schema().is_some_and(|schema| schema.property("people").is_some()) && form.url().is_none());
    assert!(!pending.has_state());
    assert_eq!(pending.request_name().to_string(), "`tools/call` of `book`");
    let accepted = Answer::accept(json!({ "people": 99 }).as_object().cloned().expect("an object"));
    let misfit = form.check(accepted).expect_err("too many");
    assert_eq!(misfit.problems().map(|problems| problems.iter().count()), Some(1));
}

/// C9: the schema of a form is there as the server wrote it too, with keywords that have no field here; stored or not.
#[test]
fn the_schema_of_a_form_can_be_read_as_it_came() {
    let schema = json!({
        "type": "object",
        "properties": { "zip": { "type": "string", "title": "ZIP", "description": "five digits", "pattern": "^[0-9]{5}$" } },
        "required": ["zip"],
    });
    let question = json!({ "method": "elicitation/create", "params": { "message": "Where?", "requestedSchema": schema } });
    let pending = asked(call(), asks(json!({ "where": question }), Some("s")));
    assert!(pending.has_state());
    let stored = serde_json::to_string(&pending).expect("it serialises");
    let restored: Pending = serde_json::from_str(&stored).expect("it was stored");
    for pending in [pending, restored] {
        let form = pending.questions().next().expect("a form");
        let found = form.schema().expect("a schema");
        assert_eq!(found.raw().to_value(), schema);
        let zip = found.property("zip").expect("a field");
        assert_eq!((zip.title(), zip.description()), (Some("ZIP"), Some("five digits")));
    }
}
