//! Sessions with sealed ids: which instance serves what, and which ids are refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use roundtrip::seal::Sealer;
use roundtrip::{Caller, Handshake, Keyring, Principal, Server, Tool};
use serde_json::{Value, json};

use super::tools::{Diary, server};
use crate::fleet::Slow;
use crate::logged::logged;
use crate::peers::{Answered, V2025_11_25, Web, accept, everything, initialize, request, text, tool};
use crate::seal::ring;

const SESSION: &str = "mcp-session-id";
const EVENT: &str = "last-event-id";

/// Returns the client as a handler sees it.
async fn who(caller: Caller) -> String {
    let info = caller.info().expect("a client");
    format!("{} {} {:?}", info.name, info.version, info.title)
}

fn fleet_server(diary: &Diary) -> Server {
    server(diary).tool(Tool::new("who", who))
}

/// An instance of the service, for callers that name themselves.
fn instance(server: Server) -> Web {
    let http = server.into_http().expect("a server");
    Web::at(http.principal(|parts| parts.headers.get("x-user")?.to_str().ok().map(Principal::new)))
}

/// Two instances that share a ring.
fn two() -> (Web, Web) {
    let new = || instance(fleet_server(&Diary::default()).seal(ring(&[1])));
    (new(), new())
}

async fn message(answered: &mut Answered) -> String {
    answered.json().await["error"]["message"].as_str().expect("an error").to_owned()
}

