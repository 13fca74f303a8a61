//! Calls of the handshake eras over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use roundtrip::{Handshake, Tool};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::tools::{Diary, server};
use crate::peers::{V2025_11_25, Web, accept, everything, initialize, request, text, tool};
use crate::support::{headers, message};

/// The tool `number`, called in the way of 2026-07-28.
async fn modern_call(web: &Web) -> Value {
    let message = message(1, "tools/call", json!({ "name": "number" }));
    let mut modern = web.clone();
    modern.headers = vec![
        ("mcp-protocol-version", "2026-07-28".to_owned()),
        ("mcp-method", "tools/call".to_owned()),
        ("mcp-name", "number".to_owned()),
    ];
    assert_eq!(headers(&message).len(), 5, "these are all there are");
    modern.post(&message).await.json().await
}

/// L1: one endpoint serves all revisions at once.
#[tokio::test]
async fn one_endpoint_serves_both_eras_at_once() {
    let web = Web::new(server(&Diary::default()));
    for version in ["2025-03-26", "2025-06-18", V2025_11_25] {
        let old = web.session(version, &everything()).await;
        let (mut first, modern) = (old.post(&tool(1, "number")).await, modern_call(&web).await);
        assert_eq!((text(&first.json().await), text(&modern)), ("42", "42"));
        assert_eq!(modern["result"]["resultType"], "complete");
    }
    // There was no such transport in 2024-11-05: our newest old revision is offered instead.
    let mut agreed = web.post(&initialize("2024-11-05", &json!({}))).await;
    assert_eq!(agreed.json().await["result"]["protocolVersion"], V2025_11_25);
}

/// L2: questions go out on the call's own stream, and answers come in by POST.
#[tokio::test]
async fn questions_go_out_on_the_stream_of_their_call() {
    let diary = Diary::default();
    let client = Web::new(server(&diary)).session(V2025_11_25, &everything()).await;
    let mut stream = client.post(&tool(7, "book")).await;
    let party = stream.message().await.expect("a question");
    assert_eq!(party["method"], "elicitation/create");
    let taken = client.post(&accept(&party, json!({ "people": 2 }))).await;
    assert_eq!((taken.status, taken.header("content-type")), (202, None));
    let day = stream.message().await.expect("a question");
    assert_eq!(client.post(&accept(&day, json!({ "day": "Friday" }))).await.status, 202);
    let done = stream.message().await.expect("the answer");
    assert_eq!((text(&done), &done["id"]), ("2 on Friday, round 1", &json!(7)));
    assert!(stream.message().await.is_none(), "the stream ends with its answer");
    assert_eq!(diary.read(), ["run", "dropped"]);
}

/// L4: without a session nothing can be asked, and the error says what it takes; a web page is named in the error that
/// 2025-11-25 has for it. Everything else works.
#[tokio::test]
async fn without_a_session_asking_is_an_error_that_says_what_it_takes() {
    let diary = Diary::default();
    let web = Web::new(server(&diary).handshake(Handshake::stateless()));
    let mut agreed = web.post(&initialize(V2025_11_25, &everything())).await;
    assert!(agreed.header("mcp-session-id").is_none());
    assert_eq!(agreed.json().await["result"]["protocolVersion"], V2025_11_25);
    let client = web.with("mcp-protocol-version", V2025_11_25);
    assert_eq!(client.post(&crate::peers::initialized()).await.status, 202);
    assert_eq!(text(&client.post(&tool(1, "number")).await.json().await), "42");
    for asking in ["book", "together", "by_hand"] {
        let refused = client.post(&tool(2, asking)).await.json().await;
        let told = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("an error: {refused}"));
        assert!(told.contains("2026-07-28") && told.contains("session"), "{told}");
    }
    let page = client.post(&tool(3, "page")).await.json().await;
    assert_eq!(page["error"]["code"], -32042, "{page}");
    let elicitation = &page["error"]["data"]["elicitations"][0];
    assert_eq!(
        (&elicitation["mode"], &elicitation["url"]),
        (&json!("url"), &json!("https://example.com/sign-in"))
    );
    assert!(elicitation["elicitationId"].is_string());
    assert_eq!(text(&client.post(&tool(4, "handing_off")).await.json().await), "handed off twice");
    // Whatever session somebody names: there are none.
    assert_eq!(
        text(&client.with("mcp-session-id", "made-up").post(&tool(5, "number")).await.json().await),
        "42"
    );
    assert_eq!((client.get().await.status, client.delete().await.status), (405, 405));
    let watch =
        client.post(&request(6, "resources/subscribe", json!({ "uri": "test://notes" }))).await.json().await;
    assert_eq!(watch["error"]["code"], -32600, "{watch}");
}

