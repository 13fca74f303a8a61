//! Connections that break, and what is sent again.

use roundtrip::client::Sent;
use roundtrip::{Client, Error, FormRequest, Resend, Turn};
use serde_json::{Value, json};

use super::script::{Answer, Log, asks, done, party, scripted};

/// A server that asks once, and whose connection breaks at the requests with these numbers.
fn breaking(broken: &'static [usize], sent: Sent) -> (Client, std::sync::Arc<Log>) {
    let (client, log) = scripted(move |number, request| {
        if broken.contains(&number) {
            return Answer::Broken(sent);
        }
        let answered = request["params"].get("inputResponses").is_some();
        Answer::Result(if answered { done() } else { asks([("party", party())], Some("s")) })
    });
    (client.on_form(async |form: FormRequest| form.decline()), log)
}

fn keys(log: &Log) -> Vec<Value> {
    let key = |request: &Value| request["params"]["_meta"]["dev.roundtrip/idempotencyKey"].clone();
    log.requests().iter().map(key).collect()
}

/// C16: what cannot have reached the server is sent again, twice at most, under a new id; the user is not asked again.
#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_sent_again() {
    let (client, log) = breaking(&[0, 2, 3], Sent::No);
    client.call_tool("book", ()).await.expect("a result");
    assert_eq!(log.len(), 5);
    let ids: std::collections::HashSet<String> =
        log.requests().iter().map(|request| request["id"].to_string()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!((log.params(2), log.params(3)), (log.params(4), log.params(4)));
    let (client, log) = breaking(&[1, 2, 3, 4], Sent::No);
    let error = client.call_tool("book", ()).await.expect_err("it stays broken");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert_eq!(log.len(), 4);
    let (client, log) = breaking(&[0], Sent::No);
    client.call_tool("book", ()).resend(Resend::Never).await.expect_err("broken");
    assert_eq!(log.len(), 1);
}

/// C16: whoever is turned away does not knock again.
#[tokio::test(start_paused = true)]
async fn what_was_turned_away_is_not_sent_again() {
    let (client, log) = scripted(|_, _| Answer::TurnedAway);
    client.call_tool("book", ()).resend(Resend::Always).await.expect_err("turned away");
    assert_eq!(log.len(), 1);
}

/// C16: what may have reached the server is not sent again, unless the caller says that it may be.
#[tokio::test(start_paused = true)]
async fn what_may_have_arrived_is_not_sent_again_unasked() {
    for broken in [&[0], &[1]] {
        let (client, log) = breaking(broken, Sent::Maybe);
        let error = client.call_tool("book", ()).await.expect_err("broken");
        assert!(matches!(error, Error::Unreachable { sent: Sent::Maybe, .. }), "{error:?}");
        assert_eq!(log.len(), broken[0] + 1);
    }
    let (client, log) = breaking(&[0, 2], Sent::Maybe);
    client.call_tool("book", ()).resend(Resend::Always).await.expect("a result");
    assert_eq!(log.len(), 4);
}

/// C16: a server that keeps a ledger knows a round by its state, and the first request has none.
#[tokio::test(start_paused = true)]
async fn a_ledger_knows_requests_by_their_state() {
    let (client, log) = breaking(&[1], Sent::Maybe);
    client.call_tool("book", ()).resend(Resend::Ledger).await.expect("a result");
    assert_eq!(log.params(1), log.params(2));
    let (client, log) = breaking(&[0], Sent::Maybe);
    client.call_tool("book", ()).resend(Resend::Ledger).await.expect_err("no state to be known by");
    assert_eq!(log.len(), 1);
}

/// C16: with an idempotency key requests are sent again, each round under a name of its own that stays the same
/// however often it is sent.
#[tokio::test(start_paused = true)]
async fn an_idempotency_key_names_every_request() {
    let (client, log) = breaking(&[0, 2], Sent::Maybe);
    client.call_tool("book", ()).idempotency_key("order-17").await.expect("a result");
    assert_eq!(keys(&log), ["order-17.1", "order-17.1", "order-17.2", "order-17.2"]);
    let (client, log) = breaking(&[0], Sent::Maybe);
    let call = client.call_tool("book", ()).idempotency_key("order-17").resend(Resend::Unsent);
    call.await.expect_err("broken");
    assert_eq!(keys(&log), ["order-17.1"]);
    let by_hand = client.call_tool("book", ()).meta("dev.roundtrip/idempotencyKey", "k").await;
    assert!(matches!(by_hand, Err(Error::ApiMisuse(why)) if why.to_string().contains("idempotency_key")));
}

/// C16, C9: the key goes with the call to whoever goes on with it.
#[tokio::test(start_paused = true)]
async fn a_key_goes_on_with_the_call() {
    let (client, log) = breaking(&[1], Sent::Maybe);
    let turn = client.call_tool("book", json!({})).idempotency_key("k").once().await.expect("a turn");
    let Turn::Asked(pending) = turn else { panic!("it asks") };
    let _ = client.resume(pending.decline("party").expect("fits")).await.expect("a turn");
    assert_eq!(keys(&log), ["k.1", "k.2", "k.2"]);
}
