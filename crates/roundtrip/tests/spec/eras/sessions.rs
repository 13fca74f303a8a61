//! Sessions over HTTP: whose they are, how long they last, and how many there may be.

use std::collections::HashSet;
use std::time::Duration;

use http::Method;
use roundtrip::{Handshake, Principal};
use serde_json::json;

use super::tools::{Diary, server};
use crate::peers::{V2025_11_25, Web, accept, everything, initialize, request, text, tool};

/// L8: a session has an id that nobody can guess, and whoever names none, or one that is not there, is told so.
#[tokio::test]
async fn a_session_is_found_by_its_unguessable_id() {
    let web = Web::new(server(&Diary::default()));
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let begun = web.post(&initialize(V2025_11_25, &json!({}))).await;
        let id = begun.header("mcp-session-id").expect("a session").to_owned();
        assert!(id.len() >= 22 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 100);
    let old = web.with("mcp-protocol-version", V2025_11_25);
    let mut nameless = old.post(&tool(1, "number")).await;
    assert_eq!(nameless.status, 400);
    let told = nameless.json().await["error"]["message"].as_str().expect("a message").to_owned();
    assert!(told.contains("initialize") && told.contains("2026-07-28"), "{told}");
    let mut guessed = old.with("mcp-session-id", "guessed").post(&tool(1, "number")).await;
    assert_eq!((guessed.status, &guessed.json().await["id"]), (404, &json!(1)));
    assert_eq!(old.with("mcp-session-id", "guessed").get().await.status, 404);
    assert_eq!(old.with("mcp-session-id", "guessed").delete().await.status, 404);
}

/// L8: a session is begun once, and speaks what it was begun with.
#[tokio::test]
async fn a_session_is_begun_once() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &json!({})).await;
    let again = client.post(&initialize(V2025_11_25, &json!({}))).await.json().await;
    assert_eq!(again["error"]["message"], "this session has been initialized already");
    for version in ["2026-01-01", "2024-11-05", "nonsense"] {
        let wrong = client.with("mcp-protocol-version", version).post(&tool(1, "number")).await;
        assert_eq!(wrong.status, 400, "{version}");
    }
    // Saying nothing is what clients of 2025-03-26 do.
    let unsaid = client.with("mcp-protocol-version", "").post(&tool(1, "number")).await.json().await;
    assert_eq!(text(&unsaid), "42");
}

/// L8: a session that is ended is gone, and so is everything that went on in it.
#[tokio::test]
async fn ending_a_session_ends_what_goes_on_in_it() {
    let diary = Diary::default();
    let client = Web::new(server(&diary)).session(V2025_11_25, &everything()).await;
    let mut call = client.post(&tool(1, "book")).await;
    call.message().await.expect("a question");
    let mut listening = client.get().await;
    listening.event().await.expect("an event");
    assert_eq!(client.delete().await.status, 204);
    let taken_back = call.message().await.expect("the question is taken back");
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert!(call.message().await.is_none() && listening.message().await.is_none());
    assert_eq!(diary.read(), ["run", "dropped"]);
    assert_eq!(client.post(&tool(2, "number")).await.status, 404);
    assert_eq!(client.delete().await.status, 404);
}

/// L8: a session that nobody uses expires, and a handler that waits in it ends; one that somebody reads from does not.
#[tokio::test(start_paused = true)]
async fn a_session_expires_when_nobody_is_there() {
    let diary = Diary::default();
    let settings =
        Handshake::sessions().idle_for(Duration::from_secs(120)).answer_within(Duration::from_secs(7200));
    let web = Web::new(server(&diary).handshake(settings));
    let (idle, listening, busy) = (
        web.session(V2025_11_25, &everything()).await,
        web.session(V2025_11_25, &everything()).await,
        web.session(V2025_11_25, &everything()).await,
    );
    let stream = listening.get().await;
    drop(idle.post(&tool(1, "book")).await);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(busy.post(&request(1, "ping", json!({}))).await.status, 200);
    }
    assert_eq!(diary.read(), ["run", "dropped"], "it ended by itself");
    assert_eq!(idle.post(&tool(2, "number")).await.status, 404);
    assert_eq!(listening.post(&tool(2, "number")).await.status, 200);
    assert_eq!(busy.post(&tool(2, "number")).await.status, 200);
    drop(stream);
    tokio::time::sleep(Duration::from_secs(121)).await;
    assert_eq!(listening.post(&tool(3, "number")).await.status, 404);
}

