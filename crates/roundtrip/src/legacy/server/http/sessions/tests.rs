//! Bytes that sessions keep.

use http::{HeaderMap, HeaderValue, StatusCode};
use roundtrip_core::seal::{self, Key, Timestamp};
use roundtrip_core::wire::{JsonObject, Message};
use serde_json::{Value, json};

use super::*;
use crate::legacy::handshake::NEWEST;
use crate::legacy::server::http::endpoint::LegacyHttp;
use crate::legacy::server::http::head::{Accepts, Arrival, SESSION};
use crate::legacy::server::http::reply::Reply;
use crate::legacy::server::http::sealed_id::LIFETIME;
use crate::legacy::server::negotiated::Negotiated;
use crate::legacy::server::translate::raw;
use crate::server::{Access, Args, Ask, Limits, Log, Server, Tool, ToolError, now};

/// Budget of all sessions: a sixteenth of the default, like every other size here.
const BUDGET: usize = 4 * 1024 * 1024;
const PART: usize = BUDGET / 64;

/// Logs first, so that it is answered by a stream, and then returns a large text.
async fn much(log: Log) -> String {
    log.info("x".repeat(PART / 16));
    tokio::task::yield_now().await;
    "y".repeat(PART)
}

async fn asking(Args(_): Args<JsonObject>, ask: Ask) -> Result<&'static str, ToolError> {
    ask.confirm("sure", "Sure?").await?;
    Ok("sure")
}

fn legacy_http() -> LegacyHttp {
    let server = Server::new("s", "1").tool(Tool::new("much", much)).tool(Tool::new("asking", asking));
    let server = server.tool(Tool::new("small", async || "small"));
    LegacyHttp::new(&server.handshake(Handshake::sessions().session_bytes(BUDGET)).build().expect("a server"))
}

fn headers_of(session: Option<&str>) -> HeaderMap {
    let id = |session| (SESSION, HeaderValue::from_str(session).expect("an id"));
    session.map(id).into_iter().collect()
}

fn arrival<'a>(headers: &'a HeaderMap, who: &str) -> Arrival<'a> {
    Arrival {
        headers,
        extensions: http::Extensions::new(),
        principal: Some(Principal::new(who)),
        access: Access::default(),
        address: None,
        accepts: Accepts { json: true, streams: true, keep_alive: Duration::from_secs(15) },
    }
}

/// Enters a session as a request does.
fn entered(http: &LegacyHttp, who: &str, session: &str) -> Present {
    let headers = headers_of(Some(session));
    http.session(&arrival(&headers, who), None).expect("a good id").expect("a session")
}

async fn post(http: &LegacyHttp, who: &str, session: Option<&str>, method: &str, params: Value) -> Reply {
    let headers = headers_of(session);
    // Ids may be used again once their requests are done.
    let id = URL_SAFE_NO_PAD.encode(random::<12>().expect("randomness"));
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let text = message.to_string();
    let message = Message::decode(text.as_bytes()).expect("a message");
    http.post(&arrival(&headers, who), message).reply().await
}

fn sealed_http() -> LegacyHttp {
    let ring = seal::Keyring::new([Key::generate([1; 32])]).expect("a ring");
    let server = Server::new("s", "1").tool(Tool::new("asking", asking)).seal(ring);
    LegacyHttp::new(&server.tool(Tool::new("small", async || "small")).build().expect("a server"))
}

/// Returns how many sessions the process keeps.
fn kept(http: &LegacyHttp) -> usize {
    lock(&http.sessions().table).open.len()
}

async fn begin(http: &LegacyHttp, who: &str) -> Option<String> {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "old", "version": "1" },
    });
    match post(http, who, None, "initialize", params).await {
        Reply::Session(_, id) => Some(id),
        other => {
            assert!(matches!(other, Reply::Json(StatusCode::SERVICE_UNAVAILABLE, _)), "{other:?}");
            None
        }
    }
}

/// Calls a tool and disconnects; returns whether the call was accepted.
async fn call(http: &LegacyHttp, who: &str, session: &str, tool: &str, arguments: Value) -> bool {
    let params = json!({ "name": tool, "arguments": arguments });
    let reply = post(http, who, Some(session), "tools/call", params).await;
    let taken = matches!(reply, Reply::Events(_) | Reply::Json(StatusCode::OK, _));
    assert!(taken || matches!(reply, Reply::Json(StatusCode::SERVICE_UNAVAILABLE, _)), "{reply:?}");
    taken
}

/// Z3, L8: sessions that were left with answers nobody reads keep no more than a part of one caller's share. Calls still
/// find room, for others and for the same caller, and what has expired keeps nothing.
#[tokio::test(start_paused = true)]
async fn twenty_abandoned_sessions_keep_no_more_than_one_callers_share() {
    let http = legacy_http();
    let bytes = Arc::clone(&http.sessions().bytes);
    let mut sessions = Vec::new();
    for _ in 0..20 {
        let session = begin(&http, "eve").await.expect("a session");
        for _ in 0..16 {
            assert!(call(&http, "eve", &session, "much", json!({})).await);
        }
        sessions.push(session);
    }
    // The paused clock advances when there is nothing left to do.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!((8 * PART..=BUDGET / 2).contains(&bytes.held()), "{} bytes", bytes.held());
    assert!(call(&http, "eve", &sessions[0], "small", json!({})).await);
    let other = begin(&http, "bob").await.expect("a session");
    assert!(call(&http, "bob", &other, "small", json!({})).await);
    tokio::time::sleep(Duration::from_secs(31 * 60)).await;
    assert_eq!((bytes.held(), http.sessions().places.held()), (0, 0));
}

