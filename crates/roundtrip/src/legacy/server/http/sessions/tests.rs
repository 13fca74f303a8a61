//! Bytes that sessions keep.

use http::{HeaderMap, HeaderValue, StatusCode};
use roundtrip_core::wire::{JsonObject, Message};
use serde_json::{Value, json};

use super::*;
use crate::legacy::server::http::endpoint::LegacyHttp;
use crate::legacy::server::http::head::{Accepts, Arrival, SESSION};
use crate::legacy::server::http::reply::Reply;
use crate::server::{Access, Args, Ask, Limits, Log, Server, Tool, ToolError};

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

async fn post(http: &LegacyHttp, who: &str, session: Option<&str>, method: &str, params: Value) -> Reply {
    let mut headers = HeaderMap::new();
    if let Some(session) = session {
        headers.insert(SESSION, HeaderValue::from_str(session).expect("an id"));
    }
    let arrival = Arrival {
        headers: &headers,
        extensions: http::Extensions::new(),
        principal: Some(Principal::new(who)),
        access: Access::default(),
        address: None,
        accepts: Accepts { json: true, streams: true, keep_alive: Duration::from_secs(15) },
    };
    // Ids may be used again once their requests are done.
    let id = URL_SAFE_NO_PAD.encode(random::<12>().expect("randomness"));
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let text = message.to_string();
    let message = Message::decode(text.as_bytes()).expect("a message");
    http.post(&arrival, message).reply().await
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
