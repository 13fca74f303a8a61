//! Time of a sign-in: that of a person is not counted, and all other is.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::oauth::store::{MemoryStore, TokenStore as _};
use roundtrip::oauth::{DevicePending, OAuth};
use roundtrip::{Client, Error};

use super::sign_in::greeter;
use super::world::{Gate, World, person};

/// A call that must not take longer than a request of a sign-in does.
async fn timed_out<T>(call: impl IntoFuture<Output = Result<T, Error>>) {
    let ended = tokio::time::timeout(Duration::from_secs(5), call.into_future()).await;
    let error = ended.expect("an end in time").map(drop).expect_err("no answer");
    assert!(
        matches!(&error, Error::Timeout { after, .. } if *after == Duration::from_millis(500)),
        "{error:?}"
    );
}

/// C8, O74: what a sign-in does without a person is inside the timeout of the call, the list or the stream that it is for.
#[tokio::test]
async fn a_sign_in_without_a_person_is_inside_the_timeout() {
    let world = World::of(greeter()).await;
    world.shared().silent = Some("/.well-known/oauth-protected-resource/mcp");
    let machine = || OAuth::machine("robot").secret("s3cret").issuer(world.issuer());
    let client = |oauth| -> Client { world.client(oauth).timeout(Duration::from_millis(500)) };
    timed_out(client(machine()).call_tool("hello", ())).await;
    timed_out(client(machine()).list_tools()).await;
    timed_out(client(machine()).listen().tools()).await;
    timed_out(client(person()).call_tool("hello", ())).await;
    assert_eq!(world.count("/authorize"), 0);

    world.shared().silent = Some("/token");
    timed_out(client(machine()).call_tool("hello", ())).await;
    timed_out(client(person()).call_tool("hello", ())).await;
}

/// O74: a browser is not opened for a call whose time was over before.
#[tokio::test]
async fn no_browser_is_opened_for_a_call_that_has_ended() {
    let world = World::of(greeter()).await;
    let gate = Arc::new(Gate::default());
    world.shared().register_gate = Some(Arc::clone(&gate));
    let store = MemoryStore::new();
    let client = world.client(person().store(store.clone())).timeout(Duration::from_millis(500));
    timed_out(client.call_tool("hello", ())).await;
    gate.open.notify_one();
    let server = format!("{}/mcp", world.base);
    let registered = async {
        while store.load(&server).await.expect("a store").is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), registered).await.expect("a registration");
    world.shared().register_gate = None;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.count("/authorize"), 0);
    client.timeout(Duration::from_secs(10)).call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/authorize"), 1);
}

/// O74: time in which a person enters a code does not count against the timeout of the request.
#[tokio::test]
async fn a_person_with_a_code_may_take_longer_than_a_request() {
    let world = World::of(greeter()).await;
    world.shared().device_waits = 2;
    let device = OAuth::new("Tests").device(async |_: DevicePending| Ok::<_, std::io::Error>(()));
    let client = world.client(device).timeout(Duration::from_secs(1));
    assert_eq!(client.list_tools().await.expect("a list").len(), 1);
    assert_eq!(world.count("/token"), 3);
}