/// L8: a session that was begun and never used makes room sooner.
#[tokio::test(start_paused = true)]
async fn a_session_that_was_never_used_expires_sooner() {
    let web = Web::new(server(&Diary::default()).handshake(Handshake::sessions().max_sessions(1)));
    assert_eq!(web.post(&initialize(V2025_11_25, &json!({}))).await.status, 200);
    assert_eq!(web.post(&initialize(V2025_11_25, &json!({}))).await.status, 503);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(web.post(&initialize(V2025_11_25, &json!({}))).await.status, 200);
}

/// L8: there is an end to sessions: past it new ones are turned away, and those there are go on.
#[tokio::test]
async fn a_flood_of_sessions_is_turned_away() {
    // One caller has half of them, and a half.
    let web = Web::new(server(&Diary::default()).handshake(Handshake::sessions().max_sessions(5)));
    let first = web.session(V2025_11_25, &everything()).await;
    for _ in 0..2 {
        web.session(V2025_11_25, &json!({})).await;
    }
    for _ in 0..50 {
        let mut refused = web.post(&initialize(V2025_11_25, &json!({}))).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert!(
            refused.json().await["error"]["message"]
                .as_str()
                .is_some_and(|told| told.contains("too many sessions"))
        );
    }
    assert_eq!(text(&first.post(&tool(1, "number")).await.json().await), "42");
    first.delete().await;
    web.session(V2025_11_25, &json!({})).await;
}

/// L8: there is an end to what one session may have going at once; others do not notice.
#[tokio::test]
async fn a_flood_of_calls_is_turned_away() {
    let diary = Diary::default();
    let web = Web::new(server(&diary));
    let (flooding, other) =
        (web.session(V2025_11_25, &everything()).await, web.session(V2025_11_25, &json!({})).await);
    let mut streams = Vec::new();
    for id in 0..256 {
        streams.push(flooding.post(&tool(id, "book")).await);
    }
    assert_eq!(flooding.post(&tool(1000, "book")).await.status, 503);
    let mut twice = flooding.post(&tool(0, "book")).await;
    assert!(
        twice.json().await["error"]["message"].as_str().is_some_and(|told| told.contains("still running"))
    );
    assert_eq!(text(&other.post(&tool(1, "number")).await.json().await), "42");
    assert!(streams.iter().all(|stream| stream.status == 200));
    assert_eq!(diary.read().len(), 256, "what is turned away does not run at all");
}

/// L9: a session belongs to whoever began it: to anybody else it is not there.
#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let diary = Diary::default();
    let http = server(&diary).into_http().expect("a server").principal(|parts| {
        let name = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(name))
    });
    let web = Web::at(http);
    let ada = web.with("x-user", "ada").session(V2025_11_25, &everything()).await;
    let mut call = ada.post(&tool(1, "book")).await;
    let primed = call.event().await.expect("an event");
    let party = call.message().await.expect("a question");
    for other in ["eve", ""] {
        let other = ada.with("x-user", other);
        assert_eq!(other.post(&tool(2, "number")).await.status, 404);
        assert_eq!(other.post(&accept(&party, json!({ "people": 1 }))).await.status, 404);
        assert_eq!(other.with("last-event-id", &primed.id).get().await.status, 404);
        assert_eq!(other.delete().await.status, 404);
    }
    assert_eq!(diary.read(), ["run"]);
    assert_eq!(ada.post(&accept(&party, json!({ "people": 2 }))).await.status, 202);
    assert_eq!(call.message().await.expect("a question")["params"]["message"], "Which day?");
}

/// L9: an answer counts in the session that was asked, and in no other; one to nothing that was asked is refused.
#[tokio::test]
async fn an_answer_counts_in_its_own_session_alone() {
    let web = Web::new(server(&Diary::default()));
    let (ada, eve) =
        (web.session(V2025_11_25, &everything()).await, web.session(V2025_11_25, &everything()).await);
    let (mut adas, mut eves) = (ada.post(&tool(1, "book")).await, eve.post(&tool(1, "book")).await);
    let (asked, other) =
        (adas.message().await.expect("a question"), eves.message().await.expect("a question"));
    assert_eq!(eve.post(&accept(&asked, json!({ "people": 1 }))).await.status, 400);
    for id in [json!(0), json!("x"), json!(i64::MAX)] {
        let mut made_up = accept(&asked, json!({ "people": 1 }));
        made_up["id"] = id;
        assert_eq!(ada.post(&made_up).await.status, 400);
    }
    assert_eq!(ada.post(&accept(&asked, json!({ "people": 2 }))).await.status, 202);
    // Twice does no harm.
    assert_eq!(ada.post(&accept(&asked, json!({ "people": 3 }))).await.status, 202);
    let day = adas.message().await.expect("a question");
    ada.post(&accept(&day, json!({ "day": "Friday" }))).await;
    assert_eq!(text(&adas.message().await.expect("the answer")), "2 on Friday, round 1");
    assert_eq!(eve.post(&accept(&other, json!({ "people": 4 }))).await.status, 202);
}

