//! Messages of old servers outside of calls: log messages reach the calls, and refused questions the log.

use std::sync::{Arc, Mutex};

use roundtrip::FormRequest;
use serde_json::{Value, json};

use super::asking::tool;
use super::server::{Old, empty, form};
use crate::logged::logged;

fn log(level: &str, data: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": level, "data": data } })
}

/// N2: log messages on the stream beside the calls reach the calls under way that asked for any, at the level they asked
/// for, though the client has no handlers.
#[tokio::test]
async fn log_messages_beside_the_calls_reach_the_calls() {
    let (client, _old) = Old::start(tool(|old, seen, sender| async move {
        let general = old.general.lock().expect("general").clone().expect("a stream beside the call");
        general.message(&log("debug", "details"));
        general.message(&log("warning", "nearly"));
        general.message(&log("error", &"x".repeat(1 << 20)));
        // Once this is answered, all that was before it has been read.
        general.message(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
        old.response(&json!("p")).await;
        sender.message(&seen.says("there"));
    }))
    .await;
    let logged = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&logged);
    let call = client.call_tool("work", ()).on_log(move |message| {
        seen.lock().expect("logged").push(message.data.to_value());
    });
    assert_eq!(call.await.expect("a result").text(), "there");
    assert_eq!(*logged.lock().expect("logged"), ["nearly"]);
}

/// A server without such a stream is called all the same.
#[tokio::test]
async fn a_server_without_a_stream_beside_the_calls_can_be_asked_for_log_messages() {
    let (client, old) = Old::start(|_, seen| (seen.http == "GET").then(|| empty(405))).await;
    let result = client.call_tool("work", ()).on_log(drop).await.expect("a result");
    assert_eq!(result.text(), "done");
    assert!(old.seen().iter().any(|seen| seen.http == "GET"));
}

/// L7: a question that the client refuses is in the log, with the reason and what to do about it.
#[test]
fn refused_questions_are_logged_with_the_reason() {
    let log = logged(async {
        let (client, _old) = Old::start(tool(|old, seen, sender| async move {
            sender.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
            old.response(&json!(1)).await;
            let url =
                json!({ "mode": "url", "message": "Go", "url": "https://x.example", "elicitationId": "e" });
            sender.message(
                &json!({ "jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": url }),
            );
            old.response(&json!(2)).await;
            let mut odd = form(3, "Who?");
            odd["params"]["requestedSchema"] = json!({ "type": "array" });
            sender.message(&odd);
            old.response(&json!(3)).await;
            sender.message(&seen.says("there"));
        }))
        .await;
        let client = client.on_form(async |form: FormRequest| form.decline());
        client.call_tool("ask", ()).await.expect("a result");
    });
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("refused a question")).collect();
    assert_eq!(refused.len(), 3, "{log}");
    for (line, why) in refused.iter().zip([
        "`on_roots`",
        "this client did not declare visits to web pages",
        "elicitation/create: ",
    ]) {
        assert!(line.starts_with("WARN") && line.contains(why), "{line}");
    }
}
