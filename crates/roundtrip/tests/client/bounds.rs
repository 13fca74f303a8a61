//! Servers that never stop: endless pages, endless messages, endless questions. Every one of them is bounded.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use roundtrip::client::{BoxFuture, ClientLimits, Incoming, Outgoing, Transport};
use roundtrip::{Client, Error, FormRequest};
use serde_json::{Value, json};

use crate::peer::{Seen, peer};
use crate::rounds::script::{Answer, done, party, scripted};

/// Ends what would never end, so that a test fails instead of hanging.
async fn in_time<T>(work: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work.into_future()).await.expect("no hang")
}

fn limits(change: impl FnOnce(&mut ClientLimits)) -> ClientLimits {
    let mut limits = ClientLimits::default();
    change(&mut limits);
    limits
}

/// A page of tools that always has another one after it.
fn endless_page(number: usize) -> Value {
    json!({ "tools": [{ "name": format!("t{number}"), "inputSchema": { "type": "object" } }],
            "nextCursor": number.to_string() })
}

/// A server that refuses the headers of every call, and lists tools for ever.
fn refuses_and_lists(number: usize, request: &Seen) -> Vec<u8> {
    match request.body["method"].as_str() {
        Some("tools/list") => request.result(&endless_page(number)),
        _ => request.error("400 Bad Request", &json!({ "code": -32020, "message": "header mismatch" })),
    }
}

/// C8: mending headers by listing the tools is inside the timeout of the call that it is done for.
#[tokio::test]
async fn endless_pages_do_not_outlast_the_timeout_of_a_call() {
    let (client, _seen) = peer(refuses_and_lists).await;
    let client = client.limits(limits(|limits| limits.list_pages = usize::MAX));
    let error = in_time(client.call_tool("x", ()).timeout(Duration::from_millis(500))).await;
    let error = error.expect_err("no result");
    assert!(matches!(error, Error::Timeout { after, .. } if after.as_millis() == 500), "{error:?}");
}

/// C8: a list that is awaited as a whole has one timeout, however many pages it has.
#[tokio::test]
async fn endless_pages_do_not_outlast_the_timeout_of_a_list() {
    let (client, _seen) = peer(refuses_and_lists).await;
    let client = client.limits(limits(|limits| limits.list_pages = usize::MAX));
    let error = in_time(client.list_tools().timeout(Duration::from_millis(300))).await;
    assert!(matches!(error, Err(Error::Timeout { after, .. }) if after.as_millis() == 300), "{error:?}");
}

/// C8: what a stream of changes takes to be opened, headers mended included, is inside its timeout.
#[tokio::test(start_paused = true)]
async fn opening_a_stream_of_changes_is_inside_its_timeout_whatever_it_takes() {
    let versions = json!({ "code": -32022, "message": "no", "data": { "supported": ["2026-07-28"] } });
    let (client, log) = scripted(move |number, _| match number {
        0 => Answer::LateError(Duration::from_secs(6), versions.clone()),
        _ => Answer::Silence,
    });
    let begun = tokio::time::Instant::now();
    let error = client.listen().tools().timeout(Duration::from_secs(9)).await.expect_err("silence");
    assert!(matches!(error, Error::Timeout { after, .. } if after.as_secs() == 9), "{error:?}");
    assert_eq!((begun.elapsed().as_secs(), log.len()), (9, 2));
}

/// C8: pauses between attempts and the attempts themselves share one timeout.
#[tokio::test(start_paused = true)]
async fn attempts_share_one_timeout() {
    let (client, log) = scripted(|_, _| Answer::LateBreak(Duration::from_secs(6)));
    let begun = tokio::time::Instant::now();
    let call = client.call_tool("x", ()).resend(roundtrip::client::Resend::Always);
    let error = call.timeout(Duration::from_secs(9)).await.expect_err("it breaks again and again");
    assert!(matches!(error, Error::Timeout { after, .. } if after.as_secs() == 9), "{error:?}");
    assert_eq!((begun.elapsed().as_secs(), log.len()), (9, 2));
}

/// Z2: a list has a largest number of pages, of entries and of bytes, whether it is read at once or page by page.
#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let cases = [
        (limits(|limits| limits.list_pages = 7), 7, "`list_pages`"),
        (limits(|limits| limits.list_items = 5), 5, "`list_items`"),
        (limits(|limits| limits.list_bytes = 1000), 15, "`list_bytes`"),
    ];
    for (limits, most, named) in cases {
        let (client, log) = scripted(|number, _| Answer::Result(endless_page(number)));
        let client = client.limits(limits);
        let error = in_time(client.list_tools()).await.expect_err("no end");
        assert!(matches!(&error, Error::GaveUp(why) if why.to_string().contains(named)), "{error:?}");
        assert!(log.len() <= most + 1, "{} pages for {named}", log.len());

        let mut pages = client.list_tools().fresh().pages();
        let mut read = 0;
        let error = loop {
            match pages.next().await.expect("an error before the end") {
                Ok(_) => read += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, Error::GaveUp(why) if why.to_string().contains(named)), "{error:?}");
        assert!(read <= most && pages.next().await.is_none(), "{read}");
    }
}

