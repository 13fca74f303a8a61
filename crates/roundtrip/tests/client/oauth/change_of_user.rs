//! Clients that one person after another uses: nothing of the first is there for the next.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{OAuth, Pending};
use roundtrip::server::Listed;
use roundtrip::{Cache, Client, Error, Server, Tool};
use tokio::sync::Notify;

use super::world::{World, person};

/// A server whose lists stay fresh for ten minutes.
fn desk() -> Server {
    let kept = Cache::private(Duration::from_secs(600));
    Server::new("desk", "1.0.0").tool(Tool::new("hello", async || "hello")).cache(Listed::Tools, kept)
}

/// The tokens with which the list of tools was asked for so far.
fn asked(world: &World) -> Vec<Option<String>> {
    let lists = world.seen("/mcp").into_iter().filter(|seen| seen.body.contains("\"tools/list\""));
    let tokens = lists.map(|seen| seen.header("authorization").map(str::to_owned));
    tokens.collect()
}

/// The number of requests for the list of tools that the server has answered.
async fn lists(client: &Client, world: &World) -> usize {
    let before = asked(world).len();
    client.list_tools().await.expect("a list");
    asked(world).len() - before
}

/// Signs in to the store as somebody else, as another process does.
async fn answered(client: &Client) -> roundtrip::oauth::Answered {
    let Err(Error::SignIn(pending)) = client.begin_sign_in().await else { panic!("a sign-in") };
    let pending: Pending = *pending;
    let browser =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let response = browser.get(pending.url().as_str()).send().await.expect("a page");
    pending.answered(response.headers()["location"].to_str().expect("a URL")).expect("a code")
}

fn backend(store: &MemoryStore) -> OAuth {
    OAuth::new("Tests").redirect_uri("https://agent.example/callback").scopes(["read"]).store(store.clone())
}

/// N3: results that the client keeps go with the person who signs out, and with one whose place another takes.
#[tokio::test]
async fn a_result_of_one_person_is_not_shown_to_the_next() {
    let world = World::of(desk()).await;
    let client = world.client(person());
    lists(&client, &world).await;
    assert_eq!(lists(&client, &world).await, 0, "it is kept");
    client.sign_out().await.expect("an empty store");
    assert!(lists(&client, &world).await > 0, "nobody is signed in, and then another person is");

    let client = world.client(backend(&MemoryStore::new()));
    client.sign_in(answered(&client).await).await.expect("a token");
    lists(&client, &world).await;
    assert_eq!(lists(&client, &world).await, 0, "it is kept");
    let other = world.client(backend(&MemoryStore::new()));
    client.sign_in(answered(&other).await).await.expect("a token");
    assert_eq!(lists(&client, &world).await, 1, "another person has signed in");
}

/// N3: an answer to a request from before a sign-out is returned to its caller, and kept for nobody.
#[tokio::test]
async fn an_answer_under_way_at_a_sign_out_is_not_kept() {
    let gate = Arc::new((AtomicBool::new(false), Notify::new(), Notify::new()));
    let (closed, reached, release) = &*gate;
    let held = Arc::clone(&gate);
    let server = desk().around(move |_, next| {
        let gate = Arc::clone(&held);
        async move {
            if gate.0.swap(false, Relaxed) {
                gate.1.notify_one();
                gate.2.notified().await;
            }
            next.run().await
        }
    });
    let world = World::of(server).await;
    let client = world.client(person());
    client.call_tool("hello", ()).await.expect("a result");
    closed.store(true, Relaxed);
    let list = tokio::spawn(client.list_tools().into_future());
    reached.notified().await;
    client.sign_out().await.expect("an empty store");
    release.notify_one();
    assert_eq!(list.await.expect("no panic").expect("a list").len(), 1);
    assert!(lists(&client, &world).await > 0);
}

/// N3: another person's grant that another process has stored empties the cache when it is taken; a renewal does not.
#[tokio::test]
async fn a_stored_grant_of_another_person_empties_the_cache() {
    let (world, store) = (World::of(desk()).await, MemoryStore::new());
    let client = world.client(backend(&store));
    client.sign_in(answered(&client).await).await.expect("a token");
    lists(&client, &world).await;

    world.end_tokens();
    world.client(backend(&store)).call_tool("hello", ()).await.expect("another process renews it");
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/token"), 2, "the renewed token was taken");
    assert_eq!(lists(&client, &world).await, 0, "it is the same person");

    world.end_tokens();
    let other = world.client(backend(&MemoryStore::new()));
    let bob = answered(&other).await;
    world.client(backend(&store)).sign_in(bob).await.expect("a token");
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(lists(&client, &world).await, 1, "it is another person");
    let tokens = asked(&world);
    assert_ne!(tokens.first(), tokens.last());
}

/// N3: what a client that starts with a stored grant is sent first is kept.
#[tokio::test]
async fn the_first_grant_of_a_store_is_no_change() {
    let (world, store) = (World::of(desk()).await, MemoryStore::new());
    let first = world.client(backend(&store));
    first.sign_in(answered(&first).await).await.expect("a token");
    let client = world.client(backend(&store));
    assert_eq!((lists(&client, &world).await, lists(&client, &world).await), (1, 0));
}

/// O75: a stream of changes ends with the sign-out of the person who opened it.
#[tokio::test]
async fn a_stream_of_changes_ends_with_the_sign_out() {
    let world = World::of(desk()).await;
    let client = world.client(person());
    let mut changes = client.listen().tools().await.expect("a stream");
    client.sign_out().await.expect("an empty store");
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next()).await.expect("an end");
    let error = next.expect("a reason").expect_err("an end");
    assert!(error.to_string().contains("signed out"), "{error}");
    assert!(changes.next().await.is_none());
}

/// O75: a session ends with the sign-out of the person who began it, by a request with that person's token.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_session_ends_with_the_sign_out() {
    use roundtrip::wire::ProtocolVersion;
    let world = World::of(desk()).await;
    let client = world.client(person()).protocol(ProtocolVersion::V2025_11_25);
    let mut changes = client.listen().tools().await.expect("a stream");
    client.sign_out().await.expect("an empty store");
    let log = world.seen("/mcp");
    let ended: Vec<_> = log.iter().filter(|seen| seen.method == "DELETE").collect();
    assert_eq!(ended.len(), 1);
    assert!(ended[0].header("authorization").is_some());
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next()).await.expect("an end");
    next.expect("a reason").expect_err("an end");
    client.call_tool("hello", ()).await.expect("a result");
    let begun = world.seen("/mcp").iter().filter(|seen| seen.body.contains("\"initialize\"")).count();
    assert!(begun > log.iter().filter(|seen| seen.body.contains("\"initialize\"")).count());
}
