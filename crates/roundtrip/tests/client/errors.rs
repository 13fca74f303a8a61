//! Errors that a program can tell apart by their variants, and their texts.

use std::error::Error as _;
use std::time::Duration;

use roundtrip::client::{ApiMisuse, GaveUp, HttpRefusal, Sent, ServerRejection, Turn, Unreachable};
use roundtrip::server::ServeError;
use roundtrip::testing::ReplayError;
use roundtrip::{Ask, Client, Error, Form, FormRequest, Keyring, Prompt, RateLimit, Server, Tool, ToolError};
use serde_json::{Value, json};

use crate::fixture::{serve, server};
use crate::peer::{Seen, json_reply, peer, peer_of_any_era, reply};
use crate::rounds::script::{Answer, again, asks, party, replies, scripted};

/// A response with a challenge.
fn challenge(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let header = "www-authenticate: Bearer resource_metadata=\"https://x.example/.well-known\"\r\n";
    let text = String::from_utf8(reply(status, kind, body)).expect("text");
    text.replacen("content-type", &format!("{header}content-type"), 1).into_bytes()
}

fn refusal(error: Error) -> HttpRefusal {
    match error {
        Error::Refused(refusal) => *refusal,
        other => panic!("refused, not {other:?}"),
    }
}

#[tokio::test]
async fn too_many_rounds_are_not_polling_for_too_long() {
    let (client, _log) = scripted(|_, _| Answer::Result(asks([("party", party())], Some("s"))));
    let client = client.on_form(async |form: FormRequest| form.decline());
    let error = client.call_tool("book", ()).max_rounds(2).await.expect_err("no end");
    assert!(matches!(error, Error::GaveUp(GaveUp::TooManyRounds { allowed: 2, .. })), "{error:?}");

    let (client, _log) = scripted(|_, _| Answer::Result(again("s")));
    let polling = Duration::from_millis(10);
    let error = client.call_tool("book", ()).max_polling(polling).await.expect_err("never done");
    assert!(
        matches!(error, Error::GaveUp(GaveUp::PolledTooLong { allowed, .. }) if allowed == polling),
        "{error:?}"
    );
}

#[derive(Form)]
struct Party {
    people: u8,
}

/// A server that asks; each has a key of its own.
fn bookings() -> Client {
    async fn book(ask: Ask) -> Result<String, ToolError> {
        let party: Party = ask.form("party", "How many people?").await?;
        Ok(format!("a table for {}", party.people))
    }
    let server = Server::new("bookings", "1.0.0").tool(Tool::new("book", book));
    Client::in_process(server.seal(Keyring::random().expect("a key"))).expect("a sound server")
}

#[tokio::test]
async fn a_refused_state_is_told_apart() {
    let turn = bookings().call_tool("book", ()).one_round().await.expect("a turn");
    let Turn::Asked(pending) = turn else { panic!("it asks") };
    let answered = pending.decline("party").expect("fits");
    let error = bookings().resume(answered).await.expect_err("sealed with another key");
    assert!(matches!(&error, Error::Rejected(ServerRejection::StateRejected(error)) if error.code == -32602));
    assert_eq!(error.to_string(), "the server answered: Invalid or expired requestState (-32602)");
}

#[tokio::test]
async fn a_declined_question_is_told_apart_from_a_forbidden_prompt() {
    async fn topic(ask: Ask) -> Result<String, roundtrip::wire::ErrorObject> {
        let party: Party = ask.form("party", "How many people?").await?;
        Ok(format!("write about {} people", party.people))
    }
    let server = Server::new("prompts", "1.0.0").prompt(Prompt::new("topic", topic));
    let client = Client::in_process(server).expect("a sound server");
    let declines = client.clone().on_form(async |form: FormRequest| form.decline());
    let error = declines.get_prompt("topic").await.expect_err("declined");
    assert!(matches!(error, Error::Rejected(ServerRejection::Declined(_))), "{error:?}");
    let leaves = client.on_form(async |form: FormRequest| form.cancel());
    let error = leaves.get_prompt("topic").await.expect_err("dismissed");
    assert!(matches!(error, Error::Rejected(ServerRejection::Declined(_))), "{error:?}");

    let forbidden = json!({ "code": 403, "message": "not for you" });
    let (client, _log) = scripted(move |_, _| Answer::LateError(Duration::ZERO, forbidden.clone()));
    let error = client.get_prompt("topic").await.expect_err("forbidden");
    assert!(matches!(error, Error::Rejected(ServerRejection::Other(_))), "{error:?}");
}