/// L1: an author who wants none of it says so; whoever tries is told what is spoken.
#[tokio::test]
async fn the_handshake_can_be_refused_over_http() {
    let web = Web::new(server(&Diary::default()).handshake(Handshake::refused()));
    let mut refused = web.post(&initialize(V2025_11_25, &json!({}))).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json().await["error"]["data"]["supported"], json!(["2026-07-28"]));
    let mut modern = web.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "server/discover");
    modern.headers.retain(|(name, _)| name.starts_with("mcp-"));
    let spoken = modern.post(&message(1, "server/discover", json!({}))).await.json().await;
    assert_eq!(spoken["result"]["supportedVersions"], json!(["2026-07-28"]), "{spoken}");
    assert_eq!((web.get().await.status, web.delete().await.status), (405, 405));
    let called = web.with("mcp-protocol-version", V2025_11_25).post(&tool(1, "number")).await;
    assert_eq!(called.status, 400);
    assert_eq!(text(&modern_call(&web).await), "42");
}

/// L8: a stream that broke off is gone on with, from the event the client has seen last, on a connection of its own.
#[tokio::test]
async fn a_stream_that_broke_off_is_resumed() {
    let diary = Diary::default();
    let client = Web::new(server(&diary)).session(V2025_11_25, &everything()).await;
    let mut stream = client.post(&tool(1, "book")).await;
    let primed = stream.event().await.expect("an event");
    assert!(primed.data.is_empty() && primed.retry.is_some(), "{primed:?}");
    let asked = stream.event().await.expect("a question");
    drop(stream);
    assert_eq!(diary.read(), ["run"], "hanging up is not cancelling");

    // Once more from the beginning, and once from after the question.
    let mut again = client.with("last-event-id", &primed.id).get().await;
    assert_eq!(again.event().await.expect("the question again").data, asked.data);
    let mut rest = client.with("last-event-id", &asked.id).get().await;
    assert!(again.event().await.is_none(), "whoever came last reads");
    client.post(&accept(&asked.json(), json!({ "people": 2 }))).await;
    let day = rest.event().await.expect("a question");
    client.post(&accept(&day.json(), json!({ "day": "Friday" }))).await;
    let done = rest.event().await.expect("the answer");
    assert_eq!(text(&done.json()), "2 on Friday, round 1");
    assert!(rest.event().await.is_none());

    // Even after its end.
    let mut late = client.with("last-event-id", &day.id).get().await;
    assert_eq!(late.event().await.expect("the answer again").data, done.data);
    assert!(late.event().await.is_none());
    for nowhere in ["99-1", "1", "x-y", "-1-1", ""] {
        let event = if nowhere.is_empty() { " " } else { nowhere };
        assert_eq!(client.with("last-event-id", event).get().await.status, 400, "{nowhere}");
    }
}

/// L8: a handler may let its connection go, and the client comes back for the rest.
#[tokio::test]
async fn a_handler_may_let_its_connection_go() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    let mut stream = client.post(&tool(1, "slow")).await;
    let primed = stream.event().await.expect("an event");
    let day = stream.message().await.expect("what was said before");
    assert!(stream.event().await.is_none(), "let go");
    let mut rest = client.with("last-event-id", &primed.id).get().await;
    assert_eq!(rest.message().await, Some(day.clone()));
    client.post(&accept(&day, json!({ "day": "Friday" }))).await;
    assert_eq!(text(&rest.message().await.expect("the answer")), "Friday");
}

