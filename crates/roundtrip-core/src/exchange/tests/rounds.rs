//! The order of questions, pauses and requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Action, Answer, Exchange, Params};
use super::{asked, asks, bounded, call, done, paused, people, reply, sent, state_only};
use crate::error::{Error, GaveUp};
use crate::wire::{ListTools, Raw, ReadResource};

/// C2: the state is handed back as it came, whatever is in it, and a round without one is answered without one.
#[test]
fn hands_the_state_back_and_none_where_there_was_none() {
    let state = "{\"a\": \"\\u0000 ✓\"}\n\t ";
    let first = asked(call(), asks(json!({ "party": people() }), Some(state)));
    let retry = first.answer("party", json!({ "people": 2 })).expect("fits").resume().expect("answered");
    assert_eq!(sent(&retry)["requestState"], state);
    let second = asked(retry, asks(json!({ "party": people() }), None));
    let retry = second.decline("party").expect("fits").resume().expect("answered");
    assert!(sent(&retry).get("requestState").is_none());
}

/// C2: nothing shows what is in a state.
#[test]
fn a_state_is_not_shown() {
    let pending = asked(call(), asks(json!({ "party": people() }), Some("s3cret")));
    let pending = pending.answer("party", json!({ "people": 11 })).expect("fits");
    let shown = format!("{pending:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("11"), "{shown}");
    let retry = pending.resume().expect("answered");
    let shown = format!("{retry:?} {:?}", retry.params());
    assert!(!shown.contains("s3cret") && !shown.contains("11"), "{shown}");
    assert!(shown.contains("requestState") && shown.contains("inputResponses"), "{shown}");
}

/// C2: an answer shows what was done, and not what was said.
#[test]
fn an_answer_is_not_shown() {
    let content = json!({ "people": 11 }).as_object().cloned().expect("an object");
    assert_eq!(format!("{:?}", Answer::accept(content)), "Elicit(Accept, ..)");
}

/// C3: a retry has the same parameters, and answers to what the round before asked, and to nothing else.
#[test]
fn a_retry_has_the_same_parameters_and_the_newest_answers() {
    let first = asked(call(), asks(json!({ "party": people() }), Some("1")));
    let retry = first.answer("party", json!({ "people": 2 })).expect("fits").resume().expect("answered");
    let party = json!({ "party": { "action": "accept", "content": { "people": 2, "window": true } } });
    let expected = json!({ "name": "book", "arguments": { "at": "Nopa" }, "inputResponses": party, "requestState": "1" });
    assert_eq!(sent(&retry), expected);
    let second = asked(retry, asks(json!({ "roots": { "method": "roots/list" } }), Some("2")));
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    let retry = second.answer("roots", &roots).expect("fits").resume().expect("answered");
    assert_eq!(sent(&retry)["inputResponses"], json!({ "roots": roots }));
    let (_, pending) = paused(retry, state_only("3"));
    let retry = pending.resume().expect("nothing to answer");
    assert_eq!(sent(&retry), json!({ "name": "book", "arguments": { "at": "Nopa" }, "requestState": "3" }));
    assert!(matches!(reply(retry, done()), Ok(Action::Done(_))));
}

/// Questions are shown in the order in which the server wrote them, after a stay in a file too.
#[test]
fn questions_keep_their_order() {
    let written: serde_json::Map<String, Value> =
        ["street", "city", "a10", "a9"].into_iter().map(|key| (key.to_owned(), people())).collect();
    let keys = |pending: &super::super::Pending| -> Vec<String> {
        pending.questions().map(|question| question.key().to_owned()).collect()
    };
    let pending = asked(call(), asks(written.into(), None));
    assert_eq!(keys(&pending), ["street", "city", "a10", "a9"]);
    let stored = serde_json::to_string(&pending).expect("it serialises");
    assert_eq!(
        keys(&serde_json::from_str(&stored).expect("it is read back")),
        ["street", "city", "a10", "a9"]
    );
}

/// C1: a flow does not go on before every question of the round is answered.
#[test]
fn every_question_is_answered_before_the_retry() {
    let pending = asked(call(), asks(json!({ "a": people(), "b": people() }), None));
    let pending = pending.cancel("b").expect("fits");
    let open: Vec<&str> = pending.open().map(|question| question.key()).collect();
    assert_eq!(open, ["a"]);
    assert!(super::misuse(pending.clone().resume()).contains("`a`"));
    let retry = pending.decline("a").expect("fits").resume().expect("answered");
    assert_eq!(
        sent(&retry)["inputResponses"],
        json!({ "a": { "action": "decline" }, "b": { "action": "cancel" } })
    );
}

/// C5: rounds that ask nothing are no results; pauses between them grow, and they are not among the rounds that may ask.
#[test]
fn pauses_grow_and_are_counted_apart() {
    let mut exchange = bounded(1);
    let mut pauses = Vec::new();
    for number in 1..=9 {
        let (pause, pending) = paused(exchange, state_only(&number.to_string()));
        assert_eq!((pending.pause(), pending.round()), (pause, number));
        pauses.push(pause.as_millis());
        exchange = pending.resume().expect("nothing to answer");
    }
    assert_eq!(pauses, [50, 100, 200, 250, 500, 1000, 2000, 2000, 2000]);
    let pending = asked(exchange, asks(json!({ "party": people() }), None));
    assert_eq!((pending.pause(), pending.round()), (Duration::ZERO, 10));
    // Something has happened, so the pace is brisk again.
    let (pause, _) =
        paused(pending.decline("party").expect("fits").resume().expect("answered"), state_only("x"));
    assert_eq!(pause.as_millis(), 50);
}

/// C5: rounds that ask nothing are bounded in time, requests included.
#[test]
fn waiting_is_bounded_in_time() {
    let (mut exchange, mut rounds) = (call(), 0);
    let error = loop {
        match exchange.reply(Raw::from(state_only("s")).as_ref(), Duration::from_secs(1)) {
            Ok(Action::Pause(_, pending)) => exchange = pending.resume().expect("nothing to answer"),
            Ok(other) => panic!("a pause, not {other:?}"),
            Err(error) => break error,
        }
        rounds += 1;
    };
    assert!(
        matches!(&error, Error::GaveUp(GaveUp::PolledTooLong { allowed, .. }) if allowed.as_secs() == 300),
        "{error}"
    );
    assert!((95..105).contains(&rounds), "{rounds}");
}

/// C6: the bound is checked when questions come, so nobody is asked for an answer that cannot be sent.
#[test]
fn rounds_that_ask_are_bounded_before_anybody_is_asked() {
    let again = || asks(json!({ "party": people() }), Some("s"));
    let mut exchange = call();
    for round in 1..=10 {
        let pending = asked(exchange, again());
        assert_eq!(pending.round(), round);
        exchange = pending.decline("party").expect("fits").resume().expect("answered");
    }
    let error = reply(exchange.clone(), again()).expect_err("one too many");
    assert!(matches!(error, Error::GaveUp(GaveUp::TooManyRounds { rounds: 10, allowed: 10, .. })), "{error}");
    assert!(matches!(reply(exchange, done()), Ok(Action::Done(_))), "the last answer was not thrown away");
    assert!(reply(bounded(0), again()).is_err());
}

/// C15: neither questions nor a state, or questions from a method that may not ask: named errors. W8: so is a type
/// that nobody knows, and none at all means complete.
#[test]
fn replies_that_break_the_rules_are_named() {
    let error = |result: Value| reply(call(), result).expect_err("an error").to_string();
    assert!(error(json!({ "resultType": "input_required" })).contains("neither questions nor a state"));
    assert!(error(asks(json!({}), None)).contains("neither questions nor a state"));
    assert!(error(json!({ "resultType": "riddle" })).contains("`riddle`"));
    let unknown = json!({ "k": { "method": "magic/do", "params": {} } });
    assert!(error(asks(unknown, None)).contains("result.inputRequests.k"));
    assert!(
        error(json!({ "resultType": "input_required", "requestState": 42 })).contains("result.requestState")
    );
    let list = Exchange::<ListTools>::new(Params::default());
    let refused = list.reply(Raw::from(state_only("s")).as_ref(), Duration::ZERO).expect_err("may not ask");
    assert!(refused.to_string().contains("`tools/list`"), "{refused}");
    assert!(matches!(reply(call(), json!({ "content": [] })), Ok(Action::Done(_))));
}

/// `_meta` on an `input_required` result does not make it a result of the tool; it names the server.
#[test]
fn meta_does_not_make_a_result_complete() {
    let mut result = asks(json!({ "party": people() }), None);
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": { "name": "bookings", "version": "1" } });
    let pending = asked(call(), result);
    assert_eq!(pending.server().map(|server| &*server.name), Some("bookings"));
    assert_eq!((pending.method(), pending.target().as_deref()), ("tools/call", Some("book")));
}

/// Every request of a flow has its own idempotency key, the same each time it is sent.
#[test]
fn every_request_has_a_key_of_its_own() {
    let exchange = call().idempotency_key(Some("k".to_owned()));
    assert_eq!(exchange.request_key().as_deref(), Some("k.1"));
    assert_eq!(exchange.request_key().as_deref(), Some("k.1"));
    let (_, pending) = paused(exchange, state_only("s"));
    assert_eq!(pending.resume().expect("nothing to answer").request_key().as_deref(), Some("k.2"));
    assert_eq!(call().request_key(), None);
}

/// Resources ask as tools do.
#[test]
fn resources_may_ask() {
    let params = [("uri", Raw::from(json!("app://x")))].into_iter().collect();
    let step =
        Exchange::<ReadResource>::new(params).reply(Raw::from(state_only("s")).as_ref(), Duration::ZERO);
    let Ok(Action::Pause(_, pending)) = step else { panic!("a pause, not {step:?}") };
    assert_eq!(pending.target().as_deref(), Some("app://x"));
}

/// A flow that begins anew forgets answers and state, and goes on counting.
#[test]
fn a_restarted_flow_has_no_state_and_a_new_key() {
    let first = call().idempotency_key(Some("k".to_owned()));
    assert!(!first.has_state());
    let before = sent(&first);
    let pending = asked(first, asks(json!({ "a": people() }), Some("s")));
    let retry = pending.decline("a").expect("fits").resume().expect("answered");
    assert!(retry.has_state());
    let again = retry.restart();
    assert_eq!(sent(&again), before);
    assert_eq!(again.request_key().as_deref(), Some("k.3"));
}
