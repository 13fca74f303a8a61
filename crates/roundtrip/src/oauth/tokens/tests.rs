//! Tests of the holder of tokens, against an issuer that takes every refresh token once.

mod failures;
mod issuer;
mod processes;
mod stores;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use issuer::{Issuer, SERVER, grant, life};
use roundtrip_core::auth::AuthError;

use super::*;
use crate::oauth::store::{MemoryStore, TokenStore};

/// Returns a holder whose store has a grant: `a1` and `r1`, with this many seconds to live.
async fn tokens_with(seconds: i64) -> (Tokens, MemoryStore) {
    let store = MemoryStore::new();
    let mut record = Record::default();
    record.sign_in(grant(1, life(seconds)));
    store.save(SERVER, &record).await.unwrap();
    (over(store.clone()), store)
}

fn over(store: impl TokenStore) -> Tokens {
    Tokens::new(HttpUrl::parse(SERVER).unwrap(), StoreHandle(Arc::new(store)))
}

async fn stored(store: &impl TokenStore) -> Grant {
    store.load(SERVER).await.unwrap().unwrap().grant.unwrap()
}

#[track_caller]
fn token_of(renewed: Renewed) -> String {
    renewed.expect("a renewal").expect("a token").grant().access_token.expose().to_owned()
}

/// O80: a hundred calls that find the token over make one exchange, and all get its token.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_calls_make_one_exchange() {
    let (tokens, store) = tokens_with(-1).await;
    let issuer = Issuer::default();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (tokens, issuer) = (tokens.clone(), issuer.clone());
            tokio::spawn(async move { tokens.token(&issuer).await })
        })
        .collect();
    for call in calls {
        assert_eq!(token_of(call.await.unwrap()), "a2");
    }
    assert_eq!((issuer.exchanges(), stored(&store).await.access_token.expose()), (1, "a2"));
    assert_eq!(tokens.now().unwrap().authorization(), "Bearer a2");
}

/// O82: a refresh that was sent is stored, though the call that wanted it is gone.
#[tokio::test]
async fn a_dropped_call_loses_no_token() {
    let (tokens, store) = tokens_with(-1).await;
    let (issuer, gate) = Issuer::gated();
    let call = tokio::spawn({
        let (tokens, issuer) = (tokens.clone(), issuer.clone());
        async move { tokens.token(&issuer).await }
    });
    gate.reached().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    gate.open();
    assert_eq!(token_of(tokens.token(&issuer).await), "a2");
    assert_eq!((issuer.exchanges(), stored(&store).await.access_token.expose()), (1, "a2"));
}

/// O81: a token that is good is used without the lock of the store, also while a renewal holds it.
#[tokio::test]
async fn ordinary_requests_hold_and_wait_for_no_lock() {
    let (tokens, store) = tokens_with(3600).await;
    let issuer = Issuer::default();
    let held = store.lock(SERVER).await.unwrap();
    assert_eq!(token_of(tokens.token(&issuer).await), "a1");
    assert!(tokens.now().is_some());
    drop(held);
    assert_eq!(token_of(tokens.token(&issuer).await), "a1");
    assert!(store.lock(SERVER).await.is_ok(), "no call has kept the lock");
    assert_eq!(issuer.exchanges(), 0);
}

/// O79: expiry survives a restart, a token is renewed before it ends, and one whose end is unknown is used until it is refused.
#[tokio::test]
async fn expiry_survives_a_restart() {
    for (seconds, expected) in [(-3600, 1), (-1, 1), (20, 1), (120, 0), (3600, 0)] {
        let (tokens, store) = tokens_with(seconds).await;
        let issuer = Issuer::default();
        let token = token_of(tokens.token(&issuer).await);
        assert_eq!((issuer.exchanges(), token), (expected, format!("a{}", 1 + expected)), "{seconds}");
        let restarted = over(store);
        assert_eq!(restarted.now().map(|_| ()), None, "it is not loaded yet");
        assert_eq!(token_of(restarted.token(&issuer).await), format!("a{}", 1 + expected));
        assert_eq!(issuer.exchanges(), expected, "{seconds}");
    }

    let store = MemoryStore::new();
    let tokens = over(store.clone());
    let issuer = Issuer::default();
    tokens.signed_in(grant(1, None)).await.unwrap();
    assert_eq!(token_of(over(store).token(&issuer).await), "a1");
    let used = tokens.now().unwrap();
    assert_eq!(token_of(tokens.rejected(&used, &issuer).await), "a2");
}

/// O79: a token is renewed 30 to 45 seconds before it ends, and one that was short from the start after half of its life.
#[test]
fn renewal_is_early_by_a_random_time() {
    let now = now().as_unix();
    let times: std::collections::BTreeSet<_> = (0..200).map(|_| renew_at(now + 3600, true)).collect();
    assert!(times.len() > 5 && times.first() >= Some(&(now + 3555)) && times.last() <= Some(&(now + 3571)));
    let short = renew_at(now + 20, true);
    assert!((now + 10..=now + 11).contains(&short), "{}", short - now);
    assert!(renew_at(now + 20, false) < now);
}