/// L8: the gate in front of everything is in front of this too.
#[tokio::test]
async fn foreign_pages_get_no_session_and_no_stream() {
    let web = Web::new(server(&Diary::default()));
    let client = web.session(V2025_11_25, &everything()).await;
    let foreign = client.with("origin", "https://evil.example");
    assert_eq!(foreign.get().await.status, 403);
    assert_eq!(foreign.delete().await.status, 403);
    assert_eq!(foreign.post(&tool(1, "number")).await.status, 403);
    assert_eq!(
        web.with("origin", "https://evil.example").post(&initialize(V2025_11_25, &json!({}))).await.status,
        403
    );
    assert_eq!(client.send(Method::PUT, "").await.status, 405);
    assert_eq!(text(&client.post(&tool(1, "number")).await.json().await), "42");
}

/// L8: a call that is cancelled is heard of no more, and there is nothing to come back for.
#[tokio::test]
async fn a_cancelled_call_leaves_nothing_to_come_back_for() {
    let diary = Diary::default();
    let client = Web::new(server(&diary)).session(V2025_11_25, &everything()).await;
    let mut call = client.post(&tool("call", "book")).await;
    let primed = call.event().await.expect("an event");
    call.message().await.expect("a question");
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "call" } });
    assert_eq!(client.post(&cancelled).await.status, 202);
    while let Some(message) = call.message().await {
        assert_eq!(
            message["method"], "notifications/cancelled",
            "its question is taken back, and that is all"
        );
    }
    assert_eq!(diary.read(), ["run", "dropped"]);
    assert_eq!(client.with("last-event-id", &primed.id).get().await.status, 400);
    // The id can be used again.
    let mut again = client.post(&tool("call", "book")).await;
    assert_eq!(again.message().await.expect("a question")["method"], "elicitation/create");
}

/// L8: what has been read to its end is not come back for: a client would do so for ever.
#[tokio::test]
async fn a_stream_that_was_read_to_its_end_is_over() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &everything()).await;
    let mut call = client.post(&tool(1, "chatty")).await;
    let mut last = call.event().await.expect("an event");
    let first = last.clone();
    while let Some(event) = call.event().await {
        last = event;
    }
    assert_eq!(text(&last.json()), "said");
    assert_eq!(client.with("last-event-id", &last.id).get().await.status, 400);
    let mut again = client.with("last-event-id", &first.id).get().await;
    assert_eq!(again.event().await.expect("what came after it").json()["method"], "notifications/message");
}

/// L8: a session that has ended is not begun anew by its name.
#[tokio::test]
async fn a_session_that_has_ended_stays_so() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &json!({})).await;
    client.delete().await;
    assert_eq!(client.post(&initialize(V2025_11_25, &json!({}))).await.status, 404);
    let anew = client.with("mcp-session-id", "").post(&initialize(V2025_11_25, &json!({}))).await;
    assert_eq!(anew.status, 200);
}

/// L8: whoever says that it is modern has no session, whatever it names; and a revision that is none is refused.
#[tokio::test]
async fn the_revision_decides_what_a_session_header_means() {
    let client = Web::new(server(&Diary::default())).session(V2025_11_25, &json!({})).await;
    let modern = client.with("mcp-protocol-version", "2026-07-28");
    assert_eq!((modern.get().await.status, modern.delete().await.status), (405, 405));
    assert_eq!(modern.post(&crate::peers::initialized()).await.status, 202);
    let missing = modern.with("mcp-method", "tools/call").with("mcp-name", "number");
    assert_eq!(missing.post(&tool(1, "number")).await.json().await["error"]["code"], -32602);
    let nonsense = client.with("mcp-protocol-version", "1900-01-01");
    assert_eq!((nonsense.get().await.status, nonsense.delete().await.status), (400, 400));
    assert_eq!(client.delete().await.status, 204);
}

