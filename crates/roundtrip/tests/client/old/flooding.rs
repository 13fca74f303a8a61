//! Old servers that ask without end: what reaches the handlers is bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use roundtrip::client::ClientLimits;
use roundtrip::{Error, FormAnswer, FormRequest};
use serde_json::json;
use tokio::task::JoinSet;

use super::asking::{ada, tool};
use super::server::{Old, form};
use crate::fixture::text;

/// L7: a server that floods a call with questions, and one that uses an id twice, cost no more than a bounded round.
#[tokio::test]
async fn a_flood_of_questions_is_bounded_and_an_id_counts_once() {
    let (client, old) = Old::start(tool(|_, _, sender| async move {
        for id in 0..500 {
            sender.message(&form(id, "Who?"));
            sender.message(&form(id, "Who again?"));
        }
        sender.0.closed().await;
    }))
    .await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let client = client.on_form(ada);
    let call = client.call_tool("ask", ()).max_rounds(2).on_round(move |round| {
        noted.lock().expect("asked").push(round.questions().count());
        Ok::<(), Error>(())
    });
    let error = call.await.expect_err("too many rounds");
    assert!(matches!(error, Error::GaveUp(_)), "{error}");
    let asked = asked.lock().expect("asked").clone();
    assert!(asked.len() == 2 && asked.iter().all(|count| *count <= 32), "{asked:?}");
    old.wait(|seen| seen.method() == "notifications/cancelled").await;
    drop(client);
}

/// Z3: an old server that asks one thing after the other outside of any call has a bounded number of them with the
/// handlers, and is told so for the rest.
#[tokio::test]
async fn a_flood_of_questions_outside_of_any_call_is_refused() {
    for most in [32, 3] {
        let (client, old) = Old::start(|_, _| None).await;
        let mut limits = ClientLimits::default();
        assert_eq!(limits.questions_outside_calls, 32);
        limits.questions_outside_calls = most;
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let client = client.limits(limits).on_form(move |_: FormRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<FormAnswer>()
        });
        client.list_tools().await.expect("tools");
        let general = old.general.lock().expect("general").clone().expect("a stream");
        for id in 0..most + 20 {
            general.message(&form(id, "Who?"));
        }
        for id in most..most + 20 {
            let refused = old.response(&json!(id)).await;
            assert_eq!(refused["error"]["code"], -32603, "{refused}");
        }
        assert_eq!(asked.load(Ordering::SeqCst), most);
        drop(client);
    }
}

/// Z3: how many questions one round may ask is one limit for all eras: an old server's are spread over rounds.
#[tokio::test]
async fn the_limit_of_a_round_holds_for_old_servers_too() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        for id in 0..10 {
            sender.message(&form(id, "Who?"));
        }
        for id in 0..10 {
            old.response(&json!(id)).await;
        }
        sender.message(&seen.says("thanks"));
    }))
    .await;
    let mut limits = ClientLimits::default();
    limits.questions = 4;
    let rounds = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&rounds);
    let call = client.limits(limits).on_form(ada).call_tool("ask", ()).on_round(move |round| {
        noted.lock().expect("rounds").push(round.questions().count());
        Ok::<(), Error>(())
    });
    assert_eq!(text(&call.await.expect("a result")), "thanks");
    let rounds = rounds.lock().expect("rounds").clone();
    assert!(rounds.iter().sum::<usize>() == 10 && rounds.iter().all(|count| *count <= 4), "{rounds:?}");
}

/// Z2: a question that is too large to be kept is refused in the midst of a call as it is beside one.
#[tokio::test]
async fn a_question_of_two_mebibytes_is_refused() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        sender.message(&form(1, &"?".repeat(2 << 20)));
        let refused = old.response(&json!(1)).await;
        sender.message(&seen.says(&refused["error"]["code"].to_string()));
    }))
    .await;
    assert_eq!(text(&client.on_form(ada).call_tool("ask", ()).await.expect("a result")), "-32602");
}

/// Z3, L7: on a pipe, questions do not say which call they belong to: as many calls as a client makes may each ask one.
#[tokio::test]
async fn every_call_under_way_may_ask_a_question() {
    let (client, old) = Old::start(tool(|_, _, sender| async move { sender.0.closed().await })).await;
    let mut limits = ClientLimits::default();
    limits.questions_outside_calls = 1;
    let client = client.limits(limits).on_form(|_: FormRequest| std::future::pending::<FormAnswer>());
    client.list_tools().await.expect("tools");
    let mut calls = JoinSet::new();
    for name in ["a", "b", "c"] {
        calls.spawn(client.call_tool(name, ()).into_future());
        old.wait(|seen| seen.tool() == name).await;
    }
    let general = old.general.lock().expect("general").clone().expect("a stream");
    for id in 0..5 {
        general.message(&form(id, "Who?"));
    }
    let refused = old.response(&json!(4)).await;
    assert_eq!(refused["error"]["message"], "too many questions at once", "{refused}");
    let answered = old.seen().iter().filter(|seen| seen.body["error"].is_object()).count();
    assert_eq!(answered, 1, "the others are with the handlers");
    drop(calls);
}
