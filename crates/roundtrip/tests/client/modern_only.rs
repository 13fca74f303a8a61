//! A client built without the handshake eras.

use roundtrip::client::{ApiMisuse, PeerIncompatible};
use roundtrip::wire::ProtocolVersion;
use roundtrip::{Client, Error};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::peer::{Seen, modern, next, peer_of_any_era, reply};

/// Checks that an error says what to do about a legacy server.
fn names_the_feature(error: &Error) {
    assert!(matches!(error, Error::PeerIncompatible(PeerIncompatible::HandshakeRequired)), "{error:?}");
    assert!(error.to_string().contains("cargo feature `legacy`"), "{error}");
}

fn no_session() -> Value {
    json!({ "code": -32600, "message": "Bad Request: no session" })
}

fn script(text: &str) -> Client {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    Client::stdio(command)
}

/// L6: over HTTP a legacy server shows by its refusal, and no handshake is tried.
#[tokio::test]
async fn a_legacy_server_over_http_is_an_error_that_names_the_feature() {
    let (client, mut seen) =
        peer_of_any_era(|_, request| request.error("400 Bad Request", &no_session())).await;
    names_the_feature(&client.list_tools().await.expect_err("a legacy server"));
    let mut methods = vec![next(&mut seen).await, next(&mut seen).await];
    methods.extend(seen.try_recv());
    let methods: Vec<_> = methods.iter().map(|request| &request.body["method"]).collect();
    assert_eq!(methods, ["tools/list", "server/discover"]);
}

/// L6: a refusal of a modern server is its own, and it is asked about its era once.
#[tokio::test]
async fn a_refusal_of_a_modern_server_reaches_the_caller() {
    let invalid = |request: &Seen| {
        request.error("400 Bad Request", &json!({ "code": -32602, "message": "no such cursor" }))
    };
    let (client, mut seen) = peer_of_any_era(move |_, request| match &request.body["method"] {
        method if method == "server/discover" => modern(request),
        _ => invalid(request),
    })
    .await;
    for _ in 0..2 {
        let error = client.list_tools().await.expect_err("invalid");
        assert!(matches!(&error, Error::Rejected(error) if error.error().code == -32602), "{error:?}");
    }
    for method in ["tools/list", "server/discover", "tools/list"] {
        assert_eq!(next(&mut seen).await.body["method"], method);
    }
    assert!(seen.try_recv().is_err(), "once is enough");
}

#[tokio::test]
async fn a_place_without_a_server_is_no_legacy_server() {
    let (client, _seen) = peer_of_any_era(|_, _| reply("404 Not Found", "text/plain", "nothing here")).await;
    let error = client.list_tools().await.expect_err("not there");
    assert!(matches!(&error, Error::Refused(refusal) if refusal.status == 404), "{error:?}");
}

/// L6: on stdio a legacy server shows by its answer to the probe, before anything else is sent.
#[cfg(unix)]
#[tokio::test]
async fn a_legacy_server_on_stdio_is_an_error_that_names_the_feature() {
    let refused = json!({ "jsonrpc": "2.0", "id": "discover", "error": no_session() });
    let versions = json!({ "supportedVersions": ["2025-11-25"], "capabilities": {} });
    let found = json!({ "jsonrpc": "2.0", "id": "discover", "result": versions });
    for answer in [refused, found] {
        let client = script(&format!("read -r probe; echo '{answer}'; cat >/dev/null"));
        names_the_feature(&client.list_tools().await.expect_err("a legacy server"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_child_that_dies_over_the_probe_says_why_itself() {
    let error = script("read -r probe; echo broken >&2; exit 7").list_tools().await.expect_err("dead");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    let why = error.to_string();
    assert!(why.contains("exit status: 7") && why.contains("broken"), "{why}");
}

#[tokio::test]
async fn a_handshake_revision_cannot_be_pinned() {
    let client = Client::http("http://127.0.0.1:1/mcp").expect("a client");
    for client in [client, script("exit")] {
        let error = client.protocol(ProtocolVersion::V2025_11_25).list_tools().await.expect_err("not spoken");
        assert!(matches!(error, Error::ApiMisuse(ApiMisuse::Settings(_))), "{error:?}");
        assert!(error.to_string().contains("cargo feature `legacy`"), "{error}");
    }
}
