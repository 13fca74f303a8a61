//! Step-up: a token with more scopes, in the middle of things.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::oauth::store::MemoryStore;
use roundtrip::oauth::{AuthError, OAuth};
use roundtrip::testing::Effects;
use roundtrip::{Ask, Error, Form, FormRequest, Server, State, Tool, ToolError};
use serde_json::json;

use super::sign_in::greeter;
use super::world::{World, person};

#[derive(Form)]
struct Party {
    people: u8,
}

async fn book(ask: Ask, State(bank): State<Effects>) -> Result<String, ToolError> {
    ask.remember("pay", async || bank.happened("payment")).await?;
    let party: Party = ask.form("party", "How many people?").await?;
    Ok(format!("a table for {}", party.people))
}

/// O90, O88: a 403 in the second round gets a wider token, and the call goes on: nothing is asked or run twice.
#[tokio::test]
async fn a_step_up_in_a_later_round_asks_nothing_twice() {
    let bank = Effects::new();
    let server = Server::new("bookings", "1.0.0").tool(Tool::new("book", book)).state(bank.clone());
    let later = |seen: &super::world::Seen| {
        if seen.body.contains("requestState") { "write" } else { "read" }
    };
    let world = World::needing(server, later).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let client = world.client(person()).on_form(move |form: FormRequest| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { form.accept(json!({ "people": 4 })) }
    });
    let result = client.call_tool("book", ()).await.expect("a result");
    assert_eq!(result.content[0].as_text(), Some("a table for 4"));
    assert_eq!((asked.load(Ordering::Relaxed), bank.count("payment")), (1, 1));
    let scopes: Vec<_> = world.seen("/authorize").iter().map(|seen| seen.query["scope"].clone()).collect();
    assert_eq!(scopes, ["read", "read write"]);
    // The retry has the same state, under an id of its own.
    let rounds: Vec<serde_json::Value> = world
        .seen("/mcp")
        .iter()
        .map(|seen| serde_json::from_str(&seen.body).expect("json"))
        .filter(|message: &serde_json::Value| message["params"]["requestState"].is_string())
        .collect();
    assert_eq!(rounds.len(), 2);
    assert_eq!(rounds[0]["params"]["requestState"], rounds[1]["params"]["requestState"]);
    assert_ne!(rounds[0]["id"], rounds[1]["id"]);
}

/// O89: scopes that were requested and not granted are not requested again.
#[tokio::test]
async fn a_step_up_that_asks_for_nothing_new_is_final() {
    // The server wants the same scopes, whatever the token has.
    let world =
        World::needing(
            greeter(),
            |seen| {
                if seen.header("authorization").is_some() { "read never" } else { "read" }
            },
        )
        .await;
    let client = world.client(person());
    world.shared().withheld = Some("never");
    for _ in 0..2 {
        let error = client.call_tool("hello", ()).await.expect_err("too little scope");
        assert!(
            matches!(&error, Error::NotAuthorized(why) if matches!(**why, AuthError::ScopesRefused(_))),
            "{error:?}"
        );
    }
    assert_eq!(world.count("/authorize"), 2);
}

/// O89: a step-up in vain does not stand in the way of a sign-in that an ended token needs.
#[tokio::test]
async fn a_step_up_in_vain_leaves_sign_ins_alone() {
    let server = greeter().tool(Tool::new("vain", async || "never"));
    let world = World::needing(server, |seen| match seen.header("mcp-name") {
        Some("vain") => "never",
        _ => "read",
    })
    .await;
    let client = world.client(person());
    client.call_tool("hello", ()).await.expect("a result");
    world.shared().withheld = Some("never");
    client.call_tool("vain", ()).await.expect_err("too little scope");
    world.end_grants();
    client.call_tool("hello", ()).await.expect("a result");
    assert_eq!(world.count("/authorize"), 3);
}

