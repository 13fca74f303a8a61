//! One request at a time, with the caller in charge.

use roundtrip::client::{ApiMisuse, Kind};
use roundtrip::wire::{GetPrompt, ReadResource};
use roundtrip::{Error, FormRequest, Pending, Turn};
use serde_json::json;
use tokio::time::Instant;

use super::script::{again, asks, done, page, party, replies};
use crate::fixture::text;

fn asked<M: roundtrip::wire::MayAsk>(turn: Turn<M>) -> Pending<M> {
    match turn {
        Turn::Asked(pending) => pending,
        other => panic!("questions, not {other:?}"),
    }
}

/// C9: a call stops at each question, is stored, looked at, answered in part, stored again, and gone on with by
/// another client that has no handlers.
#[tokio::test]
async fn a_call_is_gone_on_with_in_another_process() {
    let (client, log) = replies([asks([("a", party()), ("b", page())], Some("st\"ate"))]);
    let call = client.call_tool("book", json!({ "at": "Nopa" })).meta("com.example/tenant", 7);
    let stored = serde_json::to_string(&asked(call.one_round().await.expect("a turn"))).expect("serialises");

    let pending: Pending = serde_json::from_str(&stored).expect("what was stored");
    let seen: Vec<_> = pending.questions().map(|question| (question.key(), question.kind())).collect();
    assert_eq!(seen, [("a", Kind::Form), ("b", Kind::Url)]);
    assert_eq!(pending.questions().next().and_then(|form| form.message()), Some("How many people?"));
    let half = pending.answer("a", json!({ "people": 4 })).expect("fits");
    let stored = serde_json::to_string(&half).expect("serialises");

    let (other, other_log) = replies([asks([("c", party())], None), done()]);
    let pending: Pending = serde_json::from_str(&stored).expect("what was stored");
    let turn = other.resume(pending.consent("b").expect("fits")).await.expect("a turn");
    let sent = other_log.requests()[0].clone();
    assert_eq!(sent["method"], "tools/call");
    assert_eq!(sent["params"]["_meta"]["com.example/tenant"], 7);
    let first = log.params(0);
    let mut expected = first.clone();
    expected["inputResponses"] = json!({
        "a": { "action": "accept", "content": { "people": 4, "window": true } },
        "b": { "action": "accept" },
    });
    expected["requestState"] = json!("st\"ate");
    assert_eq!(other_log.params(0), expected);

    let Turn::Done(result) = other.resume(asked(turn).decline("c").expect("fits")).await.expect("a turn")
    else {
        panic!("it is done")
    };
    assert_eq!(text(&result), "done");
    let mut expected = first;
    expected["inputResponses"] = json!({ "c": { "action": "decline" } });
    assert_eq!(other_log.params(1), expected, "no state where there was none");
}

/// C9: going on with a question open is a mistake that names it, and nothing is sent.
#[tokio::test]
async fn open_questions_are_named() {
    let (client, log) = replies([asks([("a", party()), ("b", party())], None)]);
    let pending = asked(client.call_tool("book", ()).one_round().await.expect("a turn"));
    let error = client.resume(pending.decline("a").expect("fits")).await.expect_err("`b` is open");
    assert!(
        matches!(&error, Error::ApiMisuse(ApiMisuse::Unanswered { keys }) if keys == &["b"]),
        "{error:?}"
    );
    assert_eq!(log.len(), 1);
}

/// C9: where there is nothing to answer, going on is all there is to do; the pauses are kept.
#[tokio::test(start_paused = true)]
async fn a_round_that_asks_nothing_is_just_gone_on_with() {
    let (client, log) = replies([again("1"), again("2"), done()]);
    let begun = Instant::now();
    let mut turn = client.read_resource("app://x").one_round().await.expect("a turn");
    let mut turns = 0;
    while let Turn::Asked(pending) = turn {
        assert_eq!(pending.questions().count(), 0);
        turns += 1;
        if turns == 2 {
            assert_eq!(begun.elapsed().as_millis(), 50);
            break;
        }
        turn = client.resume(pending).await.expect("a turn");
    }
    assert_eq!((turns, log.len()), (2, 2));
    assert_eq!(log.params(1), json!({ "uri": "app://x", "requestState": "1" }));
}

/// C9: taking questions by hand declares forms and pages, and leaves the handlers alone.
#[tokio::test]
async fn taking_questions_by_hand_needs_no_handlers() {
    let (client, log) = replies([asks([("a", party())], None), done()]);
    let client = client.on_form(async |_: FormRequest| -> roundtrip::FormAnswer { panic!("by hand") });
    let pending = asked(client.call_tool("book", ()).one_round().await.expect("a turn"));
    let _ = client.resume(pending.cancel("a").expect("fits")).await.expect("a turn");
    for number in 0..2 {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        let declared = json!({ "elicitation": { "form": {}, "url": {} }, "extensions": extensions });
        assert_eq!(log.declared(number), declared);
    }
}

/// C9, C6: rounds are counted across processes.
#[tokio::test]
async fn rounds_are_counted_across_turns() {
    let first = asks([("a", party())], None);
    let (client, _log) = replies([first.clone(), first]);
    let pending = asked(client.call_tool("book", ()).max_rounds(1).one_round().await.expect("a turn"));
    let stored = serde_json::to_string(&pending.decline("a").expect("fits")).expect("serialises");
    let pending: Pending = serde_json::from_str(&stored).expect("what was stored");
    let error = client.resume(pending).await.expect_err("one round was allowed");
    assert!(matches!(error, Error::GaveUp(_)), "{error:?}");
}

/// C9: all three methods that may ask can be taken by hand, and each is gone on with as itself.
#[tokio::test]
async fn every_method_that_may_ask_can_be_taken_by_hand() {
    let (client, log) = replies([asks([("a", party())], None), json!({ "messages": [] })]);
    let call = client.get_prompt("review").argument("lang", "rust");
    let pending = asked(call.one_round().await.expect("a turn"));
    let stored = serde_json::to_string(&pending).expect("serialises");
    assert!(serde_json::from_str::<Pending<ReadResource>>(&stored).is_err());
    let pending: Pending<GetPrompt> = serde_json::from_str(&stored).expect("what was stored");
    let turn = client.resume(pending.decline("a").expect("fits")).await.expect("a turn");
    assert!(matches!(turn, Turn::Done(prompt) if prompt.messages.is_empty()));
    assert_eq!(log.params(1)["arguments"], json!({ "lang": "rust" }));
}