/// L8: what is said outside of any call goes out on one stream, and is not lost between two connections.
#[tokio::test]
async fn changes_go_out_on_the_stream_of_the_session() {
    let server = server(&Diary::default());
    let catalog = server.catalog();
    let client = Web::new(server).session(V2025_11_25, &json!({})).await;
    let mut stream = client.get().await;
    stream.event().await.expect("an event to come back with");
    let subscribed = client.post(&request(1, "resources/subscribe", json!({ "uri": "test://notes" }))).await;
    assert_eq!(subscribed.status, 200);
    catalog.resource_updated("test://notes");
    let updated = stream.event().await.expect("a change");
    assert_eq!(updated.json()["params"], json!({ "uri": "test://notes" }));
    drop(stream);
    catalog.add(Tool::new("another", async || "one")).expect("a new tool");
    let mut later = client.with("last-event-id", &updated.id).get().await;
    assert_eq!(later.event().await.expect("a change").json()["method"], "notifications/tools/list_changed");
    // A second stream takes the place of the first, which stays open: nothing is told twice, and nothing is lost.
    let mut second = client.get().await;
    second.event().await.expect("an event to come back with");
    let silent = tokio::spawn(async move { later.event().await.is_none() });
    tokio::task::yield_now().await;
    catalog.resource_updated("test://notes");
    assert_eq!(second.message().await.expect("a change")["method"], "notifications/resources/updated");
    assert!(!silent.is_finished());
    client.delete().await;
    assert!(second.event().await.is_none());
}

