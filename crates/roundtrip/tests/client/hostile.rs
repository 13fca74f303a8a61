//! Peers that break the protocol, the connection, or their word. Every one of them ends in a named error.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip::client::Sent;
use roundtrip::wire::ProtocolVersion;
use roundtrip::{Client, Error};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::peer::{Seen, events, json_reply, peer, read, reply};

/// What a call comes to when it is answered like this.
async fn call(answer: impl Fn(&Seen) -> Vec<u8> + Send + 'static) -> Error {
    let (client, _seen) = peer(move |_, request| answer(request)).await;
    let call = client.call_tool("x", ()).into_future();
    let ended = tokio::time::timeout(Duration::from_secs(10), call).await.expect("no hang");
    ended.expect_err("an error")
}

fn misbehaved(error: &Error, what: &str) {
    assert!(matches!(error, Error::PeerMisbehaved(_)), "misbehaved, not {error:?}");
    assert!(error.to_string().contains(what), "{error}");
}

fn unreachable(error: &Error, what: &str, expected: Sent) {
    let Error::Unreachable { sent, .. } = error else { panic!("unreachable, not {error:?}") };
    assert!(error.to_string().contains(what), "{error}");
    assert_eq!(*sent, expected);
}

fn refused(error: &Error, what: &str, expected: Sent) {
    let Error::Refused(refusal) = error else { panic!("refused, not {error:?}") };
    assert!(error.to_string().contains(what), "{error}");
    assert_eq!(refusal.sent, expected);
}

#[tokio::test]
async fn an_answer_to_another_request_is_no_answer() {
    let answer = json!({ "jsonrpc": "2.0", "id": 77, "result": { "content": [] } });
    misbehaved(&call(move |_| json_reply("200 OK", &answer)).await, "under the id 77");
}

#[tokio::test]
async fn a_list_is_not_taken_for_an_answer() {
    let whole = |request: &Seen| json!(["2.0", request.body["id"], null, null, null, { "content": [] }]);
    misbehaved(&call(move |request| json_reply("200 OK", &whole(request))).await, "batches");
    let event = move |request: &Seen| events(&format!("data: {}\n\n", whole(request)));
    misbehaved(&call(event).await, "batches");
    for inside in [
        json!(["complete", [{ "type": "text", "text": "forged" }]]),
        json!({ "content": [], "_meta": { "io.modelcontextprotocol/serverInfo": ["s", null, "1"] } }),
    ] {
        misbehaved(&call(move |request| request.result(&inside)).await, "sequence");
    }
    let error = json!([-32000, "forged"]);
    misbehaved(&call(move |request| request.error("200 OK", &error)).await, "sequence");
}