fn cancelled(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// L8, S12: with a shared ring every instance serves plain calls of a session, also one that was started afterwards, with what
/// was negotiated.
#[tokio::test]
async fn any_instance_serves_plain_calls_of_a_session() {
    let (one, two) = two();
    let client = one.session(V2025_11_25, &everything()).await;
    let id = client.header(SESSION);
    assert!(id.len() <= 1024 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
    let later = instance(fleet_server(&Diary::default()).seal(ring(&[2, 1])));
    for web in [&two, &one, &later] {
        let there = web.acting_as(&client);
        assert_eq!(there.post(&crate::peers::initialized()).await.status, 202);
        assert_eq!(text(&there.post(&tool(1, "number")).await.json().await), "42");
        assert_eq!(text(&there.post(&tool(1, "who")).await.json().await), "old 1 None");
        assert_eq!(there.post(&request(2, "ping", json!({}))).await.json().await["result"], json!({}));
        let listed = there.post(&request(3, "tools/list", json!({}))).await.json().await;
        assert!(listed["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 10), "{listed}");
        // Answered by a stream, whose first event says how to resume it.
        let mut chatty = there.post(&tool(4, "chatty")).await;
        assert!(chatty.event().await.is_some_and(|primed| primed.retry.is_some()));
        let again = there.post(&initialize(V2025_11_25, &json!({}))).await.json().await;
        assert_eq!(again["error"]["message"], "this session has been initialized already");
    }
}

/// L8: a client can be asked what it declared, at every instance, and the handler waits there for the answer.
#[tokio::test]
async fn an_instance_without_state_asks_what_the_client_declared() {
    let (one, two) = two();
    let client = two.acting_as(&one.session(V2025_11_25, &everything()).await);
    let mut call = client.post(&tool(1, "book")).await;
    for content in [json!({ "people": 2 }), json!({ "day": "Monday" })] {
        let question = call.message().await.expect("a question");
        assert_eq!(client.post(&accept(&question, content)).await.status, 202);
    }
    assert_eq!(text(&call.message().await.expect("an answer")), "2 on Monday, round 1");
    let page = client.post(&tool(2, "page")).await.message().await.expect("a question");
    assert_eq!(page["params"]["mode"], "url");
    let silent = two.acting_as(&one.session(V2025_11_25, &json!({})).await);
    let refused = silent.post(&tool(1, "book")).await.json().await;
    assert!(refused["result"]["isError"] == true || refused["error"].is_object(), "{refused}");
}

/// L8: a question belongs to the instance that asked it. An answer, or an event to resume from, is refused elsewhere with 400 and
/// the remedy, a cancellation is ignored there, and the call is not disturbed.
#[tokio::test]
async fn what_needs_its_process_says_so_elsewhere() {
    let (one, two) = two();
    let here = one.session(V2025_11_25, &everything()).await;
    let there = two.acting_as(&here);
    let mut call = here.post(&tool(1, "book")).await;
    let primed = call.event().await.expect("an event");
    let question = call.message().await.expect("a question");
    // The other instance has streams of its own for this session.
    let mut other = there.post(&tool(1, "book")).await;
    let other_primed = other.event().await.expect("an event");
    assert_ne!(primed.id, other_primed.id);
    let unknown = instance(fleet_server(&Diary::default()).seal(ring(&[1]))).acting_as(&here);
    for wrong in [&there, &unknown] {
        let mut refused = wrong.post(&accept(&question, json!({ "people": 3 }))).await;
        assert_eq!(refused.status, 400);
        let told = message(&mut refused).await;
        assert!(told.contains("affinity") && told.contains("instance"), "{told}");
        let mut refused = wrong.with(EVENT, &primed.id).get().await;
        assert_eq!(refused.status, 400);
        let told = message(&mut refused).await;
        assert!(told.contains("affinity") && told.contains("instance"), "{told}");
    }
    assert_eq!(unknown.post(&cancelled(1)).await.status, 202);
    for content in [json!({ "people": 2 }), json!({ "day": "Monday" })] {
        let question = match &content["people"] {
            Value::Null => call.message().await.expect("a question"),
            _ => question.clone(),
        };
        assert_eq!(here.post(&accept(&question, content)).await.status, 202);
    }
    assert_eq!(text(&call.message().await.expect("an answer")), "2 on Monday, round 1");
    // At the right instance a stream is resumed and a call cancelled, as ever.
    drop(other);
    let mut resumed = there.with(EVENT, &other_primed.id).get().await;
    assert_eq!(resumed.message().await.expect("the question")["method"], "elicitation/create");
    assert_eq!(there.post(&cancelled(1)).await.status, 202);
    while let Some(message) = resumed.message().await {
        assert_eq!(message["method"], "notifications/cancelled");
    }
}

/// L8: `resources/subscribe` and `logging/setLevel` count at the instance that has the session's stream, and say so elsewhere.
#[tokio::test]
async fn subscriptions_and_levels_count_where_the_stream_is() {
    let new = || fleet_server(&Diary::default()).seal(ring(&[1]));
    let server = new();
    let catalog = server.catalog();
    let (one, two) = (instance(server), instance(new()));
    let here = one.session(V2025_11_25, &json!({})).await;
    let there = two.acting_as(&here);
    let watch = |method: &str| request(1, method, json!({ "uri": "test://notes" }));
    let level = request(2, "logging/setLevel", json!({ "level": "error" }));
    let mut stream = here.get().await;
    stream.event().await.expect("an event");
    for message in [&watch("resources/subscribe"), &watch("resources/unsubscribe"), &level] {
        assert_eq!(here.post(message).await.json().await["result"], json!({}));
        let refused = there.post(message).await.json().await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        let told = refused["error"]["message"].as_str().expect("a message");
        assert!(told.contains("affinity") && told.contains("instance"), "{told}");
    }
    assert_eq!(here.post(&watch("resources/subscribe")).await.status, 200);
    catalog.resource_updated("test://notes");
    assert_eq!(stream.message().await.expect("a change")["params"]["uri"], "test://notes");
    // The level holds for calls at the instance that has the stream.
    let levels = async |client: &Web| {
        let (mut call, mut levels) = (client.post(&tool(3, "chatty")).await, Vec::new());
        while let Some(message) = call.message().await {
            levels.extend(message["params"]["level"].as_str().map(str::to_owned));
        }
        levels
    };
    assert_eq!(levels(&here).await, ["error"]);
    assert_eq!(levels(&there).await, ["info", "error"]);
}

/// L8, L9, S11: an id that is forged, cut short, too long, or of another ring, audience or principal is 404 for every method, and
/// looks like an id that never was. The session it was made from is not disturbed.
#[tokio::test]
async fn an_id_that_does_not_open_is_not_there() {
    let (one, two) = two();
    let ada = one.with("x-user", "ada").session(V2025_11_25, &json!({})).await;
    let id = ada.header(SESSION).to_owned();
    let never = message(&mut two.acting_as(&ada).with(SESSION, "never").post(&tool(1, "number")).await).await;
    let foreign = |server: Server| instance(server.seal(ring(&[1]))).acting_as(&ada);
    let other_ring = instance(fleet_server(&Diary::default()).seal(ring(&[2]))).acting_as(&ada);
    let forged: String = id.chars().map(|one| if one == 'A' { 'B' } else { one }).collect();
    let there = two.acting_as(&ada);
    let mut wrong = vec![
        foreign(fleet_server(&Diary::default()).audience("others")),
        foreign(Server::new("others", "1")),
        other_ring,
        there.with("x-user", "eve"),
        there.with("x-user", ""),
        there.with(SESSION, &format!("{id}A")),
        there.with(SESSION, &format!("{id}=")),
        there.with(SESSION, &id[..id.len() - 1]),
        there.with(SESSION, &id[..40]),
        there.with(SESSION, &id[..2]),
        there.with(SESSION, &id.repeat(100 * 1024 / id.len() + 1)),
        there.with(SESSION, &"x".repeat(100 * 1024)),
    ];
    if forged != id {
        wrong.push(there.with(SESSION, &forged));
    }
    for place in (0..id.len()).step_by(7) {
        let other = if id.as_bytes()[place] == b'x' { "y" } else { "x" };
        wrong.push(there.with(SESSION, &format!("{}{other}{}", &id[..place], &id[place + 1..])));
    }
    for (case, client) in wrong.iter().enumerate() {
        let mut refused = client.post(&tool(1, "number")).await;
        assert_eq!(refused.status, 404, "{case}");
        assert_eq!(message(&mut refused).await, never, "{case}");
        assert_eq!(client.post(&initialize(V2025_11_25, &json!({}))).await.status, 404, "{case}");
        assert_eq!(client.post(&cancelled(1)).await.status, 404, "{case}");
        assert_eq!(client.get().await.status, 404, "{case}");
        assert_eq!(client.with(EVENT, "1-1").get().await.status, 404, "{case}");
        assert_eq!(client.delete().await.status, 404, "{case}");
    }
    assert_eq!(text(&there.post(&tool(1, "number")).await.json().await), "42");
    assert_eq!(text(&ada.post(&tool(1, "number")).await.json().await), "42");
}

/// L8, S3: a state of a round is not a session's id, and an id is not a state, though one ring seals both.
#[tokio::test]
async fn a_request_state_is_not_a_session_id() {
    let (one, _) = two();
    let client = one.session(V2025_11_25, &everything()).await;
    let meta = |more: Value| {
        let mut params = json!({ "name": "book", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        } });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        request(1, "tools/call", params)
    };
    let modern = one.with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    let modern = modern.with("mcp-name", "book");
    let asked = modern.post(&meta(json!({}))).await.json().await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    assert_eq!(client.with(SESSION, &state).post(&tool(1, "number")).await.status, 404);
    let answers = json!({ "requestState": client.header(SESSION), "inputResponses": {} });
    let refused = modern.post(&meta(answers)).await.json().await;
    assert_eq!(refused["error"]["message"], "Invalid or expired requestState", "{refused}");
}

/// L8: no instance can end a sealed session for the others. `DELETE` frees what this one keeps and says 405; the id stays good.
#[tokio::test]
async fn ending_a_sealed_session_frees_what_is_here() {
    let diary = Diary::default();
    let one = instance(fleet_server(&diary).seal(ring(&[1])));
    let client = one.session(V2025_11_25, &everything()).await;
    let other = one.session(V2025_11_25, &everything()).await;
    let mut call = client.post(&tool(1, "book")).await;
    call.message().await.expect("a question");
    let mut listening = client.get().await;
    listening.event().await.expect("an event");
    let mut untouched = other.post(&tool(1, "book")).await;
    untouched.message().await.expect("a question");
    let mut refused = client.delete().await;
    assert_eq!(refused.status, 405);
    let told = message(&mut refused).await;
    assert!(told.contains("sealed"), "{told}");
    assert_eq!(call.message().await.expect("it is taken back")["method"], "notifications/cancelled");
    assert!(call.message().await.is_none() && listening.message().await.is_none());
    assert_eq!(diary.read(), ["run", "run", "dropped"]);
    assert_eq!(text(&client.post(&tool(2, "number")).await.json().await), "42");
    assert_eq!(client.delete().await.status, 405);
    let (_, two) = two();
    assert_eq!(two.acting_as(&client).delete().await.status, 405);
}

/// L8: without a shared ring, and where the client's name does not fit, an id is served by its process alone.
#[tokio::test]
async fn an_id_that_cannot_be_sealed_is_served_by_its_process() {
    let named = |name: &str| {
        let info = json!({ "name": name, "version": "1" });
        let params =
            json!({ "protocolVersion": V2025_11_25, "capabilities": everything(), "clientInfo": info });
        request(0, "initialize", params)
    };
    let new = || fleet_server(&Diary::default());
    let random = || Keyring::random().expect("a key");
    let codec = || Sealer::with_codec(Slow(Arc::new(AtomicBool::new(false))));
    let cases = [
        (instance(new().seal(ring(&[1]))), instance(new().seal(ring(&[1]))), "n".repeat(65)),
        (instance(new().seal(random())), instance(new().seal(random())), "old".to_owned()),
        (instance(new().seal(codec())), instance(new().seal(codec())), "old".to_owned()),
        (instance(new()), instance(new()), "old".to_owned()),
    ];
    for (here, there, name) in cases {
        let begun = here.post(&named(&name)).await;
        let id = begun.header(SESSION).expect("a session").to_owned();
        let client = here.with(SESSION, &id).with("mcp-protocol-version", V2025_11_25);
        assert_eq!(there.acting_as(&client).post(&tool(1, "number")).await.status, 404, "{name}");
        assert_eq!(text(&client.post(&tool(1, "number")).await.json().await), "42", "{name}");
        assert_eq!(text(&client.post(&tool(1, "who")).await.json().await), format!("{name} 1 None"));
        assert_eq!(client.delete().await.status, 204, "{name}");
        assert_eq!(client.delete().await.status, 404, "{name}");
    }
    let (one, two) = two();
    let longest = "\u{1f600}".repeat(64);
    let begun = one.post(&named(&longest)).await;
    let id = begun.header(SESSION).expect("a session").to_owned();
    assert!(id.len() <= 1024, "{}", id.len());
    let client = two.with(SESSION, &id);
    assert_eq!(text(&client.post(&tool(1, "who")).await.json().await), format!("{longest} 1 None"));
}

/// L8, Z3: sealed sessions take a place where their stream is, and plain calls none: past the limit these are served still.
#[tokio::test]
async fn plain_calls_of_sealed_sessions_take_no_place() {
    let settings = Handshake::sessions().max_sessions(1);
    let web = instance(fleet_server(&Diary::default()).seal(ring(&[1])).handshake(settings));
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(web.session(V2025_11_25, &everything()).await);
    }
    let stream = clients[0].get().await;
    assert_eq!(stream.status, 200);
    for client in &clients {
        assert_eq!(text(&client.post(&tool(1, "number")).await.json().await), "42");
        let mut call = client.post(&tool(2, "book")).await;
        for content in [json!({ "people": 2 }), json!({ "day": "Monday" })] {
            let question = call.message().await.expect("a question");
            assert_eq!(client.post(&accept(&question, content)).await.status, 202);
        }
        assert_eq!(text(&call.message().await.expect("an answer")), "2 on Monday, round 1");
    }
    let mut refused = clients[1].get().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(message(&mut refused).await.contains("too many sessions"));
    assert_eq!(clients[0].delete().await.status, 405);
    assert_eq!(clients[1].get().await.status, 200);
}

/// L8: a server whose keys are shared and whose handlers ask says once at its start that questions to clients of the handshake
/// eras need affinity; one that has no sessions, or asks nothing, does not.
#[test]
fn a_fleet_that_asks_old_clients_is_told_of_affinity() {
    let told = |server: Server| {
        let log = logged(async {
            server.into_http().expect("a server");
        });
        log.lines().filter(|line| line.contains("WARN") && line.contains("affinity")).count()
    };
    let asking = || server(&Diary::default());
    assert_eq!(told(asking().seal(ring(&[1]))), 1);
    assert_eq!(told(asking()), 0);
    assert_eq!(told(asking().seal(ring(&[1])).handshake(Handshake::stateless())), 0);
    assert_eq!(told(asking().seal(ring(&[1])).handshake(Handshake::refused())), 0);
    assert_eq!(told(Server::new("s", "1").tool(Tool::new("t", async || "done")).seal(ring(&[1]))), 0);
}
