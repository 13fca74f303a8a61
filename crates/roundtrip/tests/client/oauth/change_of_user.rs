//! Clients that one person after another uses: nothing of the first is there for the next.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{OAuth, Pending};
use roundtrip::server::Listed;
use roundtrip::{Args, Cache, Changes, Client, Error, Server, Tool};
use tokio::sync::Notify;

#[cfg(feature = "legacy")]
use super::world::Gate;
use super::world::{World, person};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

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

/// N3: a list that was under way at a sign-out teaches the next person's calls nothing.
#[tokio::test]
async fn a_list_under_way_at_a_sign_out_is_not_remembered() {
    let gate = Arc::new((AtomicBool::new(false), Notify::new(), Notify::new()));
    let (closed, reached, release) = &*gate;
    let held = Arc::clone(&gate);
    let region = Tool::new("region", async |Args(found): Args<Region>| found.region);
    let server = desk().tool(region).around(move |_, next| {
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
    let (before, arguments) = (world.count("/mcp"), serde_json::json!({ "region": "north" }));
    release.notify_one();
    assert_eq!(list.await.expect("no panic").expect("a list").len(), 2);
    client.call_tool("region", arguments).await.expect("a result");
    let calls = world.seen("/mcp").split_off(before);
    let mirrored: Vec<_> = calls.iter().map(|seen| seen.header("mcp-param-region")).collect();
    assert_eq!(mirrored.first(), Some(&None), "the person has listed nothing");
    assert_eq!(mirrored.last(), Some(&Some("north")), "and has now");
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

/// Returns the error that ends a stream.
async fn end_of(mut changes: Changes) -> Error {
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next()).await.expect("an end");
    next.expect("a reason").expect_err("an end")
}

/// O75: a stream of changes ends where another person takes the place of the one who opened it, here or in another process.
#[tokio::test]
async fn a_stream_of_changes_ends_where_another_person_signs_in() {
    let (world, store) = (World::of(desk()).await, MemoryStore::new());
    let client = world.client(backend(&store));
    client.sign_in(answered(&client).await).await.expect("a token");
    let other = world.client(backend(&MemoryStore::new()));
    let (bob, carol) = (answered(&other).await, answered(&other).await);

    let changes = client.listen().tools().await.expect("a stream");
    world.end_tokens();
    client.call_tool("hello", ()).await.expect("a renewal");
    client.sign_in(bob).await.expect("a token");
    let error = end_of(changes).await;
    assert!(error.to_string().contains("somebody else"), "{error}");

    let changes = client.listen().tools().await.expect("a stream");
    world.end_tokens();
    world.client(backend(&store)).sign_in(carol).await.expect("a token");
    client.call_tool("hello", ()).await.expect("a result, with the stored grant");
    end_of(changes).await;
}

/// O75: a session is of the person who began it: another one who signs in, here or in another process, gets another session.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn no_request_of_one_person_is_in_the_session_of_another() {
    use roundtrip::wire::ProtocolVersion;
    let (world, store) = (World::of(desk()).await, MemoryStore::new());
    let client = world.client(backend(&store)).protocol(ProtocolVersion::V2025_11_25);
    let other = world.client(backend(&MemoryStore::new()));
    let hello = async || drop(client.call_tool("hello", ()).await.expect("a result"));
    client.sign_in(answered(&client).await).await.expect("a token");
    hello().await;
    let changes = client.listen().tools().await.expect("a stream");
    assert_eq!(world.checked_sessions(), 1);

    client.sign_in(answered(&other).await).await.expect("a token");
    end_of(changes).await;
    hello().await;
    hello().await;
    assert_eq!(world.checked_sessions(), 2, "another person has signed in");

    world.end_tokens();
    world.client(backend(&store)).sign_in(answered(&other).await).await.expect("a token");
    hello().await;
    assert_eq!(world.checked_sessions(), 3, "another process has stored another person's grant");

    world.client(backend(&store)).sign_out().await.expect("an empty store");
    world.end_tokens();
    client.call_tool("hello", ()).await.expect_err("another process has signed out");
    client.sign_in(answered(&other).await).await.expect("a token");
    hello().await;
    assert_eq!(world.checked_sessions(), 4);
}

/// O75: a session that is being begun at a sign-out is nobody's: no later request is in it, and none tells that it is ready.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_handshake_under_way_at_a_sign_out_leaves_no_session() {
    use roundtrip::wire::ProtocolVersion;
    let world = World::of(desk()).await;
    for pinned in [Some(ProtocolVersion::V2025_11_25), None] {
        let client = world.client(person());
        let client = match pinned {
            Some(version) => client.protocol(version),
            None => client,
        };
        let gate = Arc::new(Gate::default());
        world.shared().session_gate = Some(Arc::clone(&gate));
        world.shared().refuses_modern = pinned.is_none();
        let before = world.checked_sessions();
        let call = tokio::spawn(client.call_tool("hello", ()).into_future());
        gate.reached.notified().await;
        client.sign_out().await.expect("an empty store");
        world.shared().session_gate = None;
        gate.open.notify_one();
        call.await.expect("no panic").expect("a result, in another session");
        client.call_tool("hello", ()).await.expect("a result");
        assert_eq!(world.checked_sessions() - before, 2);
    }
}

/// O89: scopes that one person has declined are asked of the next.
#[tokio::test]
async fn a_refusal_of_one_person_is_not_held_against_the_next() {
    let world = World::of(desk()).await;
    let client = world.client(person());
    world.shared().consent = Some("access_denied");
    for _ in 0..2 {
        client.call_tool("hello", ()).await.expect_err("it was declined");
    }
    assert_eq!(world.count("/authorize"), 1, "it is not asked for again");
    client.sign_out().await.expect("an empty store");
    world.shared().consent = None;
    client.call_tool("hello", ()).await.expect("another person agrees");
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
