//! Clients that hang up while a round is claimed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, Timestamp};
use roundtrip::server::ledger::{self, Claim, Ledger, LedgerError, RoundKey};
use roundtrip::server::{Endpoint, Limits};
use roundtrip::{Ask, Server, State, Tool, ToolError};
use serde_json::json;
use tokio::sync::Notify;

use super::*;

/// A step that waits until it is let go, and another after it.
async fn charge(State(shop): State<Shop>, ask: Ask) -> Result<String, ToolError> {
    let run = ask
        .once("charge", async |_| {
            let run = shop.work();
            shop.go.notified().await;
            Ok::<_, ToolError>(run)
        })
        .await?;
    tokio::task::yield_now().await;
    Ok(format!("charge {run}"))
}

fn charging(shop: &Shop) -> Server {
    Server::new("shop", "1").state(shop.clone()).tool(Tool::new("charge", charge))
}

fn call(endpoint: &Endpoint) -> InFlight {
    begin_as(None, endpoint, "tools/call", keyed("k", json!({ "name": "charge" })))
}

/// M6: a claimed round whose client hangs up inside a step goes on to its end and is recorded: the repeat gets its reply, and
/// nothing is charged twice.
#[tokio::test]
async fn hanging_up_inside_a_step_does_not_run_it_again() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let endpoint = charging(&shop).ledger(ledger.clone()).build().expect("a server");
    for _ in 0..4 {
        let mut call = call(&endpoint);
        poll(&mut call);
        drop(call);
    }
    assert_eq!((shop.done(), ledger.len()), (1, 1), "the others wait for the first");
    let waiting = tokio::spawn({
        let (endpoint, waiting) = (endpoint.clone(), call(&endpoint));
        async move { end(&endpoint, waiting).await }
    });
    shop.go.notify_one();
    assert_eq!(text(&waiting.await.expect("a reply")), "charge 1");
    assert_eq!(text(&end(&endpoint, call(&endpoint)).await), "charge 1");
    assert_eq!(shop.done(), 1);
}

/// A ledger that takes its time to record.
struct Slow {
    inner: MemoryLedger,
    go: Arc<Notify>,
    recording: Arc<Notify>,
}

struct ClaimGuard(Box<dyn ledger::ClaimGuard>, Arc<Notify>, Arc<Notify>);

impl Ledger for Slow {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        Box::pin(async move {
            Ok(match self.inner.claim(key, until).await? {
                Claim::Run(held) => {
                    Claim::Run(Box::new(ClaimGuard(held, Arc::clone(&self.go), Arc::clone(&self.recording))))
                }
                other => other,
            })
        })
    }
}

impl ledger::ClaimGuard for ClaimGuard {
    fn record(
        self: Box<Self>,
        reply: Bytes,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        Box::pin(async move {
            self.2.notify_one();
            self.1.notified().await;
            self.0.record(reply, until).await
        })
    }
}

/// M6: a client that hangs up while its reply is being recorded does not make the round run again, with or without a step.
#[tokio::test]
async fn hanging_up_while_the_reply_is_recorded_does_not_run_the_round_again() {
    let (shop, go, recording) = (Shop::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let ledger = Slow { inner: MemoryLedger::new(), go: Arc::clone(&go), recording: Arc::clone(&recording) };
    let endpoint = server(&shop).ledger(ledger).build().expect("a server");
    let slow = || begin_as(None, &endpoint, "tools/call", keyed("k", json!({ "name": "slow" })));
    shop.go.notify_one();
    let mut first = slow();
    tokio::select! {
        biased;
        _ = first.event() => panic!("it is not recorded yet"),
        () = recording.notified() => {}
    }
    drop(first);
    go.notify_one();
    assert_eq!(text(&end(&endpoint, slow()).await), "run 1");
    assert_eq!(shop.done(), 1);
}

/// Z3: a round without a client has a bound: past it the handler is dropped and its claim released.
#[tokio::test(start_paused = true)]
async fn a_round_without_a_client_does_not_go_on_for_good() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let mut limits = Limits::default();
    limits.finish_within = Duration::from_secs(5);
    let endpoint = charging(&shop).limits(limits).ledger(ledger.clone()).build().expect("a server");
    let mut first = call(&endpoint);
    poll(&mut first);
    drop(first);
    assert_eq!(ledger.len(), 1);
    endpoint.finished().await;
    assert!(ledger.is_empty());
    shop.go.notify_one();
    assert_eq!(text(&end(&endpoint, call(&endpoint)).await), "charge 2");
}

/// Z3: rounds without a client keep their places among the calls that may run at once.
#[tokio::test]
async fn rounds_without_a_client_count_against_the_limit() {
    let shop = Shop::default();
    let mut limits = Limits::default();
    limits.concurrent_calls = 1;
    let server = charging(&shop).tool(Tool::new("plain", async || "plain")).limits(limits);
    let endpoint = server.ledger(MemoryLedger::new()).build().expect("a server");
    let mut first = call(&endpoint);
    poll(&mut first);
    drop(first);
    let plain = || begin_as(None, &endpoint, "tools/call", plain(json!({ "name": "plain" })));
    assert_eq!(end(&endpoint, plain()).await["error"]["code"], 503);
    shop.go.notify_one();
    endpoint.finished().await;
    while end(&endpoint, plain()).await.get("error").is_some() {
        tokio::task::yield_now().await;
    }
}

/// H9: a server that stops waits for claimed rounds whose clients have hung up.
#[tokio::test]
async fn shutdown_waits_for_rounds_without_a_client() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let http = charging(&shop).ledger(ledger.clone()).into_http().expect("a server");
    let endpoint = http.endpoint().clone();
    let mut running = crate::support::Running::start_http(http).await;
    let mut first = call(&endpoint);
    poll(&mut first);
    drop(first);
    running.begin_stop();
    let stopping = tokio::spawn(running.stop());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished(), "the round is not recorded yet");
    shop.go.notify_one();
    stopping.await.expect("the server's end");
    assert!(ledger.bytes() > 0, "the reply is recorded");
}
