//! Bounds on the messages that a session keeps for a client that does not read.

use std::sync::Arc;

use roundtrip::{Log, Resource, Server, Tool};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::tools::{Diary, server};
use crate::peers::{Pipe, V2025_11_25, Web, everything, request, tool};

/// Z2: a progress token is copied into every notification that is kept, so its length has a limit in a session, too.
#[tokio::test]
async fn a_progress_token_of_a_mebibyte_is_refused_in_a_session() {
    let mut call = tool(1, "number");
    call["params"]["_meta"] = json!({ "progressToken": "x".repeat(1024 * 1024) });
    let assert_refused = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let told = answer["error"]["message"].as_str().expect("a message");
        assert!(told.contains("at most 1024 bytes"), "{told}");
    };
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    assert_refused(client.post(&call).await.json().await);
    assert_refused(Pipe::agreed(server(&Diary::default()), V2025_11_25, &json!({})).await.call(&call).await);
}

/// Z2: what is kept of a call's log for a client that does not read is bounded in bytes, not in messages alone.
#[tokio::test]
async fn long_log_messages_kept_for_a_session_are_bounded_in_bytes() {
    let said = Arc::new(Notify::new());
    let saying = Arc::clone(&said);
    let chatty = Tool::new("chatty", move |log: Log| {
        let said = Arc::clone(&saying);
        async move {
            let text = "x".repeat(10_000);
            for _ in 0..200 {
                log.error(&text);
                tokio::task::yield_now().await;
            }
            said.notify_one();
            "said"
        }
    });
    let client = Web::new(Server::new("s", "1").tool(chatty)).session(V2025_11_25, &everything()).await;
    let mut stream = client.post(&tool(1, "chatty")).await;
    said.notified().await;
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await {
        messages.push(message);
    }
    assert!((20..=27).contains(&messages.len()), "256 KiB and the answer: {}", messages.len());
    assert_eq!(messages.last().expect("an answer")["result"]["content"][0]["text"], "said");
}

/// N1: changes that a client does not read wait in the server as one, however often there are more.
#[tokio::test]
async fn changes_nobody_reads_do_not_pile_up_on_a_pipe() {
    let uri = format!("test://{}", "x".repeat(8_000));
    let server = Server::new("s", "1").resource(Resource::new(&uri, "long", async || "text"));
    let catalog = server.catalog();
    let mut pipe = Pipe::agreed(server, V2025_11_25, &json!({})).await;
    let watched = pipe.call(&request(1, "resources/subscribe", json!({ "uri": uri }))).await;
    assert_eq!(watched["result"], json!({}));
    for _ in 0..1_000 {
        catalog.resource_updated(&uri);
        tokio::task::yield_now().await;
    }
    pipe.send(&request(2, "ping", json!({}))).await;
    let mut told = 0;
    while pipe.receive().await["id"] != 2 {
        told += 1;
    }
    assert!((1..=200).contains(&told), "a pipe full, a mebibyte, and a few: {told}");
}
