//! Ledgers that are full, forgetful or out of order, and who stands outside of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use roundtrip::seal::{BoxFuture, Timestamp};
use roundtrip::server::ledger::{self, Claim, LedgerError, RoundKey};
use roundtrip::server::{Ledger, Peer};
use roundtrip::testing::stores;
use roundtrip::wire::{ErrorObject, ServerResult};
use roundtrip::{MemoryLedger, Tool};
use serde_json::{Value, json};

use super::{Shop, answer, begin_as, call, call_as, endpoint, keyed, plain, poll, server, soup};
use crate::logged::logged;
use crate::support::{Running, message, messages_of};

/// M6, Z3: a full ledger refuses new rounds before they run, and forgets none.
#[tokio::test]
async fn a_full_ledger_refuses_and_forgets_nothing() {
    for ledger in [MemoryLedger::bounded(1, usize::MAX), MemoryLedger::bounded(usize::MAX, 1)] {
        let shop = Shop::default();
        let running = Running::start(server(&shop).ledger(ledger)).await;
        let first = running.call("tools/call", keyed("k", soup())).await.result();
        let refused = running.call("tools/call", keyed("other", soup())).await;
        assert_eq!(refused.refusal(), (503, 503));
        assert_eq!(running.call("tools/call", keyed("k", soup())).await.result(), first);
        assert_eq!(shop.done(), 1);
        assert_eq!(running.call("tools/call", plain(soup())).await.status, 200, "what needs no record runs");
    }
}

/// M6, Z3: one principal cannot fill the ledger for all: it is refused before its round runs, others still get in, and
/// what is recorded stays.
#[tokio::test]
async fn one_principal_does_not_fill_the_ledger_for_all() {
    for ledger in [MemoryLedger::bounded(4, usize::MAX), MemoryLedger::bounded(usize::MAX, 2_000)] {
        let shop = Shop::default();
        let endpoint = endpoint(&shop, &ledger);
        let mut recorded = Vec::new();
        for number in 0..20 {
            let reply = call_as(Some("eve"), &endpoint, keyed(format!("k{number}"), soup())).await;
            if reply["error"].is_null() {
                recorded.push(reply);
            } else {
                assert_eq!(reply["error"]["code"], 503);
            }
        }
        let runs = shop.done();
        assert!((1..20).contains(&runs) && recorded.len() == runs, "{runs}");
        let other = call_as(Some("bob"), &endpoint, keyed("k0", soup())).await;
        assert!(other["error"].is_null(), "{other}");
        let again = call_as(Some("eve"), &endpoint, keyed("k0", soup())).await;
        assert_eq!(again, recorded[0], "nothing is forgotten");
        assert_eq!(shop.done(), runs + 1);
    }
}

/// M6, Z3: callers without a principal share the ledger by their address.
#[tokio::test]
async fn one_address_does_not_fill_the_ledger_for_all() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::bounded(4, usize::MAX));
    let endpoint = endpoint(&shop, &ledger);
    let mut statuses = Vec::new();
    for address in ["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1"] {
        let peer = Peer { address: address.parse().ok(), ..Peer::default() };
        let request = message(1, "tools/call", keyed(address, soup()));
        let said = messages_of(&endpoint, &peer, &request).await;
        statuses.push(said.last().expect("a response")["error"].is_null());
    }
    assert_eq!(statuses, [true, true, false, true]);
}

/// M6, Z3: services that share a ledger do not share what callers without a principal may have of it.
#[tokio::test]
async fn callers_of_one_service_do_not_fill_the_ledger_of_another() {
    let (shop, ledger) = (Shop::default(), MemoryLedger::bounded(4, usize::MAX));
    let service =
        |audience: &str| server(&shop).audience(audience).ledger(ledger.clone()).build().expect("a server");
    let (one, other) = (service("one"), service("other"));
    let mut were_recorded = Vec::new();
    for number in 0..3 {
        let reply = call(&one, keyed(format!("k{number}"), soup())).await;
        were_recorded.push(reply["error"].is_null());
    }
    assert_eq!(were_recorded, [true, true, false]);
    let reply = call(&other, keyed("k0", soup())).await;
    assert!(reply["error"].is_null(), "{reply}");
}

/// Z3: rounds that a full ledger refuses do not fill the log.
#[test]
fn a_full_ledger_fills_no_log() {
    let log = logged(async {
        let endpoint = endpoint(&Shop::default(), &MemoryLedger::bounded(1, usize::MAX));
        for number in 0..3 {
            call(&endpoint, keyed(format!("k{number}"), soup())).await;
        }
    });
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
    assert!(log.contains("a round cannot be claimed"), "{log}");
}

