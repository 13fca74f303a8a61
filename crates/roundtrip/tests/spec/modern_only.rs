//! A server without the feature `legacy`, and what it tells clients of the handshake eras (versioning, "Backward
//! Compatibility").

use roundtrip::{Server, Tool};
use serde_json::{Value, json};

use crate::peers::{Pipe, V2025_11_25, Web, everything, initialize, initialized, request, tool};
use crate::support::message;

fn server() -> Server {
    Server::new("s", "1").tool(Tool::new("number", async || "42"))
}

/// Asserts that a client of 2025-11-25 is told which revision is spoken: this may be all that its user sees.
fn assert_names_the_revision(refused: &Value) {
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    let data = json!({ "supported": ["2026-07-28"], "requested": V2025_11_25 });
    assert_eq!((&refused["id"], &refused["error"]["data"]), (&json!(0), &data), "{refused}");
}

/// W6: over HTTP the handshake is refused with 400, and there are no sessions to open, to listen to or to end.
#[tokio::test]
async fn the_handshake_is_refused_over_http() {
    let web = Web::new(server());
    let handshake = initialize(V2025_11_25, &everything());
    for client in [web.clone(), web.with("mcp-protocol-version", V2025_11_25)] {
        let mut refused = client.post(&handshake).await;
        assert_eq!((refused.status, refused.header("mcp-session-id")), (400, None));
        assert_names_the_revision(&refused.json().await);
    }
    let session = web.with("mcp-session-id", "made-up").with("mcp-protocol-version", V2025_11_25);
    for client in [&web, &session] {
        for mut refused in [client.get().await, client.delete().await] {
            assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
            assert_eq!(refused.json().await["error"]["code"], -32600);
        }
    }
}

/// W6: a call of a handshake revision is refused for its revision, or for the headers it does not have.
#[tokio::test]
async fn calls_of_a_handshake_revision_are_refused_over_http() {
    let web = Web::new(server());
    let stated = web.with("mcp-session-id", "made-up").with("mcp-protocol-version", V2025_11_25);
    let mut refused = stated.post(&tool(0, "number")).await;
    assert_eq!(refused.status, 400);
    assert_names_the_revision(&refused.json().await);
    let mut unstated = web.post(&tool(0, "number")).await;
    assert_eq!((unstated.status, &unstated.json().await["error"]["code"]), (400, &json!(-32020)));
    assert_eq!(web.post(&initialized()).await.status, 202, "a notification is accepted, whatever it says");
}

/// W6: on a pipe the handshake is refused, and so is everything behind it; the pipe goes on.
#[tokio::test]
async fn the_handshake_is_refused_on_a_pipe() {
    let mut pipe = Pipe::open(server());
    assert_names_the_revision(&pipe.call(&initialize(V2025_11_25, &everything())).await);
    pipe.send(&initialized()).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    let batch = pipe.call(&json!([request(1, "ping", json!({}))])).await;
    assert_eq!(batch["error"]["code"], -32600, "{batch}");
    assert_eq!(pipe.call(&request(2, "ping", json!({}))).await["error"]["code"], -32601);
    assert_eq!(pipe.call(&tool(3, "number")).await["error"]["code"], -32602);
    let answer = pipe.call(&message(4, "tools/call", json!({ "name": "number" }))).await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(4), &json!("42")));
    pipe.hang_up().await;
}