/// Z3, L8: the parameters of calls that wait in any number of sessions are no more than one caller's share.
#[tokio::test(start_paused = true)]
async fn calls_that_wait_in_many_sessions_keep_no_more_than_one_callers_share() {
    let http = legacy_http();
    let bytes = Arc::clone(&http.sessions().bytes);
    let arguments = json!({ "x": "y".repeat(3 * PART) });
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20 {
        let session = begin(&http, "eve").await.expect("a session");
        for _ in 0..2 {
            match call(&http, "eve", &session, "asking", arguments.clone()).await {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    assert_eq!((taken, refused), (10, 30));
    assert!((30 * PART..=BUDGET / 2).contains(&bytes.held()), "{} bytes", bytes.held());
    let other = begin(&http, "bob").await.expect("a session");
    assert!(call(&http, "bob", &other, "asking", arguments).await);
    tokio::time::sleep(Duration::from_secs(41 * 60)).await;
    assert_eq!(bytes.held(), 0);
}

/// Z3, L8: one caller does not begin all the sessions there may be.
#[tokio::test]
async fn one_principal_does_not_take_all_sessions() {
    let server = Server::new("s", "1").handshake(Handshake::sessions().max_sessions(100));
    let http = LegacyHttp::new(&server.build().expect("a server"));
    for (who, most) in [("eve", 50), ("bob", 25)] {
        for _ in 0..most {
            assert!(begin(&http, who).await.is_some());
        }
        assert!(begin(&http, who).await.is_none(), "{who}");
    }
}

/// Z3, L8: calls that wait in any number of sessions take one caller's share of the places for calls, and their places are free
/// again once the sessions have ended.
#[tokio::test(start_paused = true)]
async fn one_principal_does_not_take_all_places_for_calls() {
    let limits = Limits { concurrent_calls: 32, ..Limits::default() };
    let server = Server::new("s", "1").tool(Tool::new("asking", asking)).limits(limits);
    let http = LegacyHttp::new(&server.build().expect("a server"));
    for (who, most) in [("eve", 8), ("bob", 4)] {
        let mut taken = 0;
        for _ in 0..4 {
            let session = begin(&http, who).await.expect("a session");
            for _ in 0..4 {
                taken += usize::from(call(&http, who, &session, "asking", json!({})).await);
            }
        }
        assert_eq!(taken, most, "{who}");
    }
    assert_eq!(http.sessions().running.held(), 12);
    tokio::time::sleep(Duration::from_secs(41 * 60)).await;
    assert_eq!(http.sessions().running.held(), 0);
}

/// L8, Z3: a sealed session is kept by a process while its calls run and where its stream is, and plain calls leave nothing.
#[tokio::test(start_paused = true)]
async fn a_sealed_session_is_kept_only_while_it_is_needed() {
    let http = sealed_http();
    let session = begin(&http, "ada").await.expect("a session");
    assert_eq!(kept(&http), 0, "what was negotiated is in the id");
    assert!(call(&http, "ada", &session, "small", json!({})).await);
    assert_eq!(kept(&http), 0);
    // A call that waits for an answer, of a client that has hung up.
    assert!(call(&http, "ada", &session, "asking", json!({})).await);
    assert_eq!((kept(&http), http.sessions().places.held()), (1, 1));
    assert!(call(&http, "ada", &session, "small", json!({})).await);
    assert_eq!(kept(&http), 1);
    tokio::time::sleep(Duration::from_secs(41 * 60)).await;
    assert_eq!((kept(&http), http.sessions().places.held(), http.sessions().bytes.held()), (0, 0, 0));
    assert!(call(&http, "ada", &session, "small", json!({})).await, "the id is good for longer");
}

/// L8: requests that enter a sealed session at the same time find one state, and the last to leave removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_requests_of_a_sealed_session_have_one_state() {
    let http = sealed_http();
    let session = begin(&http, "ada").await.expect("a session");
    for _ in 0..200 {
        let enter = || {
            let (http, session) = (http.clone(), session.clone());
            tokio::spawn(async move { entered(&http, "ada", &session) })
        };
        let (one, two) = (enter(), enter());
        let (one, two) = (one.await.expect("no panic"), two.await.expect("no panic"));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(kept(&http), 1);
        let leave = |present| tokio::spawn(async move { drop(present) });
        let (left, other) = (leave(one), leave(two));
        left.await.expect("no panic");
        other.await.expect("no panic");
        assert_eq!(kept(&http), 0);
    }
}

/// L8: an id that is presented after its seven days is not there, and its stream ends with it.
#[tokio::test(start_paused = true)]
async fn an_id_is_not_there_after_its_seven_days() {
    let http = sealed_http();
    let ids = http.sealed_ids().expect("a shared ring");
    let agreed = json!({ "name": "old", "version": "1" });
    let agreed = Negotiated { client_info: Some(raw(&agreed).expect("JSON")), ..Negotiated::unknown(NEWEST) };
    let aged = |age: Duration| {
        let issued = Timestamp::from_unix(now().as_unix() - age.as_secs());
        ids.seal(&agreed, Some(&Principal::new("ada")), issued).expect("randomness").expect("it fits")
    };
    let ping = async |id: &str| post(&http, "ada", Some(id), "ping", json!({})).await;
    let young = aged(LIFETIME - Duration::from_secs(100));
    assert!(matches!(ping(&young).await, Reply::Json(StatusCode::OK, _)));
    assert!(matches!(ping(&aged(LIFETIME)).await, Reply::Json(StatusCode::NOT_FOUND, _)));
    // A state that is kept, and in use, ends with its id.
    let present = entered(&http, "ada", &young);
    present.keep().expect("a place");
    assert_eq!(kept(&http), 1);
    tokio::time::sleep(Duration::from_secs(161)).await;
    assert_eq!((kept(&http), http.sessions().places.held()), (0, 0));
}