/// A ledger that has a reply to record until it is told that it is done.
#[derive(Clone, Default)]
struct Deferring(MemoryLedger, Arc<tokio::sync::Notify>);

impl Ledger for Deferring {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        self.0.claim(key, until)
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.1.notified())
    }
}

/// M6: a server that stops waits for the replies that its ledger has deferred.
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_waits_for_deferred_replies() {
    let (shop, ledger) = (Shop::default(), Deferring::default());
    let endpoint = endpoint(&shop, &ledger);
    call(&endpoint, keyed("k", soup())).await;
    let finished = tokio::time::timeout(Duration::from_secs(60), endpoint.finished());
    assert!(finished.await.is_err(), "a reply waits");
    ledger.1.notify_one();
    endpoint.finished().await;
}

/// A ledger of one's own: it fails, or it records until the beginning of time.
struct Forgetful {
    inner: MemoryLedger,
    failing: bool,
}

struct ClaimGuard(Box<dyn ledger::ClaimGuard>);

impl Ledger for Forgetful {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        Box::pin(async move {
            if self.failing {
                return Err(LedgerError::Failed("no connection".into()));
            }
            tokio::task::yield_now().await;
            Ok(match self.inner.claim(key, until).await? {
                Claim::Run(held) => Claim::Run(Box::new(ClaimGuard(held))),
                other => other,
            })
        })
    }
}

impl ledger::ClaimGuard for ClaimGuard {
    fn record(
        self: Box<Self>,
        reply: bytes::Bytes,
        _: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        self.0.record(reply, Timestamp::from_unix(0))
    }
}

/// A ledger that notes how long it was told to keep what.
#[derive(Clone)]
struct Noting(Arc<Mutex<Vec<Timestamp>>>, MemoryLedger);

impl Noting {
    fn new() -> Self {
        Self(Arc::default(), MemoryLedger::new())
    }
}

struct NotingGuard(Noting, Box<dyn ledger::ClaimGuard>);

impl Ledger for Noting {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        self.0.lock().expect("no panic").push(until);
        Box::pin(async move {
            Ok(match self.1.claim(key, until).await? {
                Claim::Run(held) => Claim::Run(Box::new(NotingGuard(self.clone(), held))),
                other => other,
            })
        })
    }
}

impl ledger::ClaimGuard for NotingGuard {
    fn record(
        self: Box<Self>,
        reply: bytes::Bytes,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        self.0.0.lock().expect("no panic").push(until);
        self.1.record(reply, until)
    }
}

/// M6: a record that is over is not found, and makes room, though nothing was searched for it.
#[tokio::test]
async fn a_record_that_is_over_makes_room() {
    let (shop, inner) = (Shop::default(), MemoryLedger::bounded(1, usize::MAX));
    let endpoint = server(&shop).ledger(Forgetful { inner: inner.clone(), failing: false });
    let endpoint = endpoint.build().expect("a server");
    for run in 1..=3 {
        assert!(call(&endpoint, keyed("k", soup())).await["error"].is_null());
        assert!(call(&endpoint, keyed(format!("k{run}"), soup())).await["error"].is_null());
        assert_eq!((shop.done(), inner.len()), (2 * run, 1));
    }
}

/// M6: a ledger that cannot be reached lets nothing run that it would have to know of.
#[tokio::test]
async fn a_ledger_that_fails_lets_nothing_run() {
    let shop = Shop::default();
    let ledger = Forgetful { inner: MemoryLedger::new(), failing: true };
    let endpoint = server(&shop).ledger(ledger).build().expect("a server");
    let first = call(&endpoint, plain(soup())).await;
    for params in [keyed("k", soup()), answer(&first, "sure", true)] {
        let refused = call(&endpoint, params).await;
        assert_eq!(refused["error"]["code"], 503);
        assert!(!refused.to_string().contains("connection"), "what went wrong is for the log");
    }
    assert_eq!(shop.done(), 1);
}