#[tokio::test]
async fn a_challenge_reaches_the_caller() {
    let rejected = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "no token" } });
    let rejected = rejected.to_string();
    for (status, kind, body) in [
        ("401 Unauthorized", "text/plain", "sign in"),
        ("401 Unauthorized", "application/json", &*rejected),
        ("403 Forbidden", "application/json", &*rejected),
    ] {
        let body = body.to_owned();
        let answer = move |_: usize, _: &Seen| challenge(status, kind, &body);
        let (modern, _seen) = peer(answer.clone()).await;
        let (unknown, _unknown_seen) = peer_of_any_era(answer).await;
        for client in [modern, unknown] {
            let refusal = refusal(client.list_tools().await.expect_err(status));
            assert_eq!(refusal.status.to_string(), status);
            let challenge = refusal.headers.get("www-authenticate").expect("the challenge");
            assert_eq!(challenge, "Bearer resource_metadata=\"https://x.example/.well-known\"");
            assert_eq!(refusal.sent, Sent::No);
            assert_eq!(refusal.error.is_some(), kind == "application/json");
            assert!(!format!("{refusal:?}").contains("well-known"), "{refusal:?}");
        }
    }
}

#[tokio::test]
async fn a_refusal_without_a_challenge_keeps_its_headers_or_is_the_servers_error() {
    let (client, _seen) = peer(|_, _| reply("503 Service Unavailable", "text/plain", "later")).await;
    let error = client.list_tools().await.expect_err("not now");
    let text = error.to_string();
    assert!(text.starts_with("the server at http://127.0.0.1:"), "{text}");
    assert!(text.ends_with("/mcp answered HTTP 503 Service Unavailable: later"), "{text}");
    let refusal = refusal(error);
    assert_eq!((refusal.sent, &*refusal.body), (Sent::Maybe, "later"));
    assert_eq!(refusal.headers.get("content-type").expect("a header"), "text/plain");

    let message = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "not for you" } });
    let (client, _seen) = peer(move |_, _| json_reply("403 Forbidden", &message)).await;
    let error = client.list_tools().await.expect_err("an error");
    assert!(
        matches!(&error, Error::Rejected(ServerRejection::Other(error)) if error.code == -32001),
        "{error:?}"
    );
}

/// A 429 reaches the program with the time to wait, whoever says it: our servers in the error, others in a header.
#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    let (client, _stop) = serve(server().rate_limit(RateLimit::per_minute(1))).await;
    client.call_tool("whoami", ()).await.expect("the first call");
    let error = client.call_tool("whoami", ()).await.expect_err("the second");
    assert!(matches!(error, Error::Rejected(ServerRejection::RateLimited(_))), "{error:?}");
    let wait = error.retry_after().expect("a time");
    assert!(wait > Duration::from_secs(30) && wait <= Duration::from_secs(60), "{wait:?}");
    assert!(error.to_string().contains("too many requests: try again in"), "{error}");

    let limited = |kind: &str, body: &str| {
        let text = String::from_utf8(reply("429 Too Many Requests", kind, body)).expect("text");
        text.replacen("content-type", "retry-after: 7\r\ncontent-type", 1).into_bytes()
    };
    let message = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32000, "message": "slow down" } });
    for (kind, body) in [("text/plain", "slow down".to_owned()), ("application/json", message.to_string())] {
        let (client, _seen) = peer(move |_, _| limited(kind, &body)).await;
        let error = client.list_tools().await.expect_err("not now");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)), "{error:?}");
        let refusal = refusal(error);
        assert_eq!((refusal.status.as_u16(), refusal.sent), (429, Sent::No));
        assert!(refusal.to_string().contains("slow down"), "{refusal}");
    }
}

