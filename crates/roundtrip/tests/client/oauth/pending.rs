//! Sign-ins without a browser: begun by one client, finished by another.

use std::sync::Arc;

use roundtrip::Error;
use roundtrip::client::ApiMisuse;
use roundtrip::oauth::store::{MemoryStore, TokenStore as _};
use roundtrip::oauth::{CallbackError, OAuth, Pending};

use super::sign_in::greeter;
use super::world::{Gate, World};

/// Visits the page of a sign-in, and returns the callback URL.
async fn callback(pending: &Pending) -> String {
    let browser =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let response = browser.get(pending.url().as_str()).send().await.expect("a page");
    response.headers()["location"].to_str().expect("a URL").to_owned()
}

async fn begun(client: &roundtrip::Client) -> Pending {
    match client.call_tool("hello", ()).await {
        Err(Error::SignIn(pending)) => *pending,
        other => panic!("a sign-in, not {other:?}"),
    }
}

fn backend(store: &MemoryStore) -> OAuth {
    OAuth::new("Tests").redirect_uri("https://agent.example/callback").store(store.clone())
}

/// O73: without a browser the call fails with a sign-in that another process finishes, with the whole callback URL.
#[tokio::test]
async fn a_sign_in_is_finished_in_another_process() {
    let world = World::of(greeter()).await;
    let store = MemoryStore::new();
    let pending = begun(&world.client(backend(&store))).await;
    assert_eq!(world.count("/authorize"), 0);
    let stored = serde_json::to_string(&pending).expect("it serialises");
    let url = callback(&pending).await;
    assert!(url.starts_with("https://agent.example/callback?"), "{url}");

    let pending: Pending = serde_json::from_str(&stored).expect("it deserialises");
    let other = world.client(backend(&store));
    other.sign_in(pending.answered(&url).expect("a code")).await.expect("a token");
    other.call_tool("hello", ()).await.expect("a result");
    let used = world.seen("/mcp").last().expect("a request").header("authorization").map(str::to_owned);
    assert!(used.is_some_and(|token| token.starts_with("Bearer access-")));
}

/// O82: a client that is closed waits for the exchange of a code, which is good for one use.
#[tokio::test]
async fn closing_a_client_loses_no_code() {
    let (world, store) = (World::of(greeter()).await, MemoryStore::new());
    let client = world.client(backend(&store));
    let pending = begun(&client).await;
    let answered = pending.answered(&callback(&pending).await).expect("a code");
    let gate = Arc::new(Gate::default());
    world.shared().token_gate = Some(Arc::clone(&gate));
    let finishing = tokio::spawn({
        let client = client.clone();
        async move { client.sign_in(answered).await }
    });
    gate.reached.notified().await;
    finishing.abort();
    let closing = tokio::spawn(async move { client.close().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!closing.is_finished(), "the answer is under way");
    gate.open.notify_one();
    closing.await.expect("no panic");
    let stored = store.load(&format!("{}/mcp", world.base)).await.expect("a store").expect("a record");
    assert!(stored.grant.is_some());
}

/// O73, O67: a callback that was tampered with sends its code nowhere.
#[tokio::test]
async fn a_tampered_callback_is_refused() {
    let world = World::of(greeter()).await;
    let pending = begun(&world.client(backend(&MemoryStore::new()))).await;
    let url = callback(&pending).await;
    let of_other = url.replace(&format!("iss={}", world.base), "iss=https://evil.example");
    assert!(matches!(pending.answered(&of_other), Err(CallbackError::Issuer(_))));
    let guessed = url.replace("state=", "state=x");
    assert_eq!(pending.answered(&guessed).expect_err("another state"), CallbackError::NotOurs);
    assert_eq!(world.count("/token"), 0);
}

/// O76: a sign-in for one server is not finished by the client of another.
#[tokio::test]
async fn a_sign_in_belongs_to_its_server() {
    let (world, other) = (World::of(greeter()).await, World::of(greeter()).await);
    let pending = begun(&world.client(backend(&MemoryStore::new()))).await;
    let answered = pending.answered(&callback(&pending).await).expect("a code");
    let error =
        other.client(backend(&MemoryStore::new())).sign_in(answered).await.expect_err("another server");
    assert!(matches!(error, Error::ApiMisuse(ApiMisuse::Authorization(_))), "{error:?}");
    assert_eq!((world.count("/token"), other.count("/token")), (0, 0));
}

#[tokio::test]
async fn a_client_that_does_not_sign_in_says_so() {
    let world = World::of(greeter()).await;
    let error = world.plain_client().sign_out().await.expect_err("no sign-in");
    assert!(matches!(error, Error::ApiMisuse(ApiMisuse::Settings(_))), "{error:?}");
}

/// A sign-in is begun before any request, with the scopes of the settings, and no other is begun once there is a token.
#[tokio::test]
async fn a_sign_in_is_begun_before_a_request() {
    let world = World::of(greeter()).await;
    let client = world.client(backend(&MemoryStore::new()).scopes(["read"]));
    let Err(Error::SignIn(pending)) = client.begin_sign_in().await else { panic!("a sign-in") };
    assert_eq!(world.count("/mcp"), 0);
    client.sign_in(pending.answered(&callback(&pending).await).expect("a code")).await.expect("a token");
    client.begin_sign_in().await.expect("nothing to do");
    assert_eq!(world.count("/token"), 1);
    client.call_tool("hello", ()).await.expect("a result");
}
