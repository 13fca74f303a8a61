//! Tests of renewals that fail.

use std::sync::atomic::AtomicBool;

use roundtrip_core::auth::AuthBlame;
use roundtrip_core::seal::BoxFuture;
use serde_json::json;

use super::*;
use crate::lock::lock;
use crate::oauth::store::{StoreError, StoreLock};

/// O84: `invalid_grant` drops the refresh token; the error says so, and why, until there is a new sign-in.
#[tokio::test]
async fn a_grant_that_is_over_says_why() {
    let (tokens, store) = tokens_with(-1).await;
    let refused = json!({ "error": "invalid_grant", "error_description": "consent was taken back" });
    let issuer = Issuer::answering(400, refused);
    for _ in 0..2 {
        let error = tokens.token(&issuer).await.unwrap_err();
        assert!(matches!(error, AuthError::GrantOver(_)), "{error}");
        assert_eq!(error.blame(), AuthBlame::SignIn);
        assert!(error.to_string().contains("consent was taken back"), "{error}");
    }
    assert_eq!(issuer.exchanges(), 1, "a refresh token that is over is not sent again");
    assert_eq!(stored(&store).await.refresh_token, None);
    tokens.signed_in(grant(5, life(3600))).await.unwrap();
    assert_eq!(token_of(tokens.token(&issuer).await), "a5");
}

/// O84: an access token that is still good stays in use when the grant is over, the issuer is down or refuses the client.
#[tokio::test]
async fn a_token_that_is_still_good_stays_in_use() {
    for (status, body, kept) in [
        (400, json!({ "error": "invalid_grant" }), false),
        (400, json!({ "error": "invalid_request" }), true),
        (503, json!({}), true),
        (500, json!({ "error": "invalid_grant" }), true),
        (429, json!({}), true),
        (200, json!({ "token_type": "Bearer" }), true),
        (302, json!({}), true),
    ] {
        let (tokens, store) = tokens_with(20).await;
        let issuer = Issuer::answering(status, body.clone());
        for _ in 0..3 {
            assert_eq!(token_of(tokens.token(&issuer).await), "a1", "{status} {body}");
        }
        assert_eq!(issuer.exchanges(), 1, "there is a pause before the next attempt");
        assert_eq!(stored(&store).await.refresh_token.is_some(), kept, "{status} {body}");
    }
}

/// O84: an outage drops nothing, and the call fails where the token has ended.
#[tokio::test]
async fn an_outage_drops_nothing() {
    let (tokens, store) = tokens_with(-1).await;
    let issuer = Issuer::answering(503, json!({}));
    assert_eq!(tokens.token(&issuer).await.unwrap_err().blame(), AuthBlame::Unreachable);
    assert_eq!(stored(&store).await, grant(1, stored(&store).await.expires_at));
    assert_eq!(token_of(tokens.token(&issuer).await), "a2");

    let used = tokens.now().unwrap();
    let issuer = Issuer::answering(503, json!({}));
    let error = tokens.rejected(&used, &issuer).await.unwrap_err();
    assert_eq!(error.blame(), AuthBlame::Unreachable, "a refused token does not stay in use");
}

/// O84: a refusal is of the token that was sent. One that another process has stored meanwhile stays, and is used.
#[tokio::test]
async fn a_refusal_drops_no_newer_token() {
    let (tokens, store) = tokens_with(-1).await;
    let (issuer, gate) = Issuer::gated();
    issuer.refuse(400, json!({ "error": "invalid_grant" }));
    let call = tokio::spawn({
        let (tokens, issuer) = (tokens.clone(), issuer.clone());
        async move { tokens.token(&issuer).await }
    });
    gate.reached().await;
    let mut record = Record::default();
    record.sign_in(grant(9, life(3600)));
    store.save(SERVER, &record).await.unwrap();
    gate.open();
    assert_eq!(token_of(call.await.unwrap()), "a9");
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r9");
}

/// O58, O84: a client that the issuer has forgotten registers again.
#[tokio::test]
async fn a_forgotten_client_registers_again() {
    let (tokens, _) = tokens_with(-1).await;
    let error =
        tokens.token(&Issuer::answering(401, json!({ "error": "invalid_client" }))).await.unwrap_err();
    assert_eq!(error.blame(), AuthBlame::SignIn, "{error}");
    assert!(error.to_string().contains("invalid_client"), "{error}");
    assert_eq!(tokens.registrations().await.unwrap(), []);
}

/// A store whose parts fail when they are told to.
#[derive(Clone, Default)]
struct Faulty {
    inner: MemoryStore,
    writes: Arc<AtomicBool>,
    reads: Arc<AtomicBool>,
    locks: Arc<AtomicBool>,
}