/// L8: a session keeps little of what a client says of itself, and of what it wants to watch.
#[tokio::test]
async fn a_session_keeps_little() {
    let web = Web::new(server(&Diary::default()));
    let large = json!({ "experimental": { "x": { "y": "z".repeat(20_000) } } });
    let refused = web.post(&initialize(V2025_11_25, &large)).await.json().await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let client = web.session(V2025_11_25, &everything()).await;
    let long = json!({ "uri": format!("test://{}", "x".repeat(10_000)) });
    let refused = client.post(&request(1, "resources/subscribe", long)).await.json().await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // Calls weigh what their parameters weigh.
    let heavy =
        |id: i64| request(id, "tools/call", json!({ "name": "book", "_meta": { "x": "y".repeat(3 << 20) } }));
    let mut open = Vec::new();
    for id in 1..=2 {
        open.push(client.post(&heavy(id)).await);
    }
    assert_eq!(client.post(&heavy(3)).await.status, 503);
    assert!(open.iter().all(|call| call.status == 200));
    // Members without number cost no more than they weigh.
    let many: serde_json::Map<String, serde_json::Value> =
        (0..200_000).map(|n| (n.to_string(), json!(1))).collect();
    assert_eq!(client.post(&request(4, "tools/list", many.into())).await.status, 200);
}

/// L8: the sessions of old clients leave half of the server's places to others, and those of one client half of these.
#[tokio::test]
async fn old_clients_leave_room_for_others() {
    let mut limits = roundtrip::server::Limits::default();
    limits.concurrent_calls = 8;
    let client = Web::new(server(&Diary::default()).limits(limits)).session(V2025_11_25, &everything()).await;
    let (one, two) = (client.post(&tool(1, "book")).await, client.post(&tool(2, "book")).await);
    assert_eq!((one.status, two.status), (200, 200));
    assert_eq!(client.post(&tool(3, "book")).await.status, 503);
}

/// L6, Z3: where there is no room to keep anything, whoever is there is told everything and answered all the same.
#[tokio::test]
async fn without_room_to_keep_messages_those_who_read_miss_nothing() {
    let server = server(&Diary::default()).handshake(Handshake::sessions().session_bytes(20_000));
    let catalog = server.catalog();
    let client = Web::new(server).session(V2025_11_25, &everything()).await;
    let mut listening = client.get().await;
    listening.event().await.expect("an event");
    let watched: Vec<String> = (0..5).map(|number| format!("test://notes/{number}")).collect();
    for uri in &watched {
        assert_eq!(client.post(&request(1, "resources/subscribe", json!({ "uri": uri }))).await.status, 200);
        catalog.resource_updated(uri);
    }
    for uri in &watched {
        assert_eq!(listening.message().await.expect("a change")["params"]["uri"], **uri);
    }
    let mut call = client.post(&tool(1, "book")).await;
    let primed = call.event().await.expect("an event");
    for content in [json!({ "people": 2 }), json!({ "day": "Monday" })] {
        let question = call.message().await.expect("a question");
        assert_eq!(client.post(&accept(&question, content)).await.status, 202);
    }
    assert_eq!(text(&call.message().await.expect("an answer")), "2 on Monday, round 1");
    let again = client.with("last-event-id", &primed.id).get().await;
    assert_eq!(again.status, 400, "but there is no coming back for it");
}

/// Z3: calls that would have sessions keep more than they may are told to come back later.
#[tokio::test]
async fn a_call_that_sessions_have_no_room_for_is_turned_away() {
    let settings = Handshake::sessions().session_bytes(20_000);
    let client =
        Web::new(server(&Diary::default()).handshake(settings)).session(V2025_11_25, &everything()).await;
    let large = request(1, "tools/call", json!({ "name": "book", "_meta": { "x": "y".repeat(8_000) } }));
    let mut refused = client.post(&large).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.json().await["error"]["code"], 503);
    assert_eq!(client.post(&tool(2, "number")).await.status, 200);
}

/// Z3, L4: without sessions, large calls are weighed all the same.
#[tokio::test]
async fn large_calls_without_a_session_keep_no_more_than_the_budget() {
    let mut limits = roundtrip::server::Limits::default();
    limits.call_bytes = 400_000;
    let settings = Handshake::stateless();
    let waiting = roundtrip::Tool::new("wait", std::future::pending::<String>);
    let web = Web::new(server(&Diary::default()).tool(waiting).handshake(settings).limits(limits));
    let large =
        |id: i64| request(id, "tools/call", json!({ "name": "wait", "_meta": { "x": "y".repeat(90_000) } }));
    let begin = |id: i64| {
        let (web, message) = (web.clone(), large(id));
        tokio::spawn(async move { web.post(&message).await.json().await })
    };
    let (one, two, three) = (begin(1), begin(2), begin(3));
    assert_eq!(three.await.expect("an answer")["error"]["code"], 503);
    assert!(!one.is_finished() && !two.is_finished());
    one.abort();
    two.abort();
}
