//! Renewal of a stored grant: by another client, at an issuer that has moved, at one that is down.

use std::time::Duration;

use roundtrip::oauth::store::{MemoryStore, TokenStore as _};
use roundtrip::{Client, Error};

use super::sign_in::greeter;
use super::world::{World, person};

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