type Outcome<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

fn when<'a, T: Send + 'static>(fails: &AtomicBool, otherwise: Outcome<'a, T>) -> Outcome<'a, T> {
    if fails.load(SeqCst) {
        Box::pin(async { Err(StoreError::Failed("the disk is full".into())) })
    } else {
        otherwise
    }
}

impl TokenStore for Faulty {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        when(&self.reads, self.inner.load(server))
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
        if self.writes.load(SeqCst) {
            return when(&self.writes, Box::pin(async { Ok(()) }));
        }
        self.inner.save(server, record)
    }

    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.delete(server)
    }

    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        when(&self.locks, self.inner.lock(server))
    }
}

/// O82: tokens that cannot be stored fail the call that got them, stay in use, and are stored as soon as that works.
#[tokio::test]
async fn a_store_that_fails_is_loud_and_loses_nothing() {
    let store = Faulty::default();
    let tokens = over(store.clone());
    let issuer = Issuer::default();
    tokens.signed_in(grant(1, life(-1))).await.unwrap();
    store.writes.store(true, SeqCst);
    let error = tokens.token(&issuer).await.unwrap_err();
    assert!(matches!(error, AuthError::NotStored(_)), "{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(token_of(tokens.token(&issuer).await), "a2", "the token is used all the same");
    assert_eq!(stored(&store).await.access_token.expose(), "a1");

    retry_now(&tokens);
    assert_eq!(token_of(tokens.token(&issuer).await), "a2", "it still fails");
    store.writes.store(false, SeqCst);
    retry_now(&tokens);
    assert_eq!(token_of(tokens.token(&issuer).await), "a2");
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r2");
    assert_eq!(issuer.exchanges(), 1);

    store.writes.store(true, SeqCst);
    let error = tokens.signed_in(grant(5, life(3600))).await.unwrap_err();
    assert!(matches!(error, AuthError::NotStored(_)), "{error}");
    assert_eq!(token_of(tokens.token(&issuer).await), "a5");
    store.writes.store(false, SeqCst);
    retry_now(&tokens);
    assert_eq!(token_of(tokens.token(&issuer).await), "a5");
    assert_eq!(stored(&store).await.refresh_token.unwrap().expose(), "r5");
}

/// O80: a sign-in and a sign-out that come while a renewal is under way are the last word.
#[tokio::test]
async fn a_renewal_does_not_undo_a_sign_in() {
    for signs_in in [true, false] {
        let (tokens, store) = tokens_with(-1).await;
        let (issuer, gate) = Issuer::gated();
        let call = tokio::spawn({
            let (tokens, issuer) = (tokens.clone(), issuer.clone());
            async move { tokens.token(&issuer).await }
        });
        gate.reached().await;
        let change = tokio::spawn({
            let tokens = tokens.clone();
            async move {
                match signs_in {
                    true => tokens.signed_in(grant(7, life(3600))).await,
                    false => tokens.sign_out().await,
                }
            }
        });
        tokio::task::yield_now().await;
        gate.open();
        assert_eq!(token_of(call.await.unwrap()), "a2");
        change.await.unwrap().unwrap();
        let expected = signs_in.then(|| "a7".to_owned());
        let in_use = tokens.now().map(|current| current.grant().access_token.expose().to_owned());
        assert_eq!(in_use, expected);
        let record = store.load(SERVER).await.unwrap().unwrap();
        assert_eq!(record.grant.map(|grant| grant.access_token.expose().to_owned()), expected);
    }
}

/// Makes the next call try to store what is not stored.
fn retry_now(tokens: &Tokens) {
    write(&tokens.0.state).unsaved.as_mut().expect("a grant that is not stored").retry_at = 0;
}

/// O82: a grant that could not be stored gives way to one that another process has stored since.
#[tokio::test]
async fn an_unsaved_grant_gives_way_to_a_newer_one() {
    let store = Faulty::default();
    let tokens = over(store.clone());
    tokens.signed_in(grant(1, life(-1))).await.unwrap();
    store.writes.store(true, SeqCst);
    let issuer = Issuer::default();
    tokens.token(&issuer).await.unwrap_err();
    store.writes.store(false, SeqCst);
    over(store.clone()).signed_in(grant(8, life(3600))).await.unwrap();
    retry_now(&tokens);
    assert_eq!(token_of(tokens.token(&issuer).await), "a8");
    assert_eq!(stored(&store).await.access_token.expose(), "a8");
}

/// O84: a store that cannot be read or locked does not take a good token away, and is named where there is none.
#[tokio::test]
async fn a_store_that_cannot_be_read_is_named() {
    for reads in [true, false] {
        let store = Faulty::default();
        let flag = if reads { &store.reads } else { &store.locks };
        let (tokens, issuer) = (over(store.clone()), Issuer::default());
        tokens.signed_in(grant(1, life(-1))).await.unwrap();
        flag.store(true, SeqCst);
        let error = over(store.clone()).token(&issuer).await.unwrap_err();
        assert!(matches!(error, AuthError::StoreUnavailable(_)), "{error}");
        assert_eq!(error.blame(), AuthBlame::Unreachable);
        assert_eq!(issuer.exchanges(), 0, "no refresh token is sent that cannot be stored");
    }
}

/// O80: a renewal that panics fails its calls, and not the next.
#[tokio::test]
async fn a_panic_does_not_block_the_next_renewal() {
    #[derive(Clone)]
    struct Broken;
    impl Exchange for Broken {
        async fn refresh(&self, _: &Grant) -> Result<Option<Grant>, AuthError> {
            panic!("the exchange is broken")
        }
    }
    let (tokens, _) = tokens_with(-1).await;
    assert_eq!(tokens.token(&Broken).await.unwrap_err(), AuthError::Interrupted);
    assert_eq!(token_of(tokens.token(&Issuer::default()).await), "a2");
}

/// A store whose first lock, of a sign-out, is released a while before its holder goes on: until the next lock is released too.
#[derive(Clone, Default)]
struct Overtaking {
    inner: Faulty,
    /// Told of every lock that is waited for.
    waits: Arc<tokio::sync::Notify>,
    /// Sender and receiver of the release of the second lock.
    released: Arc<std::sync::Mutex<Option<Releases>>>,
}

type Releases = (Option<std::sync::mpsc::Sender<()>>, Option<std::sync::mpsc::Receiver<()>>);

/// A lock that does something when it is released.
struct Held(Option<StoreLock>, Box<dyn FnMut() + Send>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0 = None;
        self.1();
    }
}

