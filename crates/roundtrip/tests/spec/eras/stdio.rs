//! The handshake on a pipe, and what goes on in a session.

use roundtrip::{Handshake, Server, Tool};
use serde_json::{Value, json};

use super::tools::{Diary, server};
use crate::peers::{Pipe, V2025_11_25, everything, initialize, initialized, request, text, tool};
use crate::support::message;

/// L1: one pipe serves all revisions at once: the old ones after their handshake, the new one without any.
#[tokio::test]
async fn one_pipe_serves_both_eras_at_once() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", V2025_11_25] {
        let mut pipe = Pipe::agreed(server(&Diary::default()), version, &everything()).await;
        assert_eq!(text(&pipe.call(&tool(1, "number")).await), "42");
        let modern = pipe.call(&message(2, "tools/call", json!({ "name": "number" }))).await;
        assert_eq!((text(&modern), &modern["result"]["resultType"]), ("42", &json!("complete")));
        let asked = pipe.call(&message(3, "server/discover", json!({}))).await;
        assert_eq!(
            asked["result"]["supportedVersions"],
            json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
        );
    }
}

/// L1: what the two sides agree on: the revision the client wants, or our newest old one, and what there is.
#[tokio::test]
async fn the_handshake_says_what_there_is() {
    for (wanted, agreed) in [
        (V2025_11_25, V2025_11_25),
        ("2025-06-18", "2025-06-18"),
        ("1900-01-01", V2025_11_25),
        ("2026-07-28", V2025_11_25),
    ] {
        let mut pipe = Pipe::open(server(&Diary::default()).instructions("Ask away"));
        let answer = pipe.call(&initialize(wanted, &everything())).await;
        let result = &answer["result"];
        assert_eq!((&answer["id"], &result["protocolVersion"]), (&json!(0), &json!(agreed)));
        assert_eq!(result["serverInfo"], json!({ "name": "eras", "version": "1" }));
        assert_eq!(result["instructions"], "Ask away");
        assert_eq!(result["capabilities"]["tools"], json!({ "listChanged": true }));
        assert_eq!(result["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
        assert_eq!(result["capabilities"]["logging"], json!({}));
    }
}

/// L1: out of turn there are clear errors, and the pipe goes on.
#[tokio::test]
async fn what_comes_out_of_turn_is_refused() {
    let mut pipe = Pipe::open(server(&Diary::default()));
    let early = pipe.call(&tool(1, "number")).await;
    assert_eq!(early["error"]["code"], -32602, "{early}");
    assert!(early["error"]["message"].as_str().is_some_and(|told| told.contains("initialize")), "{early}");
    assert_eq!(pipe.call(&request(2, "ping", json!({}))).await["result"], json!({}));
    let broken = pipe.call(&request(3, "initialize", json!({ "protocolVersion": 5 }))).await;
    assert_eq!(broken["error"]["code"], -32602, "{broken}");
    assert_eq!(pipe.call(&initialize(V2025_11_25, &json!({}))).await["id"], 0);
    let again = pipe.call(&initialize(V2025_11_25, &json!({}))).await;
    assert_eq!(again["error"]["message"], "this session has been initialized already");
    for unknown in ["server/discover", "subscriptions/listen", "tasks/list", "no/such"] {
        assert_eq!(pipe.call(&request(4, unknown, json!({}))).await["error"]["code"], -32601, "{unknown}");
    }
    // Answers to nothing are passed over.
    for id in [json!(1), json!("x"), json!(-1)] {
        pipe.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} })).await;
    }
    assert_eq!(text(&pipe.call(&tool(5, "number")).await), "42");
}

/// L1: an author who wants none of it says so, and whoever tries is told what is spoken.
#[tokio::test]
async fn the_handshake_can_be_refused() {
    let mut pipe = Pipe::open(server(&Diary::default()).handshake(Handshake::refused()));
    let refused = pipe.call(&initialize(V2025_11_25, &json!({}))).await;
    assert!(
        refused["error"]["data"]["supported"].as_array().is_some_and(|all| all == &[json!("2026-07-28")]),
        "{refused}"
    );
}