/// L8: hints are left out for a client that does not read; what it has to know is kept.
#[tokio::test]
async fn a_client_that_does_not_read_costs_little() {
    let done = Arc::new(Notify::new());
    let said = Arc::clone(&done);
    let chatty = Tool::new("noisy", move |log: roundtrip::Log, ask: roundtrip::Ask| {
        let said = Arc::clone(&said);
        async move {
            for line in 0..5_000 {
                log.info(line);
                if line % 50 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            tokio::task::yield_now().await;
            said.notify_one();
            ask.roots("roots").await.map(|roots| format!("{} roots", roots.len()))
        }
    });
    let client = Web::new(server(&Diary::default()).tool(chatty)).session(V2025_11_25, &everything()).await;
    drop(client.post(&tool(1, "noisy")).await);
    done.notified().await;
    let mut read = client.with("last-event-id", "1-0").get().await;
    let mut hints = 0;
    let asked = loop {
        let message = read.message().await.expect("a message");
        if message["method"] == "roots/list" {
            break message;
        }
        hints += 1;
    };
    assert_eq!(hints, 256);
    client.post(&crate::peers::answer(&asked, json!({ "roots": [] }))).await;
    assert_eq!(text(&read.message().await.expect("the answer")), "0 roots");
}

/// L8: 2025-03-26 has batches, and no other revision.
#[tokio::test]
async fn batches_are_taken_where_there_are_batches() {
    let web = Web::new(server(&Diary::default()));
    let client = web.session("2025-03-26", &everything()).await;
    let batch = json!([
        tool(1, "number"),
        crate::peers::initialized(),
        request(2, "ping", json!({})),
        request(3, "prompts/get", json!({ "name": "asking" })),
    ]);
    let mut answers = client.post(&batch).await;
    let mut ids = Vec::new();
    while let Some(message) = answers.message().await {
        if message["method"] == "elicitation/create" {
            client.post(&json!([accept(&message, json!({ "day": "Friday" }))])).await;
        } else {
            ids.push(message["id"].as_i64().expect("an id"));
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(client.post(&json!([crate::peers::initialized()])).await.status, 202);
    assert_eq!(client.post(&json!([])).await.status, 400);
    assert_eq!(client.send(Method::POST, "[1, 2").await.status, 400);
    let newer = web.session("2025-06-18", &json!({})).await;
    assert_eq!(newer.post(&batch).await.status, 400);
    assert_eq!(client.with("accept", "application/json").post(&batch).await.status, 406);
}

/// L8: a batch is looked at before anything of it runs.
#[tokio::test]
async fn a_batch_with_a_flaw_does_nothing() {
    let diary = Diary::default();
    let client = Web::new(server(&diary)).session("2025-06-18", &everything()).await;
    assert_eq!(client.post(&json!([tool(1, "book"), { "not": "a message" }])).await.status, 400);
    let client = Web::new(server(&diary)).session("2025-03-26", &everything()).await;
    assert_eq!(client.post(&json!([tool(1, "book"), { "not": "a message" }])).await.status, 400);
    assert_eq!(diary.read(), Vec::<String>::new());
}

/// L8: a client gets the kind of answer it takes; one that takes no stream cannot be asked, and is told so.
#[tokio::test]
async fn an_old_client_gets_the_kind_of_answer_it_takes() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    let json_only = client.with("accept", "application/json");
    let refused = json_only.post(&tool(1, "book")).await.json().await;
    assert!(
        refused["error"]["message"].as_str().is_some_and(|told| told.contains("text/event-stream")),
        "{refused}"
    );
    assert_eq!(text(&json_only.post(&tool(2, "chatty")).await.json().await), "said");
    let stream_only = client.with("accept", "text/event-stream");
    let mut stream = stream_only.post(&tool(3, "number")).await;
    assert_eq!(text(&stream.message().await.expect("the answer")), "42");
    assert!(stream.message().await.is_none());
    assert_eq!(json_only.get().await.status, 406);
}

/// L8: an answer that takes long turns into a stream, on which there is a sign of life.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_turns_into_a_stream() {
    let slow = Tool::new("sleepy", async || {
        tokio::time::sleep(Duration::from_secs(40)).await;
        "slept"
    });
    let client = Web::new(server(&Diary::default()).tool(slow)).session(V2025_11_25, &json!({})).await;
    let mut stream = client.post(&tool(1, "sleepy")).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert!(stream.sign_of_life().await, "a comment, before the answer");
    assert_eq!(text(&stream.message().await.expect("the answer")), "slept");
}

/// H2: the headers that mirror a message are not required in a session; where they are there, they say what the message
/// says, or somebody who trusts them (a gateway, a firewall) lets something else pass.
#[tokio::test]
async fn headers_that_contradict_an_old_message_are_refused() {
    let diary = Diary::default();
    let web = Web::new(server(&diary));
    let client = web.session("2025-03-26", &everything()).await;
    let lists = request(1, "tools/list", json!({}));
    let notes = request(1, "resources/read", json!({ "uri": "test://notes" }));
    let batch = json!([tool(1, "number"), tool(2, "book")]);
    let gone = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    for (name, value, message) in [
        ("mcp-method", "tools/list", &tool(1, "book")),
        ("mcp-method", "Tools/Call", &tool(1, "book")),
        ("mcp-name", "number", &tool(1, "book")),
        ("mcp-name", "=?base64?bnVtYmVy?=", &tool(1, "book")),
        ("mcp-name", "test://other", &notes),
        ("mcp-method", "tools/call", &lists),
        ("mcp-method", "notifications/initialized", &gone),
        ("mcp-name", "number", &batch),
        ("mcp-method", "tools/list", &initialize("2025-03-26", &json!({}))),
    ] {
        let mut refused = client.with(name, value).post(message).await;
        assert_eq!(refused.status, 400, "{name}: {value}");
        let refused = refused.json().await;
        assert_eq!(refused["error"]["code"], -32020, "{name}: {value}: {refused}");
    }
    assert_eq!(diary.read(), Vec::<String>::new(), "nothing of it ran");
    for (name, value, message) in [
        ("mcp-method", "tools/call", tool(1, "number")),
        ("mcp-name", "number", tool(1, "number")),
        ("mcp-name", "=?base64?bnVtYmVy?=", tool(1, "number")),
        ("mcp-name", "whatever", lists),
        ("mcp-method", "resources/read", notes),
    ] {
        let mut taken = client.with(name, value).post(&message).await;
        assert!(taken.json().await.get("result").is_some(), "{name}: {value}");
    }
}
