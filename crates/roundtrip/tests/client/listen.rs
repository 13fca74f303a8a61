//! Streams of changes.

use std::pin::Pin;

use futures_core::Stream;
use roundtrip::{Change, Client, Error, Server, Tool};
use serde_json::json;

use crate::fixture::{serve, server};
use crate::peer::{events, peer};

async fn late() -> String {
    "late".to_owned()
}

/// N1: the stream is acknowledged before it is handed over, says what it will tell of, and tells of it.
#[tokio::test]
async fn changes_come_as_they_happen_until_the_server_ends_the_stream() {
    let server = server();
    let catalog = server.catalog();
    let (client, stop) = serve(server).await;
    let mut changes =
        client.listen().tools().prompts().resources().resource("app://motto").await.expect("a stream");
    let acknowledged = changes.acknowledged();
    assert_eq!(acknowledged.tools_list_changed, Some(true));
    assert_eq!(acknowledged.resource_subscriptions, ["app://motto"]);

    catalog.add(Tool::new("late", late)).expect("a new tool");
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
    catalog.resource_updated("app://motto");
    let change = changes.next().await.expect("open").expect("a change");
    assert_eq!(change, Change::Resource { uri: "app://motto".to_owned() });

    stop.send(()).expect("a server to stop");
    assert!(changes.next().await.is_none(), "a stream that is ended in good order ends without an error");
    assert!(changes.next().await.is_none());
}

/// N1: several streams at once, each with its own filter; the in-process client ends them when it is closed.
#[tokio::test]
async fn several_streams_are_kept_apart() {
    let server: Server = server();
    let catalog = server.catalog();
    let client = Client::in_process(server).expect("a sound server");
    let mut tools = client.listen().tools().await.expect("a stream");
    let mut motto = client.listen().resource("app://motto").await.expect("a stream");
    catalog.add(Tool::new("late", late)).expect("a new tool");
    catalog.resource_updated("app://motto");
    assert_eq!(tools.next().await.expect("open").expect("a change"), Change::Tools);
    let change = motto.next().await.expect("open").expect("a change");
    assert_eq!(change, Change::Resource { uri: "app://motto".to_owned() });
    client.close().await;
    assert!(tools.next().await.is_none() && motto.next().await.is_none());
    assert!(matches!(client.list_tools().await, Err(Error::Closed)), "closed is closed");
}

fn notification(method: &str, id: &serde_json::Value) -> String {
    let params =
        json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id }, "notifications": {}, "uri": "x" });
    format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const CHANGED: &str = "notifications/tools/list_changed";

/// N1: a stream that breaks says so; one that the server cancels has ended in good order.
#[tokio::test]
async fn an_abrupt_end_is_an_error_and_then_the_end() {
    let (client, _seen) = peer(|number, request| {
        let id = &request.body["id"];
        let start = notification(ACKNOWLEDGED, id) + &notification(CHANGED, id);
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        });
        events(&if number == 0 { start } else { format!("{start}data: {cancelled}\n\n") })
    })
    .await;
    let mut changes = client.listen().tools().await.expect("a stream");
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
    let broken = changes.next().await.expect("an error").expect_err("an error");
    assert!(matches!(broken, Error::Unreachable { .. }), "{broken}");
    assert!(changes.next().await.is_none());

    let mut changes = client.listen().tools().await.expect("a stream");
    let mut next = async || std::future::poll_fn(|cx| Pin::new(&mut changes).poll_next(cx)).await;
    assert_eq!(next().await.expect("open").expect("a change"), Change::Tools);
    assert!(next().await.is_none());
}

/// N1: what comes before the acknowledgment, or is tagged with another stream's id, is an error.
#[tokio::test]
async fn streams_that_break_the_rules_are_refused() {
    let (client, _seen) = peer(|number, request| {
        let id = &request.body["id"];
        match number {
            0 => events(&notification(CHANGED, id)),
            1 => events(&notification(ACKNOWLEDGED, &json!("other"))),
            2 => request.result(&json!({})),
            3 => request.error("200 OK", &json!({ "code": -32601, "message": "no" })),
            _ => events(&(notification(ACKNOWLEDGED, id) + &notification(CHANGED, &json!(99)))),
        }
    })
    .await;
    for expected in ["not acknowledged", "tagged other", "not acknowledged", "(-32601)"] {
        let error = client.listen().tools().await.expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut changes = client.listen().tools().await.expect("a stream");
    let error = changes.next().await.expect("an error").expect_err("another stream's");
    assert!(error.to_string().contains("tagged 99"), "{error}");
}