impl TokenStore for Overtaking {
    fn load<'a>(&'a self, server: &'a str) -> Outcome<'a, Option<Record>> {
        self.inner.load(server)
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> Outcome<'a, ()> {
        self.inner.save(server, record)
    }

    fn delete<'a>(&'a self, server: &'a str) -> Outcome<'a, ()> {
        self.inner.delete(server)
    }

    fn lock<'a>(&'a self, server: &'a str) -> Outcome<'a, StoreLock> {
        Box::pin(async move {
            let mut locking = self.inner.lock(server);
            let held = tokio::select! {
                biased;
                held = &mut locking => held?,
                () = std::future::ready(()) => {
                    self.waits.notify_one();
                    locking.await?
                }
            };
            let mut released = lock(&self.released);
            let Some((sender, receiver)) = released.as_mut() else { return Ok(held) };
            let then: Box<dyn FnMut() + Send> = match (receiver.take(), sender.take()) {
                (Some(second), sender) => {
                    *released = Some((sender, None));
                    // Bounded, so that a test which fails ends.
                    Box::new(move || {
                        let wait = || second.recv_timeout(std::time::Duration::from_secs(30));
                        tokio::task::block_in_place(wait).expect("the second lock is released meanwhile");
                    })
                }
                (None, sender) => Box::new(move || {
                    let _ = sender.as_ref().map(|sender| sender.send(()));
                }),
            };
            Ok(StoreLock::new(Held(Some(held), then)))
        })
    }
}

/// O80: a renewal that waits for the lock of a sign-out stores no grant again that could not be stored before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_does_not_undo_a_sign_out() {
    let store = Overtaking::default();
    let tokens = over(store.clone());
    store.inner.writes.store(true, SeqCst);
    tokens.signed_in(grant(1, life(3600))).await.expect_err("the disk is full");
    store.inner.writes.store(false, SeqCst);
    let used = tokens.now().expect("it is in use");

    let held = store.inner.lock(SERVER).await.unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    *lock(&store.released) = Some((Some(sender), Some(receiver)));
    let signing_out = tokio::spawn({
        let tokens = tokens.clone();
        async move { tokens.sign_out().await }
    });
    store.waits.notified().await;
    let renewing = tokio::spawn({
        let tokens = tokens.clone();
        async move { tokens.rejected(&used, &Issuer::default()).await }
    });
    store.waits.notified().await;
    drop(held);
    assert!(renewing.await.unwrap().unwrap().is_none());
    signing_out.await.unwrap().unwrap();
    assert_eq!(store.load(SERVER).await.unwrap().unwrap().grant, None);
    assert!(tokens.now().is_none());
}
