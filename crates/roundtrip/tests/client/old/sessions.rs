//! Sessions: begun, lost, begun anew, ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip::client::Sent;
use roundtrip::wire::ProtocolVersion;
use roundtrip::{Error, FormRequest};
use serde_json::json;
use tokio::time::Instant;

use super::server::{Old, empty, form, json_reply, stream};
use crate::fixture::text;

/// L6: every request of a session names it, and closing the client ends it.
#[tokio::test]
async fn a_session_is_named_by_every_request_and_ended_by_close() {
    let (client, old) = Old::start(|_, _| None).await;
    client.call_tool("a", ()).await.expect("a result");
    client.close().await;
    let ended = old.wait(|seen| seen.http == "DELETE").await;
    assert_eq!(ended.header("mcp-session-id"), Some("session-0"));
    let seen = old.seen();
    let later = seen.iter().skip_while(|seen| seen.method() != "initialize").skip(1);
    for seen in later {
        assert_eq!(seen.header("mcp-session-id"), Some("session-0"), "{seen:?}");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    assert!(matches!(client.call_tool("a", ()).await, Err(Error::Closed)), "closed is closed");
    assert_eq!(old.seen().len(), seen.len(), "nothing more is sent");
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::V2025_11_25), "what was last spoken");
}

/// L6: dropping the last clone of a client ends its session too.
#[tokio::test]
async fn a_session_ends_with_its_client() {
    let (client, old) = Old::start(|_, _| None).await;
    client.call_tool("a", ()).await.expect("a result");
    drop(client);
    let ended = old.wait(|seen| seen.http == "DELETE").await;
    assert_eq!(ended.header("mcp-session-id"), Some("session-0"));
}

/// L6: a session that has expired is begun anew, and the request sent again: it was not run.
#[tokio::test]
async fn an_expired_session_is_begun_anew() {
    for status in [404, 400] {
        let (client, old) = Old::start(move |_, seen| {
            let expired = seen.tool() == "b" && seen.header("mcp-session-id") == Some("session-0");
            let gone = seen.error(-32000, "Bad Request: No valid session ID provided");
            expired.then(|| json_reply(status, &gone))
        })
        .await;
        client.call_tool("a", ()).await.expect("a result");
        assert_eq!(text(&client.call_tool("b", ()).await.expect("a result")), "done");
        let last = old.seen().pop().expect("a call");
        assert_eq!(last.header("mcp-session-id"), Some("session-1"));
        let greeted = old.seen().into_iter().rfind(|seen| seen.method() == "initialize").expect("a greeting");
        assert_eq!(greeted.header("mcp-session-id"), None, "a new session begins without the old one's id");
    }
}

/// L6: a server that forgets every session at once is an error, not a loop.
#[tokio::test]
async fn a_server_that_forgets_every_session_is_given_up_on() {
    let (client, old) = Old::start(|_, seen| (seen.method() == "tools/call").then(|| empty(404))).await;
    let error = client.call_tool("a", ()).await.expect_err("no session lasts");
    assert!(matches!(&error, Error::Unreachable { sent: Sent::No, .. }), "{error:?}");
    assert_eq!(old.posted().iter().filter(|method| *method == "initialize").count(), 2);
}

/// L6: a session that ends while a call is open in it costs that call, by name, and nothing later.
#[tokio::test]
async fn a_session_that_expires_in_the_midst_of_a_call_is_named() {
    let (client, _old) = Old::start(|_, seen| {
        if seen.method().is_empty() && seen.http == "POST" {
            return Some(empty(404));
        }
        (seen.tool() == "ask").then(|| {
            let (sender, reply) = stream();
            sender.message(&form(1, "Who?"));
            tokio::spawn(async move { sender.0.closed().await });
            reply
        })
    })
    .await;
    let client = client.on_form(async |form: FormRequest| form.accept(json!({ "name": "Ada" })));
    let error = client.call_tool("ask", ()).await.expect_err("the session is gone");
    let Error::Unreachable { why, sent: Sent::Maybe, .. } = &error else { panic!("not {error:?}") };
    let message = why.to_string();
    assert!(message.contains("session"), "{message}");
    client.call_tool("a", ()).await.expect("a result");
}

/// L6: a stream that the server closes is taken up where it broke, after as long as the server wants.
#[tokio::test]
async fn a_stream_that_is_closed_is_taken_up_again() {
    let (client, old) = Old::start(|old, seen| match (seen.http.as_str(), seen.header("last-event-id")) {
        ("POST", _) if seen.method() == "tools/call" => {
            let (sender, reply) = stream();
            sender.raw("id: 1\nretry: 120\ndata:\n\n");
            sender.raw("id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n");
            Some(reply)
        }
        ("GET", Some("2")) => {
            let call = old.seen().into_iter().find(|seen| seen.method() == "tools/call").expect("a call");
            let (sender, reply) = stream();
            sender.raw(&format!("id: 3\ndata: {}\n\n", call.says("resumed")));
            Some(reply)
        }
        _ => None,
    })
    .await;
    client.list_tools().await.expect("tools");
    let begun = Instant::now();
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "resumed");
    assert!(begun.elapsed() >= Duration::from_millis(120));
    let resumed = old.wait(|seen| seen.header("last-event-id").is_some()).await;
    assert_eq!(resumed.header("mcp-session-id"), Some("session-0"));
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
}

/// L6: a stream without ids cannot be taken up, and one whose server refuses it is not asked for ever.
#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_is_an_error() {
    let gets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&gets);
    let (client, _old) = Old::start(move |_, seen| {
        if seen.http == "GET" {
            counted.fetch_add(1, Ordering::SeqCst);
            return Some(empty(405));
        }
        (seen.method() == "tools/call").then(|| {
            let (sender, reply) = stream();
            sender.raw(if seen.tool() == "ids" { "id: 1\nretry: 1\ndata:\n\n" } else { ": nothing\n\n" });
            reply
        })
    })
    .await;
    for (tool, expected) in [("plain", 0), ("ids", 1)] {
        let error = client.call_tool(tool, ()).await.expect_err("no answer");
        assert!(matches!(&error, Error::Unreachable { sent: Sent::Maybe, .. }), "{error:?}");
        assert_eq!(gets.load(Ordering::SeqCst), expected, "{tool}");
    }
}

/// L6: a server without sessions is served without one.
#[tokio::test]
async fn a_server_may_have_no_sessions() {
    let (client, old) = Old::start(|_, seen| match seen.method() {
        "initialize" => Some(json_reply(200, &seen.result(&super::server::greeting("2025-11-25")))),
        "notifications/initialized" => Some(empty(202)),
        "tools/call" => Some(json_reply(200, &seen.says("stateless"))),
        _ => None,
    })
    .await;
    assert_eq!(text(&client.call_tool("a", ()).await.expect("a result")), "stateless");
    client.close().await;
    assert!(!old.seen().iter().any(|seen| seen.http == "DELETE"));
}
