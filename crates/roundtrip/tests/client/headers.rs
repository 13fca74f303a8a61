//! What goes into HTTP headers.

use roundtrip::Error;
use serde_json::json;

use crate::fixture::{serve, server, text};
use crate::peer::{next, peer};

/// H8: the client always accepts both kinds of answer, and says in headers what the body says.
#[tokio::test]
async fn requests_carry_the_headers_of_the_protocol() {
    let (client, mut seen) = peer(|_, request| request.result(&json!({ "content": [] }))).await;
    let client = client.header("authorization", "Bearer x");
    client.call_tool("grüße", ()).await.expect("a result");
    let request = next(&mut seen).await;
    assert!(request.head.starts_with("POST /mcp HTTP/1.1"));
    let expected = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Z3LDvMOfZQ==?="),
        ("authorization", "Bearer x"),
    ];
    for (name, value) in expected {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
}

/// H3: arguments are mirrored as the tool's schema says, encoded where a header could not carry them.
#[tokio::test]
async fn annotated_arguments_are_mirrored() {
    let (client, _stop) = serve(server()).await;
    client.list_tools().await.expect("tools");
    for region in ["us-west1", " padded ", "日本", "=?base64?x?="] {
        let arguments = json!({ "region": region, "shard": 7, "other": [1] });
        assert_eq!(text(&client.call_tool("region", arguments).await.expect("accepted")), "mirrored");
    }
    client.call_tool("region", json!({ "region": null })).await.expect("null has no header");
}

/// H3: a tool that was not listed is called without headers; when the server refuses that, its schema is looked up
/// and the call made again.
#[tokio::test]
async fn a_header_mismatch_is_mended_by_listing_the_tools() {
    let (client, _stop) = serve(server()).await;
    let result = client.call_tool("region", json!({ "region": "x" })).await.expect("mended");
    assert_eq!(text(&result), "mirrored");
}

#[tokio::test]
async fn a_header_mismatch_is_mended_once() {
    let (client, mut seen) = peer(|_, request| match request.body["method"].as_str() {
        Some("tools/list") => request.result(&json!({ "tools": [] })),
        _ => request.error("400 Bad Request", &json!({ "code": -32020, "message": "header mismatch" })),
    })
    .await;
    let error = client.call_tool("stubborn", ()).await.expect_err("refused twice");
    assert!(matches!(error, Error::Rejected(error) if error.error().code == -32020));
    let mut methods = Vec::new();
    for _ in 0..3 {
        methods.push(next(&mut seen).await.body["method"].clone());
    }
    assert_eq!(methods, ["tools/call", "tools/list", "tools/call"]);
}

/// H3: a tool whose annotations are invalid is left out, and does not spoil the others.
#[tokio::test]
async fn tools_with_invalid_annotations_are_left_out() {
    let property = |schema: serde_json::Value| json!({ "type": "object", "properties": { "a": schema } });
    let tools = json!([
        { "name": "empty", "inputSchema": property(json!({ "type": "string", "x-mcp-header": "" })) },
        { "name": "number", "inputSchema": property(json!({ "type": "number", "x-mcp-header": "A" })) },
        { "name": "spaced", "inputSchema": property(json!({ "type": "string", "x-mcp-header": "a b" })) },
        { "name": "valid", "inputSchema": property(json!({ "type": "string", "x-mcp-header": "A" })) },
    ]);
    let (client, _seen) = peer(move |_, request| request.result(&json!({ "tools": tools }))).await;
    let names: Vec<_> = client.list_tools().await.expect("tools").into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["valid"]);
}