/// O85: no grant, and one without a refresh token, are no errors: a sign-in is needed.
#[tokio::test]
async fn without_a_refresh_token_a_sign_in_is_needed() {
    let issuer = Issuer::default();
    let tokens = over(MemoryStore::new());
    assert!(tokens.now().is_none());
    assert!(tokens.token(&issuer).await.unwrap().is_none());
    for (seconds, usable) in [(-1, false), (20, true), (3600, true)] {
        let mut grant = grant(1, life(seconds));
        grant.refresh_token = None;
        let tokens = over(MemoryStore::new());
        tokens.signed_in(grant).await.unwrap();
        assert_eq!(tokens.token(&issuer).await.unwrap().is_some(), usable, "{seconds}");
        assert_eq!(tokens.requested().await.unwrap().to_string(), "read");
    }
    assert_eq!(issuer.exchanges(), 0);
}

/// O80: a token that the server refused is renewed once for all that were refused with it.
#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let (tokens, _) = tokens_with(3600).await;
    let issuer = Issuer::default();
    let used = tokens.token(&issuer).await.unwrap().unwrap();
    assert_eq!(token_of(tokens.rejected(&used, &issuer).await), "a2");
    assert_eq!(
        token_of(tokens.rejected(&used, &issuer).await),
        "a2",
        "the one that is used now was not refused"
    );
    assert_eq!(issuer.exchanges(), 1);

    let (tokens, store) = tokens_with(3600).await;
    let used = tokens.token(&issuer).await.unwrap().unwrap();
    let mut record = Record::default();
    record.sign_in(grant(7, life(3600)));
    store.save(SERVER, &record).await.unwrap();
    assert_eq!(token_of(tokens.rejected(&used, &issuer).await), "a7", "another process has renewed it");
    assert_eq!(issuer.exchanges(), 1);

    let mut bare = grant(1, life(3600));
    bare.refresh_token = None;
    tokens.signed_in(bare).await.unwrap();
    let used = tokens.now().unwrap();
    assert!(tokens.rejected(&used, &issuer).await.unwrap().is_none(), "a refused token is not used again");
    assert!(tokens.token(&issuer).await.unwrap().is_none());
}

/// O76: a stored token of another resource is not sent.
#[tokio::test]
async fn a_token_of_another_resource_is_not_used() {
    let store = MemoryStore::new();
    let mut record = Record::default();
    let mut grant = grant(1, life(3600));
    grant.terms.resource = "https://other.example/mcp".to_owned();
    record.sign_in(grant);
    store.save(SERVER, &record).await.unwrap();
    let renewed = over(store).token(&Issuer::default()).await;
    assert!(renewed.unwrap().is_none());
}

/// O59, O60: registrations are kept by issuer with the secret they came with, and a sign-out leaves them.
#[tokio::test]
async fn registrations_outlive_a_grant() {
    let (tokens, store) = tokens_with(3600).await;
    let issuer = Issuer::default();
    assert!(tokens.token(&issuer).await.unwrap().is_some());
    let mut other = grant(1, None).terms.client;
    other.issuer = "https://second.example".to_owned();
    other.secret = Some("s".into());
    tokens.registered(other.clone()).await.unwrap();
    tokens.sign_out().await.unwrap();
    assert!(tokens.token(&issuer).await.unwrap().is_none() && tokens.now().is_none());
    let kept = over(store).registrations().await.unwrap();
    assert_eq!(kept, [other.clone(), grant(1, None).terms.client]);
    for number in 0..40 {
        other.issuer = format!("https://i{number}.example");
        tokens.registered(other.clone()).await.unwrap();
    }
    assert_eq!(tokens.registrations().await.unwrap().len(), 16);
}

/// O96: the key of proofs is made once, and survives a restart.
#[tokio::test]
async fn the_key_of_proofs_is_kept() {
    let (tokens, store) = tokens_with(3600).await;
    assert_eq!(tokens.proof_key("first".into()).await.unwrap().expose(), "first");
    assert_eq!(over(store).proof_key("second".into()).await.unwrap().expose(), "first");
}

/// O86: nothing that holds tokens shows them.
#[tokio::test]
async fn tokens_are_not_shown() {
    let (tokens, store) = tokens_with(3600).await;
    tokens.token(&Issuer::default()).await.unwrap();
    let current = tokens.now().unwrap();
    let record = store.load(SERVER).await.unwrap().unwrap();
    for shown in [format!("{tokens:?}"), format!("{current:?}"), format!("{record:?}"), format!("{store:?}")]
    {
        assert!(!shown.contains("a1") && !shown.contains("r1"), "{shown}");
    }
}