#[tokio::test]
async fn a_closed_connection_says_whether_the_request_was_sent() {
    let (client, _seen) = peer(|_, _| crate::peer::events(": nothing\n\n")).await;
    let error = client.call_tool("x", ()).await.expect_err("no answer");
    assert!(
        matches!(error, Error::Unreachable { why: Unreachable::Closed(_), sent: Sent::Maybe, .. }),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "`tools/call` of `x` got no answer: the server ended the exchange");

    let (client, _seen) = peer(|_, _| {
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{".to_vec()
    })
    .await;
    let error = client.call_tool("x", ()).await.expect_err("half an answer");
    assert!(
        matches!(error, Error::Unreachable { why: Unreachable::Broken(_), sent: Sent::Maybe, .. }),
        "{error:?}"
    );

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    drop(listener);
    let error = Client::http(url).expect("a client").discover().await.expect_err("no server");
    let Error::Unreachable { why: Unreachable::NoConnection(_), sent: Sent::No, cause: Some(cause) } = &error
    else {
        panic!("no connection, not {error:?}")
    };
    assert!(cause.is::<reqwest::Error>());
    // The text has the causes, so the chain does not say them again.
    assert!(error.source().is_none());
    let text = error.to_string();
    assert!(text.starts_with("`server/discover` was not sent: cannot reach http://127.0.0.1:"), "{text}");
    assert_eq!(text.matches("refused").count(), 1, "{text}");
}

#[tokio::test]
async fn a_mistake_of_the_caller_is_told_apart() {
    let (client, _log) = replies([asks([("a", party()), ("b", party())], Some("s"))]);
    let Turn::Asked(pending) = client.call_tool("book", ()).one_round().await.expect("a turn") else {
        panic!("it asks")
    };
    let error = pending.clone().decline("c").expect_err("not asked");
    assert!(matches!(&error, Error::ApiMisuse(ApiMisuse::NotAsked { key, .. }) if key == "c"), "{error:?}");
    let error = pending.clone().answer("a", json!({ "people": 99 })).expect_err("too many");
    assert!(matches!(&error, Error::ApiMisuse(ApiMisuse::UnfitAnswer(_))), "{error:?}");
    let error = client.resume(pending).await.expect_err("no answers");
    assert!(
        matches!(&error, Error::ApiMisuse(ApiMisuse::Unanswered { keys }) if *keys == ["a", "b"]),
        "{error:?}"
    );
}

#[tokio::test]
async fn errors_at_a_prompt_show_their_text() {
    let setup = Server::new("s", "1").tool(Tool::new("a", async || "a")).tool(Tool::new("a", async || "b"));
    let setup = setup.build().expect_err("two of a name");
    assert!(setup.to_string().starts_with("tool `a`: "), "{setup}");
    assert_eq!(format!("{setup:?}"), setup.to_string());
    let serve = ServeError::from(setup.clone());
    assert_eq!(format!("{serve:?}"), setup.to_string());
    let serve = ServeError::from(std::io::Error::other("address in use"));
    assert_eq!(format!("{serve:?}"), "address in use");
    let replay = ReplayError::from(setup.clone());
    assert_eq!(format!("{replay:?}"), setup.to_string());
    let keys = Keyring::from_file("/nowhere/keys").expect_err("no file");
    assert_eq!(format!("{keys:?}"), keys.to_string());
    assert!(keys.to_string().starts_with("the key file /nowhere/keys cannot be read: "), "{keys}");
    let client = Client::http("nonsense").expect_err("no url");
    assert_eq!(format!("{client:?}"), "`nonsense` cannot be called: relative URL without a base");
}

#[tokio::test]
async fn a_missing_endpoint_is_named_without_its_secrets() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            crate::peer::read(&mut stream).await;
            let reply = reply("404 Not Found", "text/plain", "nothing here");
            tokio::io::AsyncWriteExt::write_all(&mut stream, &reply).await.expect("a client that listens");
        }
    });
    let url = format!("http://ada:s3cret@{address}/wrong?token=s3cret");
    let error = Client::http(url).expect("a client").list_tools().await.expect_err("not there");
    let text = format!("the server at http://{address}/wrong answered HTTP 404 Not Found: nothing here");
    assert_eq!(error.to_string(), text);
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    assert!(!format!("{:?}", refusal(error)).contains("s3cret"));
}

#[tokio::test]
async fn a_request_that_is_not_answered_is_named() {
    let (client, _log) = scripted(|_, _| Answer::Silence);
    let soon = Duration::from_millis(10);
    let error = client.call_tool("book", ()).timeout(soon).await.expect_err("no answer");
    assert_eq!(error.to_string(), "no answer to `tools/call` of `book` within 10ms");
    let error = client.get_prompt("topic").deadline(soon).await.expect_err("no answer");
    assert_eq!(error.to_string(), "no answer to `prompts/get` of `topic` within 10ms");
    let error = client.list_tools().timeout(soon).await.expect_err("no answer");
    assert_eq!(error.to_string(), "no answer to `tools/list` within 10ms");
    let (client, _log) = scripted(|_, _| Answer::Result(asks([("party", party())], Some("s"))));
    let error = client.call_tool("book", ()).await.expect_err("no handler");
    assert_eq!(
        error.to_string(),
        "the peer broke the protocol: `tools/call` of `book` asks `party` (form), which this client did not offer to answer"
    );
    let declines = client.on_form(async |form: FormRequest| form.decline());
    let error = declines.call_tool("book", ()).max_rounds(0).await.expect_err("no rounds");
    assert_eq!(
        error.to_string(),
        "gave up: `tools/call` of `book` asks again after 0 rounds, and 0 are allowed"
    );
}

#[tokio::test]
async fn a_tool_that_failed_is_an_error_where_the_caller_wants_one() {
    async fn text_of(client: &Client, tool: &str, arguments: Value) -> Result<String, Error> {
        Ok(client.call_tool(tool, arguments).await?.into_result()?.text())
    }
    let client = Client::in_process(server()).expect("a sound server");
    let greeting = text_of(&client, "greet", json!({ "name": "Ada" })).await.expect("a greeting");
    assert_eq!(greeting, "Hello, Ada!");
    let error = text_of(&client, "fail", json!({})).await.expect_err("it is broken");
    assert!(matches!(error, Error::Tool(_)), "{error:?}");
    assert_eq!(error.to_string(), "it is broken");
}