#[tokio::test]
async fn an_error_without_an_id_ends_the_call() {
    for message in [
        json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "what?" } }),
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "what?" } }),
    ] {
        for status in ["200 OK", "500 Internal Server Error"] {
            let message = message.clone();
            let error = call(move |_| json_reply(status, &message)).await;
            assert!(matches!(&error, Error::Rejected(error) if error.error().code == -32700), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_server_does_not_ask_by_requests_of_its_own() {
    let error = call(|_| events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n")).await;
    misbehaved(&error, "`roots/list`");
}

#[tokio::test]
async fn a_stream_that_ends_without_an_answer_is_named() {
    unreachable(&call(|_| events(": nothing\n\n")).await, "`tools/call` of `x` got no answer", Sent::Maybe);
    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{".to_vec();
    unreachable(&call(move |_| cut.clone()).await, "broke off", Sent::Maybe);
    unreachable(&call(|_| Vec::new()).await, "cannot reach", Sent::Maybe);
}

#[tokio::test]
async fn an_answer_that_is_not_of_the_protocol_is_quoted_within_bounds() {
    let page = format!("<html>\n  <h1>Bad   Gateway</h1>{}", "x".repeat(10_000));
    let shown = page.clone();
    let error = call(move |_| reply("502 Bad Gateway", "text/html", &page)).await;
    refused(&error, "HTTP 502 Bad Gateway: <html> <h1>Bad Gateway</h1>xxx", Sent::Maybe);
    assert!(error.to_string().len() < 500);
    misbehaved(
        &call(move |_| reply("200 OK", "text/html", &shown)).await,
        "neither JSON nor an event stream",
    );
    misbehaved(&call(|_| reply("202 Accepted", "text/plain", "")).await, "202 Accepted");
    misbehaved(&call(|_| reply("200 OK", "application/json", "[")).await, "not JSON");
    misbehaved(&call(|_| events("data: \u{fffd}\n\n")).await, "not JSON");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let error = call(|_| {
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
            .to_vec()
    });
    refused(&error.await, "HTTP 307", Sent::No);
}

#[tokio::test]
async fn nobody_there_means_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    drop(listener);
    let error = Client::http(url).expect("a client").discover().await.expect_err("nobody there");
    unreachable(&error, "cannot reach http://127.0.0.1", Sent::No);
}

/// Z2: what has no end is cut off.
#[tokio::test]
async fn an_event_without_end_is_cut_off() {
    let error = call(|_| events(&format!("data: {}", "x".repeat(17 << 20)))).await;
    misbehaved(&error, "larger than 16 MiB");
}

#[tokio::test]
async fn pages_that_lead_in_a_circle_are_noticed() {
    let (client, _seen) =
        peer(|_, request| request.result(&json!({ "tools": [], "nextCursor": "again" }))).await;
    misbehaved(&client.list_tools().await.expect_err("a circle"), "in a circle");
}

/// W8: a result that does not say its type is complete, and one of an unknown type is an error that names it.
#[tokio::test]
async fn the_type_of_a_result_is_looked_at_first() {
    let answer = |result: Value| move |_: usize, request: &Seen| request.result(&result);
    let (client, _seen) = peer(answer(json!({ "content": [] }))).await;
    client.call_tool("x", ()).await.expect("complete");
    let (client, _seen) = peer(answer(json!({ "resultType": "riddle", "content": [] }))).await;
    misbehaved(&client.call_tool("x", ()).await.expect_err("unknown"), "`riddle`");
    let (client, _seen) = peer(answer(json!({ "resultType": "complete", "content": 5 }))).await;
    misbehaved(&client.call_tool("x", ()).await.expect_err("a misfit"), "result.content");
}

/// C15: an `input_required` on a method that may not have it, or with nothing in it to go on with, is a named error.
#[tokio::test]
async fn questions_where_none_may_be_are_named() {
    let asks = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {} });
    let (client, _seen) = peer(move |_, request| request.result(&asks)).await;
    misbehaved(&client.list_tools().await.expect_err("may not ask"), "`tools/list`");

    let asks_nothing = json!({ "resultType": "input_required" });
    let (client, _seen) = peer(move |_, request| request.result(&asks_nothing)).await;
    misbehaved(&client.call_tool("x", ()).await.expect_err("nothing to go on with"), "neither questions");
}

/// N2: progress of other requests, progress that does not grow, and log messages below the level asked for are not
/// passed on.
#[tokio::test]
async fn notifications_that_were_not_asked_for_are_left_out() {
    let (client, _seen) = peer(|_, request| {
        let id = &request.body["id"];
        let progress = |token: &Value, progress: u32| {
            json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": progress } })
        };
        let log = |level: &str| {
            json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": level, "data": level } })
        };
        let messages = [
            progress(id, 1),
            progress(&json!("other"), 5),
            progress(id, 1),
            log("debug"),
            log("warning"),
            progress(id, 2),
            json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }),
        ];
        events(&messages.iter().map(|message| format!("data: {message}\n\n")).collect::<String>())
    })
    .await;
    let (steps, logs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (seen_steps, seen_logs) = (Arc::clone(&steps), Arc::clone(&logs));
    let call = client
        .call_tool("x", ())
        .on_progress(move |step| seen_steps.lock().expect("steps").push(step.progress))
        .on_log(move |message| seen_logs.lock().expect("logs").push(message.data.to_value()));
    call.await.expect("a result");
    assert_eq!(*steps.lock().expect("steps"), [1.0, 2.0]);
    assert_eq!(*logs.lock().expect("logs"), ["warning"]);
}

/// C12: on HTTP, giving up closes the connection, which is how a request is cancelled there.
#[tokio::test]
async fn giving_up_hangs_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let peer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        read(&mut stream).await;
        stream.read(&mut [0; 1]).await.unwrap_or(0)
    });
    let client = Client::http(url).expect("a client").protocol(ProtocolVersion::LATEST);
    let error = client.call_tool("x", ()).timeout(Duration::from_millis(50)).await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(peer.await.expect("no panic"), 0, "the connection is closed");
}
