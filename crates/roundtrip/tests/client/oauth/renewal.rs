//! Renewal of a stored grant: by another client, at an issuer that has moved, at one that is down.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use roundtrip::oauth::OAuth;
use roundtrip::oauth::store::{MemoryStore, TokenStore as _};
use roundtrip::{Client, Error};

use super::sign_in::greeter;
use super::world::{Gate, World, person};

/// A call that must not hang.
async fn hello(client: &Client) -> Result<(), Error> {
    let call = client.call_tool("hello", ()).into_future();
    tokio::time::timeout(Duration::from_secs(20), call).await.expect("an end to the call").map(drop)
}

/// Lets the stored access token end.
async fn end(store: &MemoryStore, world: &World) {
    let server = format!("{}/mcp", world.base);
    let mut record = store.load(&server).await.expect("a store").expect("a record");
    record.grant.as_mut().expect("a grant").expires_at = Some(1);
    store.save(&server, &record).await.expect("a store");
}

/// O80, O81, O96: a client that starts with a stored grant renews it with the stored key of proofs, under one lock.
#[tokio::test]
async fn a_stored_grant_with_a_key_is_renewed_by_another_client() {
    for dpop in [true, false] {
        let (world, store) = (World::of(greeter()).await, MemoryStore::new());
        world.shared().dpop = dpop;
        let client = || world.client(person().dpop().store(store.clone()));
        hello(&client()).await.expect("a result");
        end(&store, &world).await;
        hello(&client()).await.expect("a result");
        world.end_tokens();
        hello(&client()).await.expect("a result");
        assert_eq!((world.count("/authorize"), world.count("/token")), (1, 3), "{dpop}");
        assert!(world.seen("/token").iter().all(|seen| seen.header("dpop").is_some() == dpop));
    }
}

/// O47: where a grant cannot be renewed the metadata is read again, and a server that has moved to another issuer, or an issuer to
/// another token endpoint, is signed in to anew.
#[tokio::test]
async fn an_issuer_that_has_moved_is_signed_in_to_anew() {
    for (tenant, token_path) in [("/new", "/token"), ("", "/token2")] {
        for is_over in [true, false] {
            let (world, store) = (World::of(greeter()).await, MemoryStore::new());
            let client = || world.client(person().store(store.clone()));
            hello(&client()).await.expect("a result");
            if is_over {
                end(&store, &world).await;
            }
            world.end_tokens();
            (world.shared().tenant, world.shared().token_path) = (tenant, Some(token_path));
            hello(&client()).await.expect("a result");
            let (authorize, token) = (format!("{tenant}/authorize"), format!("{tenant}{token_path}"));
            assert!(
                world.count(&authorize) >= 1 && world.count(&token) == 1,
                "{tenant} {token_path} {is_over}"
            );
            assert_eq!(world.count("/token"), 2, "the old endpoint got the code and the refresh token");
            let sent = &world.seen(&token)[0].form();
            assert!(!sent.contains_key("refresh_token"), "the old refresh token belongs to the old issuer");
        }
    }
}

/// O82: a client that is closed waits until the tokens that it asked for are stored: a refresh token is good for one use.
#[tokio::test]
async fn closing_a_client_loses_no_renewal() {
    let (world, store) = (World::of(greeter()).await, MemoryStore::new());
    let client = || world.client(person().store(store.clone()));
    hello(&client()).await.expect("a result");
    end(&store, &world).await;
    let gate = Arc::new(Gate::default());
    world.shared().token_gate = Some(Arc::clone(&gate));
    let closed = client();
    let call = tokio::spawn(closed.call_tool("hello", ()).into_future());
    gate.reached.notified().await;
    let closing = tokio::spawn(async move { closed.close().await });
    call.await.expect("no panic").expect_err("a closed client");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!closing.is_finished(), "the answer is under way");
    gate.open.notify_one();
    closing.await.expect("no panic");
    world.shared().token_gate = None;
    let stored = store.load(&format!("{}/mcp", world.base)).await.expect("a store").expect("a record");
    assert_ne!(stored.grant.expect("a grant").expires_at, Some(1), "the renewed one is stored");
    hello(&client()).await.expect("a result");
    assert_eq!((world.count("/authorize"), world.count("/token")), (1, 2));
}

/// O87: a server that refuses every token does not make its clients ask for tokens without end.
#[tokio::test]
async fn renewals_pause_for_a_server_that_refuses_every_token() {
    let world = World::of(greeter()).await;
    let machine = OAuth::machine("robot").secret("s3cret").issuer(world.issuer());
    for oauth in [person(), machine] {
        world.shared().rejects_all = false;
        let client = world.client(oauth);
        hello(&client).await.expect("a result");
        // Tokens that were accepted are renewed as often as they end.
        for _ in 0..5 {
            world.end_tokens();
            hello(&client).await.expect("a result");
        }
        world.shared().rejects_all = true;
        let before = world.count("/token");
        for _ in 0..30 {
            hello(&client).await.expect_err("no token helps");
        }
        let asked = world.count("/token") - before;
        assert!(asked <= 6, "{asked}: three renewals, and three sign-ins");
    }
}

/// O84: an issuer that is where it was, and fails, is waited for: no person is asked, and nothing is dropped.
#[tokio::test]
async fn an_issuer_that_fails_is_waited_for() {
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::NOT_FOUND] {
        let (world, store) = (World::of(greeter()).await, MemoryStore::new());
        let client = || world.client(person().store(store.clone()));
        hello(&client()).await.expect("a result");
        end(&store, &world).await;
        world.end_tokens();
        world.shared().token_status = Some(status);
        hello(&client()).await.expect_err("no token");
        world.shared().token_status = None;
        hello(&client()).await.expect("a result");
        assert_eq!(world.count("/authorize"), 1, "{status}");
    }
}