/// Serves two tools with a scope each, beside the greeting.
async fn two_tools() -> World {
    let server = greeter().tool(Tool::new("one", async || "1")).tool(Tool::new("two", async || "2"));
    World::needing(server, |seen| match seen.header("mcp-name") {
        Some("one") => "one",
        Some("two") => "two",
        _ => "read",
    })
    .await
}

/// O88: clients that share a store keep each other's scopes, and take a token that another has stepped up.
#[tokio::test]
async fn step_ups_of_two_clients_keep_each_others_scopes() {
    let world = two_tools().await;
    let store = MemoryStore::new();
    let (first, second) = (world.client(person().store(store.clone())), world.client(person().store(store)));
    first.call_tool("hello", ()).await.expect("a result");
    second.call_tool("hello", ()).await.expect("a result");
    first.call_tool("one", ()).await.expect("a result");
    second.call_tool("two", ()).await.expect("a result");
    first.call_tool("two", ()).await.expect("a result");
    let scopes: Vec<_> = world.seen("/authorize").iter().map(|seen| seen.query["scope"].clone()).collect();
    assert_eq!(scopes, ["read", "one read", "one read two"]);
}

/// O88: two calls that want different scopes at the same time end with a token for both.
#[tokio::test]
async fn step_ups_at_the_same_time_keep_each_others_scopes() {
    let world = two_tools().await;
    let client = world.client(person());
    client.call_tool("hello", ()).await.expect("a result");
    let (one, two) =
        tokio::join!(client.call_tool("one", ()).into_future(), client.call_tool("two", ()).into_future());
    one.expect("a result");
    two.expect("a result");
    client.call_tool("hello", ()).await.expect("a result");
    let last = world.seen("/authorize").pop().expect("a sign-in").query["scope"].clone();
    assert_eq!(last, "one read two");
    assert_eq!(world.count("/authorize"), 3);
}

/// O91, O92: a client without a person authenticates itself, and gives up where its scopes do not reach.
#[tokio::test]
async fn a_machine_aborts_in_place_of_a_step_up() {
    let world =
        World::needing(
            greeter(),
            |seen| {
                if seen.header("authorization").is_some() { "admin" } else { "read" }
            },
        )
        .await;
    let client = world.client(OAuth::machine("robot").secret("s3cret").issuer(world.issuer()));
    let error = client.call_tool("hello", ()).await.expect_err("too little scope");
    assert!(matches!(&error, Error::Refused(refusal) if refusal.status == 403), "{error:?}");
    let requests = world.seen("/token");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("authorization"), Some("Basic cm9ib3Q6czNjcmV0"));
    assert_eq!(requests[0].form()["grant_type"], "client_credentials");
    assert_eq!(world.count("/authorize") + world.count("/register"), 0);
}

/// O92: the extension is declared in the client's capabilities.
#[tokio::test]
async fn a_machine_declares_its_extension() {
    let world = World::of(greeter()).await;
    let machine = OAuth::machine("robot").secret("s").issuer(world.issuer());
    world.client(machine).call_tool("hello", ()).await.expect("a result");
    let call = world.seen("/mcp").pop().expect("a call").body;
    assert!(call.contains("io.modelcontextprotocol/oauth-client-credentials"), "{call}");
}

/// O96: an issuer that has bound a token to the client's key has to bind the next one, also where it lists that no more.
#[tokio::test]
async fn a_step_up_does_not_take_the_key_off_a_token() {
    let world =
        World::needing(greeter(), |seen| if seen.body.contains("tools/call") { "write" } else { "read" })
            .await;
    world.shared().dpop = true;
    let client = world.client(person().dpop());
    client.list_tools().await.expect("a list");
    world.shared().dpop = false;
    client.call_tool("hello", ()).await.expect("a result");
    let proofs: Vec<_> = world.seen("/token").iter().map(|seen| seen.header("dpop").is_some()).collect();
    assert_eq!(proofs, [true, true]);
}