/// Z2: without a word about limits, a list ends all the same.
#[tokio::test]
async fn a_list_without_end_is_given_up_by_default() {
    let (client, log) = scripted(|number, _| Answer::Result(endless_page(number)));
    let error = in_time(client.list_tools()).await.expect_err("no end");
    assert!(matches!(&error, Error::GaveUp(why) if why.to_string().contains("list_pages")), "{error:?}");
    assert_eq!(log.len(), 1000);
}

/// A transport whose answers are notifications, each of them there as soon as it is asked for.
struct Flood(Arc<AtomicUsize>);

impl Transport for Flood {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let id = serde_json::to_value(&outgoing.id).expect("an id");
        let listens = outgoing.method == "subscriptions/listen";
        let sent = Arc::clone(&self.0);
        Box::pin(async move { Ok(Box::pin(Notifications { id, sent, listens }) as Incoming) })
    }
}

struct Notifications {
    id: Value,
    sent: Arc<AtomicUsize>,
    listens: bool,
}

impl Stream for Notifications {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let message = if std::mem::take(&mut self.listens) {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": self.id });
            json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "_meta": meta, "notifications": {} } })
        } else {
            json!({ "jsonrpc": "2.0", "method": "notifications/nothing" })
        };
        Poll::Ready(Some(Ok(message.to_string().into())))
    }
}

/// C8: a server that says something all the time does not keep a timeout from being noticed.
#[tokio::test]
async fn a_flood_of_notifications_does_not_outlast_the_timeout() {
    let sent = Arc::new(AtomicUsize::new(0));
    let client = Client::new(Flood(Arc::clone(&sent)));
    let flooded = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let timeout = Duration::from_millis(50);
            let call = client.call_tool("x", ()).timeout(timeout).await.expect_err("no answer");
            let mut changes = client.listen().tools().await.expect("a stream");
            let change = tokio::time::timeout(timeout, changes.next()).await;
            (matches!(call, Error::Timeout { .. }), change.is_err())
        })
    });
    for _ in 0..2000 {
        if flooded.is_finished() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(flooded.is_finished(), "still reading after {} messages", sent.load(Ordering::SeqCst));
    assert_eq!(flooded.join().expect("no panic"), (true, true));
}

/// A client whose handler for forms counts how often it is asked.
fn counting(client: Client) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let client = client.on_form(move |form: FormRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { form.decline() }
    });
    (client, asked)
}

fn asks_often(questions: usize) -> Value {
    let questions: serde_json::Map<_, _> =
        (0..questions).map(|number| (format!("q{number}"), party())).collect();
    json!({ "resultType": "input_required", "inputRequests": questions, "requestState": "s" })
}

/// Z3: a round that asks more than was agreed to ends the call before anybody is asked, with handlers and by hand.
#[tokio::test]
async fn a_round_of_fifty_thousand_questions_asks_nobody() {
    for (questions, most) in [(50_000, 32), (33, 32), (4, 3)] {
        let (client, _log) = scripted(move |_, _| Answer::Result(asks_often(questions)));
        let (client, asked) = counting(client.limits(limits(|limits| limits.questions = most)));
        let by_hand = client.call_tool("x", ()).one_round().await.map(drop);
        for error in [client.call_tool("x", ()).await.map(drop), by_hand] {
            let Err(Error::PeerMisbehaved(why)) = &error else { panic!("misbehaved, not {error:?}") };
            let why = why.to_string();
            assert!(
                why.contains(&format!("{questions} questions")) && why.contains(&most.to_string()),
                "{why}"
            );
        }
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
}

/// Z3: as many questions as were agreed to are asked.
#[tokio::test]
async fn a_round_may_ask_up_to_its_limit() {
    for most in [32, 3] {
        let respond = move |number: usize, _: &Value| {
            Answer::Result(if number == 0 { asks_often(most) } else { done() })
        };
        let (client, _log) = scripted(respond);
        let (client, asked) = counting(client.limits(limits(|limits| limits.questions = most)));
        client.call_tool("x", ()).await.expect("a result");
        assert_eq!(asked.load(Ordering::SeqCst), most);
    }
}
