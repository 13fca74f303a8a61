//! Results held against what their tools were listed with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::{Client, Error};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::peer::peer;

/// A peer with one tool, which gives one result.
async fn tool(output_schema: Value, result: Value) -> Client {
    let tool = json!({ "name": "x", "inputSchema": { "type": "object" }, "outputSchema": output_schema });
    let (client, _seen) = peer(move |_, request| match request.body["method"].as_str() {
        Some("tools/list") => request.result(&json!({ "tools": [tool] })),
        _ => request.result(&result),
    })
    .await;
    client
}

/// N4: the client, too, holds structured results against the schema of a tool it has listed, and names the place.
#[tokio::test]
async fn a_result_that_breaks_its_schema_is_the_servers_fault() {
    let schema =
        json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    let result = json!({ "content": [], "structuredContent": { "sum": "three" } });
    let client = tool(schema.clone(), result).await;
    client.call_tool("x", ()).await.expect("a tool that was not listed is taken at its word");
    client.list_tools().await.expect("tools");
    let error = client.call_tool("x", ()).await.expect_err("not a number");
    assert!(matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("/sum")), "{error}");

    let client = tool(schema.clone(), json!({ "content": [] })).await;
    client.list_tools().await.expect("tools");
    assert!(matches!(client.call_tool("x", ()).await, Err(Error::PeerMisbehaved(_))), "nothing structured");

    for good in [
        json!({ "content": [], "structuredContent": { "sum": 3 } }),
        json!({ "content": [], "isError": true }),
    ] {
        let client = tool(schema.clone(), good).await;
        client.list_tools().await.expect("tools");
        client.call_tool("x", ()).await.expect("a good result");
    }
}

/// N5: a schema's reference to the network is never fetched; the client does without the schema.
#[tokio::test]
async fn references_to_the_network_are_never_fetched() {
    let trap = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = trap.local_addr().expect("an address");
    let caught = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&caught);
    tokio::spawn(async move {
        while trap.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let schema = json!({ "$ref": format!("http://{address}/schema.json") });
    let client = tool(schema, json!({ "content": [], "structuredContent": 5 })).await;
    client.list_tools().await.expect("tools");
    client.call_tool("x", ()).await.expect("taken at its word");
    assert_eq!(caught.load(Ordering::SeqCst), 0);
}

/// A chain of definitions, each of which refers to the next, `times` times; the last refers to the first, one level down.
fn definitions(count: usize, keyword: &str, times: usize) -> Value {
    let refer = |index: usize| json!({ "$ref": format!("#/$defs/d{index}") });
    let define = |index| (format!("d{index}"), json!({ keyword: vec![refer(index + 1); times] }));
    let mut defs: serde_json::Map<String, Value> = (0..count).map(define).collect();
    defs.insert(format!("d{count}"), json!({ "items": refer(0) }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

/// N5: schemas whose references unfold without measure, and patterns that backtrack, cost a client nothing: it does
/// without the schema, or checks the result in bounded work.
#[tokio::test]
async fn an_output_schema_cannot_hang_the_client_or_overflow_its_stack() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let content = |content: &Value| json!({ "content": [], "structuredContent": content });
    for schema in [definitions(400, "allOf", 1), definitions(27, "allOf", 2), definitions(27, "anyOf", 2)] {
        let client = tool(schema, content(&deep)).await;
        client.list_tools().await.expect("tools");
        client.call_tool("x", ()).await.expect("taken at its word");
    }
    let schema = json!({ "items": { "pattern": "^(a+)+(b+)+$" } });
    let texts = vec![format!("{}!", "a".repeat(300)); 30];
    let client = tool(schema, content(&json!(texts))).await;
    client.list_tools().await.expect("tools");
    let error = client.call_tool("x", ()).await.expect_err("no match");
    assert!(matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("/0: ")), "{error}");
}

/// N4: results are judged by the dialect of the listed schema; by one that is not known they are not, and the log names it.
#[test]
fn the_dialect_of_an_output_schema_counts() {
    let schema = |dialect: &str| {
        let pair = json!({ "type": "array", "items": [{ "type": "string" }, { "type": "integer" }] });
        json!({ "$schema": dialect, "type": "object", "properties": { "pair": pair } })
    };
    let called = async |dialect: &str, pair: Value| {
        let result = json!({ "content": [], "structuredContent": { "pair": pair } });
        let client = tool(schema(dialect), result).await;
        client.list_tools().await.expect("tools");
        client.call_tool("x", ()).await
    };
    let log = crate::logged::logged(async move {
        let draft_7 = "http://json-schema.org/draft-07/schema#";
        called(draft_7, json!(["a", 1])).await.expect("a good result");
        let error = called(draft_7, json!(["a", "b"])).await.expect_err("not an integer");
        assert!(
            matches!(&error, Error::PeerMisbehaved(why) if why.to_string().contains("/pair/1")),
            "{error}"
        );
        called("https://example.com/own-dialect", json!(7)).await.expect("taken at its word");
    });
    assert!(log.contains("WARN") && log.contains("https://example.com/own-dialect"), "{log}");
}
