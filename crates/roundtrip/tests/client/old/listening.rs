//! Changes at old servers.

use roundtrip::client::PeerIncompatible;
use roundtrip::{Change, Error};
use serde_json::json;

use super::server::{Old, empty};

fn changed(what: &str) -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{what}") })
}

/// L6: listening at an old server is the stream beside the calls and a subscription for every resource, opened when
/// somebody listens, shared by all who do, and taken back when they go.
#[tokio::test]
async fn changes_come_by_the_stream_beside_the_calls() {
    let (client, old) = Old::start(|_, _| None).await;
    client.list_tools().await.expect("tools");
    assert!(!old.seen().iter().any(|seen| seen.http == "GET"), "nobody listens yet");

    let mut changes = client.listen().tools().prompts().resource("app://motto").await.expect("a stream");
    assert_eq!(changes.acknowledged().tools_list_changed, Some(true));
    assert_eq!(changes.acknowledged().prompts_list_changed, None, "the server does not tell of these");
    assert_eq!(changes.acknowledged().resource_subscriptions, ["app://motto"]);
    let mut tools = client.listen().tools().resource("app://motto").await.expect("another");
    assert_eq!(old.seen().iter().filter(|seen| seen.http == "GET").count(), 1, "one stream for both");
    assert_eq!(old.posted().iter().filter(|method| *method == "resources/subscribe").count(), 1);

    let general = old.general.lock().expect("general").clone().expect("a stream");
    general.message(&changed("prompts/list_changed"));
    general.message(&changed("tools/list_changed"));
    for stream in [&mut changes, &mut tools] {
        assert_eq!(stream.next().await.expect("open").expect("a change"), Change::Tools);
    }
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "app://motto" } });
    general.message(&updated);
    let expected = Change::Resource { uri: "app://motto".to_owned() };
    assert_eq!(changes.next().await.expect("open").expect("a change"), expected);

    drop(changes);
    drop(tools);
    let taken_back = old.wait(|seen| seen.method() == "resources/unsubscribe").await;
    assert_eq!(taken_back.body["params"]["uri"], "app://motto");
    general.0.closed().await;
}

/// L6: a server without such a stream is an error that says so.
#[tokio::test]
async fn a_server_without_a_stream_of_changes_is_named() {
    let (client, _old) = Old::start(|_, seen| (seen.http == "GET").then(|| empty(405))).await;
    let error = client.listen().tools().await.expect_err("no stream");
    assert!(matches!(&error, Error::PeerIncompatible(PeerIncompatible::NoChanges)), "{error:?}");
}

/// L6: a stream of changes that breaks is opened again, and where that is not to be, ends with an error.
#[tokio::test]
async fn a_stream_of_changes_that_breaks_is_opened_again_or_ends() {
    let (client, old) = Old::start(|old, seen| {
        let gets = old.seen().iter().filter(|seen| seen.http == "GET").count();
        match (seen.http.as_str(), gets) {
            ("GET", 1) => {
                let (sender, reply) = super::server::stream();
                sender.raw("id: 5\nretry: 1\ndata:\n\n");
                Some(reply)
            }
            ("GET", 3..) => Some(empty(404)),
            _ => None,
        }
    })
    .await;
    let mut changes = client.listen().tools().await.expect("a stream");
    let again = old.wait(|seen| seen.header("last-event-id") == Some("5")).await;
    assert_eq!(again.http, "GET");
    let general = loop {
        if let Some(general) = old.general.lock().expect("general").take() {
            break general;
        }
        tokio::task::yield_now().await;
    };
    general.message(&changed("tools/list_changed"));
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
    drop(general);
    let error = changes.next().await.expect("an error").expect_err("it is over");
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(changes.next().await.is_none());
}

/// L6: a listener that falls behind is told so, and costs a bounded amount of memory.
#[tokio::test]
async fn a_listener_that_falls_behind_is_told() {
    let (client, old) = Old::start(|_, _| None).await;
    let mut changes = client.listen().tools().await.expect("a stream");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    for _ in 0..1000 {
        general.message(&changed("tools/list_changed"));
    }
    general.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    old.response(&json!(1)).await;
    let error = loop {
        match changes.next().await.expect("an error before the end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("behind"), "{error}");
}

/// Z2: notifications that nobody can ask for, and changes of absurd size, take no places from the changes that are told.
#[tokio::test]
async fn noise_on_the_stream_of_changes_does_not_end_it() {
    let (client, old) = Old::start(|_, _| None).await;
    let mut changes = client.listen().tools().resource("app://").await.expect("a stream");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    for _ in 0..1000 {
        general.message(&json!({ "jsonrpc": "2.0", "method": "notifications/noise" }));
    }
    let uri = format!("app://{}", "x".repeat(1 << 20));
    let updated = "notifications/resources/updated";
    for _ in 0..10 {
        general.message(&json!({ "jsonrpc": "2.0", "method": updated, "params": { "uri": uri } }));
    }
    // Once this is answered, all that was before it has been read.
    general.message(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
    old.response(&json!("p")).await;
    general.message(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    assert_eq!(changes.next().await.expect("open").expect("a change"), Change::Tools);
}