/// L1: a session is told of changes, untagged: of lists, and of the resources it asks for, until it takes that back.
#[tokio::test]
async fn a_session_is_told_of_changes() {
    let server = server(&Diary::default());
    let catalog = server.catalog();
    let mut pipe = Pipe::agreed(server, V2025_11_25, &json!({})).await;
    let uri = json!({ "uri": "test://notes" });
    assert_eq!(pipe.call(&request(1, "resources/subscribe", uri.clone())).await["result"], json!({}));
    catalog.resource_updated("test://notes");
    let updated = pipe.receive().await;
    assert_eq!(
        updated,
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": uri })
    );
    catalog.add(Tool::new("another", async || "one")).expect("a new tool");
    let changed = pipe.receive().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert!(changed["params"].get("_meta").is_none(), "{changed}");
    assert_eq!(pipe.call(&request(2, "resources/unsubscribe", uri)).await["result"], json!({}));
    catalog.resource_updated("test://notes");
    assert_eq!(pipe.call(&request(3, "ping", json!({}))).await["id"], 3, "nothing came before it");
}

/// L1: a level of log messages holds for the whole session.
#[tokio::test]
async fn the_level_of_log_messages_is_set_for_a_session() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &json!({})).await;
    let logged = async |pipe: &mut Pipe, level: Option<&str>| {
        if let Some(level) = level {
            assert_eq!(
                pipe.call(&request(1, "logging/setLevel", json!({ "level": level }))).await["result"],
                json!({})
            );
        }
        let mut levels = Vec::new();
        let mut message = pipe.call(&tool(2, "chatty")).await;
        while message["method"] == "notifications/message" {
            levels.push(message["params"]["level"].as_str().expect("a level").to_owned());
            message = pipe.receive().await;
        }
        levels
    };
    assert_eq!(logged(&mut pipe, None).await, ["info", "error"]);
    assert_eq!(logged(&mut pipe, Some("error")).await, ["error"]);
    assert_eq!(logged(&mut pipe, Some("debug")).await, ["debug", "info", "error"]);
    let wrong = pipe.call(&request(3, "logging/setLevel", json!({ "level": "loud" }))).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

/// L1: many calls of one session run side by side, each with its own questions.
#[tokio::test]
async fn calls_of_one_session_do_not_mix() {
    let mut pipe = Pipe::open(Server::new("empty", "1"));
    assert_eq!(pipe.call(&initialize(V2025_11_25, &json!({}))).await["id"], 0);
    pipe.send(&initialized()).await;
    assert_eq!(pipe.call(&request(1, "tools/list", json!({}))).await["result"], json!({ "tools": [] }));

    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let mut asked: Vec<Value> = Vec::new();
    for id in 1..=20 {
        asked.push(pipe.call(&request(id, "prompts/get", json!({ "name": "asking" }))).await);
    }
    for (index, question) in asked.iter().enumerate().rev() {
        let done = pipe.call(&crate::peers::accept(question, json!({ "day": format!("day {index}") }))).await;
        assert_eq!(done["id"], index + 1);
        assert_eq!(done["result"]["messages"][0]["content"]["text"], format!("what happens on day {index}"));
    }
}

/// L1: 2025-03-26 has batches on a pipe too.
#[tokio::test]
async fn a_pipe_takes_batches_where_there_are_batches() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), "2025-03-26", &json!({})).await;
    pipe.send(&json!([request(1, "ping", json!({})), request(2, "ping", json!({}))])).await;
    assert_eq!((&pipe.receive().await["id"], &pipe.receive().await["id"]), (&json!(1), &json!(2)));
    assert_eq!(pipe.call(&json!([[request(3, "ping", json!({}))]])).await["error"]["code"], -32600);
    let mut newer = Pipe::agreed(server(&Diary::default()), V2025_11_25, &json!({})).await;
    assert_eq!(newer.call(&json!([request(1, "ping", json!({}))])).await["error"]["code"], -32600);
}