/// M6: hooks are outside: one that refuses leaves the round unclaimed, and every repeat passes them, too.
#[tokio::test]
async fn a_call_that_a_hook_refuses_claims_nothing() {
    let (shop, ledger, passed) = (Shop::default(), MemoryLedger::new(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&passed);
    let endpoint = server(&shop).ledger(ledger.clone()).around(move |_, next| {
        let count = seen.fetch_add(1, Ordering::SeqCst);
        async move {
            if count == 0 {
                return Err(ErrorObject::new(429, "slow down"));
            }
            let outcome = next.run().await;
            assert!(matches!(outcome, Ok(ServerResult::InputRequired(_))), "as it was: {outcome:?}");
            outcome
        }
    });
    let endpoint = endpoint.build().expect("a server");
    assert_eq!(call(&endpoint, keyed("k", soup())).await["error"]["code"], 429);
    assert!(ledger.is_empty());
    let first = call(&endpoint, keyed("k", soup())).await;
    assert_eq!(call(&endpoint, keyed("k", soup())).await, first);
    assert_eq!((shop.done(), passed.load(Ordering::SeqCst)), (1, 3));
}

/// K1, M6: the ledger in memory keeps the contract of ledgers.
#[tokio::test]
async fn the_ledger_in_memory_keeps_the_contract() {
    let ledger = MemoryLedger::new();
    stores::ledger(ledger.clone(), ledger).await.expect("the contract");
    stores::ledger_for_four(MemoryLedger::bounded(4, usize::MAX)).await.expect("the contract");
}

/// K1: the contract finds a ledger that breaks it.
#[tokio::test]
async fn the_contract_finds_a_ledger_that_forgets() {
    let forgetful = || Forgetful { inner: MemoryLedger::new(), failing: false };
    let broken = stores::ledger(forgetful(), forgetful()).await.expect_err("it forgets");
    assert!(broken.to_string().contains("is not replayed"), "{broken}");
    let failing = || Forgetful { inner: MemoryLedger::new(), failing: true };
    let broken = stores::ledger(failing(), failing()).await.expect_err("it fails");
    assert!(broken.to_string().contains("the ledger failed"), "{broken}");
    let broken = stores::ledger(MemoryLedger::new(), MemoryLedger::new()).await.expect_err("two ledgers");
    assert!(broken.to_string().contains("is not replayed"), "{broken}");
    assert!(stores::ledger_for_four(MemoryLedger::new()).await.is_err(), "it has no bound");
}

/// M6: without a ledger a repeated round runs again, which is what the manual says.
#[tokio::test]
async fn without_a_ledger_a_repeat_runs_again() {
    let shop = Shop::default();
    let endpoint = server(&shop).build().expect("a server");
    let first = call(&endpoint, keyed("k", soup())).await;
    assert_ne!(call(&endpoint, keyed("k", soup())).await, first);
    call(&endpoint, answer(&first, "sure", true)).await;
    call(&endpoint, answer(&first, "sure", true)).await;
    assert_eq!(shop.done(), 4);
    assert_eq!(call(&endpoint, keyed(7, soup())).await["error"], Value::Null, "nobody looks at the key");
}

/// M6: the handler of a dropped run is gone before anybody else may run the round.
#[tokio::test]
async fn a_round_is_released_after_its_handler_is_gone() {
    struct Leaving(MemoryLedger, Shop);
    impl Drop for Leaving {
        fn drop(&mut self) {
            assert_eq!(self.0.len(), 1, "still claimed");
            self.1.work();
        }
    }
    let (shop, ledger) = (Shop::default(), MemoryLedger::new());
    let (own, count) = (ledger.clone(), shop.clone());
    let stay = move || {
        let leaving = Leaving(own.clone(), count.clone());
        async move {
            std::future::pending::<()>().await;
            drop(leaving);
            "never"
        }
    };
    let endpoint =
        server(&shop).tool(Tool::new("stay", stay)).ledger(ledger.clone()).build().expect("a server");
    let mut call = begin_as(None, &endpoint, "tools/call", keyed("k", json!({ "name": "stay" })));
    poll(&mut call);
    drop(call);
    assert_eq!((shop.done(), ledger.len()), (1, 0));
}

/// M6: the tokens of one round do not all expire at once: its record is kept for as long as any of them is good.
#[tokio::test]
async fn a_record_outlives_every_token_of_its_round() {
    let (shop, ledger) = (Shop::default(), Noting::new());
    let endpoint = server(&shop).ledger(ledger.clone()).answer_within(Duration::from_secs(1000));
    let endpoint = endpoint.build().expect("a server");
    let first = call(&endpoint, plain(soup())).await;
    let asked = Timestamp::from(SystemTime::now());
    let mut without_answers = answer(&first, "sure", true);
    without_answers.as_object_mut().expect("an object").remove("inputResponses");
    call(&endpoint, without_answers).await;
    call(&endpoint, answer(&first, "sure", true)).await;
    let kept = ledger.0.lock().expect("no panic").clone();
    let enough = asked.plus(Duration::from_secs(1000));
    assert!(kept.len() == 3 && kept.iter().all(|until| *until >= enough), "{kept:?}");
}
