//! Finding a revision that both sides speak.

use roundtrip::wire::ProtocolVersion;
use roundtrip::{Client, Error, Server};
use serde_json::{Value, json};

use crate::peer::{next, peer};

fn unsupported(supported: &Value) -> Value {
    json!({
        "code": -32022,
        "message": "unsupported protocol version",
        "data": { "supported": supported, "requested": "2026-07-28" },
    })
}

#[tokio::test]
async fn a_refused_version_is_tried_again_once_with_one_that_is_supported() {
    let (client, mut seen) = peer(|number, request| match number {
        0 => {
            request.error("400 Bad Request", &unsupported(&json!(["2025-11-25", "2026-07-28", "2099-01-01"])))
        }
        _ => request.result(&json!({ "tools": [] })),
    })
    .await;
    assert!(client.list_tools().await.expect("the second time").is_empty());
    let (first, second) = (next(&mut seen).await, next(&mut seen).await);
    assert_ne!(first.body["id"], second.body["id"], "a new request has a new id");
    for request in [first, second] {
        let version = &request.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    }
}

async fn refused(client: &Client) -> Error {
    client.list_tools().await.expect_err("no version in common")
}

#[tokio::test]
async fn no_version_in_common_is_an_error_that_names_both_sides() {
    let (client, _seen) =
        peer(|_, request| request.error("400 Bad Request", &unsupported(&json!(["2025-11-25", "1.0"]))))
            .await;
    let error = refused(&client).await;
    let Error::PeerIncompatible(why) = &error else { panic!("incompatible, not {error}") };
    let why = why.to_string();
    assert!(why.contains("2025-11-25, 1.0") && why.contains("2026-07-28"), "{why}");
}

#[tokio::test]
async fn a_server_that_refuses_what_it_says_it_supports_is_not_asked_for_ever() {
    let (client, mut seen) =
        peer(|_, request| request.error("400 Bad Request", &unsupported(&json!(["2026-07-28"])))).await;
    assert!(matches!(refused(&client).await, Error::Rejected(error) if error.error().code == -32022));
    next(&mut seen).await;
    next(&mut seen).await;
    assert!(seen.try_recv().is_err(), "twice is enough");
}

/// L6: a revision with a handshake needs a transport that has one, and the error says which do.
#[tokio::test]
async fn a_transport_without_a_handshake_cannot_be_pinned_to_one() {
    let client = Client::in_process(Server::new("server", "1.0.0")).expect("a sound server");
    let error = refused(&client.protocol(ProtocolVersion::V2025_06_18)).await;
    assert!(matches!(error, Error::ApiMisuse(_)), "{error:?}");
    let why = error.to_string();
    assert!(why.contains("2025-06-18") && why.contains("HTTP or stdio"), "{why}");
}

/// The revision that a client speaks is known once the server has answered.
#[tokio::test]
async fn the_revision_that_is_spoken_can_be_asked_for() {
    let (over_http, _seen) = peer(|_, request| request.result(&json!({ "tools": [] }))).await;
    let (pinned, _pinned_seen) = peer(|_, request| request.result(&json!({ "tools": [] }))).await;
    let pinned = pinned.protocol(ProtocolVersion::LATEST);
    let in_process = Client::in_process(Server::new("s", "1")).expect("a sound server");
    for client in [over_http, pinned, in_process] {
        assert_eq!(client.protocol_version(), None);
        client.list_tools().await.expect("tools");
        assert_eq!(client.protocol_version(), Some(ProtocolVersion::LATEST));
        client.close().await;
        assert_eq!(client.protocol_version(), Some(ProtocolVersion::LATEST));
    }
}
