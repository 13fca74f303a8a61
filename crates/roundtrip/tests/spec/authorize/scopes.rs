//! Scopes: for the server, for offers, and by a handler from its arguments.

use roundtrip::server::Group;
use roundtrip::wire::ErrorObject;
use roundtrip::{
    Args, Authorize, Caller, Progress, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, lacking, server, text};
#[cfg(feature = "legacy")]
use crate::peers::{V2025_11_25, Web};
use crate::support::{Running, message, meta};

#[derive(Deserialize, JsonSchema)]
struct Folder {
    folder: String,
}

async fn write(Args(Folder { folder }): Args<Folder>, caller: Caller) -> Result<&'static str, ToolError> {
    caller.need_scopes([format!("files:write:{folder}")])?;
    Ok("written")
}

async fn late(progress: Progress, caller: Caller) -> Result<&'static str, ErrorObject> {
    progress.report((1, 2));
    tokio::task::yield_now().await;
    caller.need_scopes(["late"])?;
    Ok("done")
}

async fn nothing() -> &'static str {
    "nothing"
}

fn files() -> Server {
    let group = Group::new()
        .scopes(["files"])
        .prompt(Prompt::new("summary", nothing).scopes(["files:read"]))
        .resource(Resource::new("app://file", "file", nothing).scopes(["files:read"]))
        .template(ResourceTemplate::new("app://file/{x}", "files", nothing));
    server()
        .tool(Tool::new("write", write).scopes(["files:write"]))
        .tool(Tool::new("late", late))
        .group(group)
}

/// O30, O31: a token without the scopes of the server is 403 with all of them, before the body is read.
#[tokio::test]
async fn the_servers_scopes_are_needed_by_every_request() {
    let desk = Desk::guarded(files(), |guard| guard.scopes(["base", "more"])).await;
    for method in ["tools/list", "server/discover"] {
        let answer = desk.request(&desk.token("alice", "more"), method, json!({})).await;
        assert_eq!(lacking(&answer), (403, Some("base more".to_owned())));
        assert_eq!(answer.json()["error"]["data"]["reason"], "insufficient_scope");
        assert_eq!(desk.request(&desk.token("alice", "base more"), method, json!({})).await.status, 200);
    }
}

/// O8, O9, O30, O31, O33: offers need scopes of their own and of their groups, besides the server's: a call without them is 403 with
/// the id of its request, and names all that it needs at once.
#[tokio::test]
async fn offers_need_scopes_of_their_own() {
    let desk = Desk::guarded(files(), |guard| guard.scopes(["base"])).await;
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "summary" }, "argument": { "name": "x", "value": "" } });
    let cases = [
        ("tools/call", json!({ "name": "write", "arguments": { "folder": "a" } }), "base files:write"),
        ("prompts/get", json!({ "name": "summary" }), "base files files:read"),
        ("resources/read", json!({ "uri": "app://file" }), "base files files:read"),
        ("resources/read", json!({ "uri": "app://file/1" }), "base files"),
    ];
    for (method, params, needed) in cases {
        let answer = desk.request(&desk.token("alice", "base"), method, params.clone()).await;
        assert_eq!(lacking(&answer), (403, Some(needed.to_owned())), "{method}");
        assert_eq!(answer.json()["id"], 1);
        assert_eq!(answer.header("access-control-expose-headers"), Some("WWW-Authenticate"));
        let wider = desk.token("alice", &format!("{needed} files:write:a"));
        assert_eq!(desk.request(&wider, method, params).await.status, 200, "{method}");
    }
    let unknown = desk.request(&desk.token("alice", "base"), "completion/complete", complete).await;
    assert_eq!(unknown.refusal().1, -32601, "there are no completers");
    assert_eq!(desk.call(&desk.token("alice", "base"), "whoami", json!({})).await.status, 200);
}

/// O31, O33: a handler demands scopes from its arguments: 403 with all that the call needs.
#[tokio::test]
async fn a_handler_demands_scopes() {
    let desk = Desk::guarded(files(), |guard| guard.scopes(["base"])).await;
    let narrow = desk.token("alice", "base files:write files:write:b");
    let answer = desk.call(&narrow, "write", json!({ "folder": "a" })).await;
    assert_eq!(lacking(&answer), (403, Some("base files:write files:write:a".to_owned())));
    assert_eq!(text(&desk.call(&narrow, "write", json!({ "folder": "b" })).await), "written");
    let odd = desk.call(&narrow, "write", json!({ "folder": "a \"b" })).await;
    assert_eq!(odd.refusal(), (200, -32602), "no scope has a space: {odd:?}");
}

/// O33: a client that takes nothing but streams gets the 403, too; a stream that has begun ends with the JSON-RPC error.
#[tokio::test]
async fn what_was_streamed_stays() {
    let desk = Desk::open(files()).await;
    let token = desk.token("alice", "");
    let mut meta = meta();
    meta["progressToken"] = json!(1);
    let answer = desk.request(&token, "tools/call", json!({ "name": "late", "_meta": meta })).await;
    assert_eq!(answer.status, 200);
    let last = answer.events().pop().expect("an answer");
    assert_eq!(last["error"]["data"], json!({ "reason": "insufficient_scope", "scope": "late" }));
    let call = message(1, "tools/call", json!({ "name": "late", "arguments": {} }));
    let mut headers = crate::support::changed(&call, "accept", Some("text/event-stream"));
    headers.push(super::bearer(&token));
    let answer = desk.running.connect().await.post(&headers, call.to_string().as_bytes()).await;
    assert_eq!(lacking(&answer), (403, Some("late".to_owned())));
}

/// O32: a scope that implies others counts for them, at once and over steps.
#[tokio::test]
async fn implied_scopes_count() {
    let desk = Desk::guarded(files(), |guard| {
        guard
            .scopes(["base"])
            .implies("admin", ["files:admin", "base"])
            .implies("files:admin", ["files:write", "files:write:a"])
    })
    .await;
    let admin = desk.token("alice", "admin");
    assert_eq!(text(&desk.call(&admin, "write", json!({ "folder": "a" })).await), "written");
    let answer = desk.call(&admin, "write", json!({ "folder": "b" })).await;
    assert_eq!(lacking(&answer).0, 403);
    let files = desk.token("alice", "files:admin");
    assert_eq!(lacking(&desk.call(&files, "whoami", json!({})).await), (403, Some("base".to_owned())));
}

fn names(answer: &Value, member: &str) -> Vec<String> {
    let all = answer[member].as_array().unwrap_or_else(|| panic!("a list: {answer}"));
    all.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
}

/// O33: lists show all, or what the caller may call; a call of the rest is 403 either way.
#[tokio::test]
async fn lists_can_show_what_the_caller_may_call() {
    let (all, permitted) =
        (Desk::open(files()).await, Desk::guarded(files(), Authorize::list_permitted).await);
    let lists = [
        ("tools/list", "tools", "files:write", vec!["whoami", "write", "late"], vec!["whoami", "late"]),
        ("prompts/list", "prompts", "files files:read", vec!["summary"], vec![]),
        ("resources/list", "resources", "files files:read", vec!["file"], vec![]),
        ("resources/templates/list", "resourceTemplates", "files", vec!["files"], vec![]),
    ];
    for (method, member, scopes, every, few) in lists {
        let shown = async |desk: &Desk, scopes: &str| {
            names(&desk.request(&desk.token("alice", scopes), method, json!({})).await.result(), member)
        };
        assert_eq!(shown(&all, "").await, every, "{method}");
        assert_eq!(shown(&permitted, scopes).await, every, "{method}");
        assert_eq!(shown(&permitted, "").await, few, "{method}");
    }
    let hidden = permitted.call(&permitted.token("alice", ""), "write", json!({ "folder": "a" })).await;
    assert_eq!(lacking(&hidden), (403, Some("files:write".to_owned())));
}

/// O33: a rule can show an offer by scopes: for others it does not exist.
#[tokio::test]
async fn rules_see_scopes() {
    let hidden = Tool::new("hidden", nothing).visible_to(|viewer| viewer.has_scopes(["files"]));
    let desk = Desk::open(server().tool(hidden)).await;
    assert_eq!(desk.call(&desk.token("alice", "files"), "hidden", json!({})).await.status, 200);
    let answer = desk.call(&desk.token("alice", ""), "hidden", json!({})).await;
    assert_eq!(answer.refusal(), (200, -32602));
}

/// O33: a caller that may not read a resource is not told of its changes.
#[tokio::test]
async fn changes_are_told_to_callers_that_may_read() {
    let server = files().resource(Resource::new("app://free", "free", nothing));
    let catalog = server.catalog();
    let desk = Desk::open(server).await;
    let watched = json!({ "notifications": { "resourceSubscriptions": ["app://file", "app://free"] } });
    let listen = message(1, "subscriptions/listen", watched);
    let mut streams = Vec::new();
    for scopes in ["", "files files:read"] {
        let mut headers = crate::support::headers(&listen);
        headers.push(super::bearer(&desk.token("alice", scopes)));
        let mut connection = desk.running.connect().await;
        connection.send("POST", &headers, listen.to_string().as_bytes()).await;
        assert_eq!(connection.head().await.status, 200);
        connection.event().await.expect("an acknowledgement");
        streams.push(connection);
    }
    let [stranger, reader] = &mut streams[..] else { panic!("two streams") };
    catalog.resource_updated("app://file");
    assert_eq!(reader.event().await.expect("a change")["params"]["uri"], "app://file");
    catalog.resource_updated("app://free");
    for stream in [stranger, reader] {
        assert_eq!(stream.event().await.expect("a change")["params"]["uri"], "app://free");
    }
}

/// O33: in a session of an earlier revision, too, a caller that may not read a resource is not told of its changes.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn sessions_are_told_of_what_they_may_read() {
    let issuer = super::issuer();
    let server = files().resource(Resource::new("app://free", "free", nothing));
    let catalog = server.catalog();
    let web = Web::at(super::guarded(server, Authorize::testing(super::RESOURCE, &issuer)));
    let mut streams = Vec::new();
    for scopes in [&[][..], &["files", "files:read"]] {
        let token = format!("Bearer {}", issuer.token("alice").scopes(scopes).sign());
        let session = web.with("authorization", &token).session(V2025_11_25, &json!({})).await;
        for uri in ["app://file", "app://free"] {
            let subscribe = crate::peers::request(1, "resources/subscribe", json!({ "uri": uri }));
            assert_eq!(session.post(&subscribe).await.json().await["result"], json!({}));
        }
        streams.push(session.get().await);
    }
    catalog.resource_updated("app://file");
    let told = streams[1].message().await.expect("a change");
    assert_eq!(told["params"]["uri"], "app://file");
    catalog.resource_updated("app://free");
    for stream in &mut streams {
        assert_eq!(stream.message().await.expect("a change")["params"]["uri"], "app://free");
    }
}

/// O33: over HTTP without a guard no caller has scopes: an offer that needs some fails closed.
#[tokio::test]
async fn without_a_guard_scopes_are_not_granted() {
    let running = Running::start(files()).await;
    let answer = running.call("tools/call", json!({ "name": "write", "arguments": { "folder": "a" } })).await;
    assert_eq!(answer.refusal().1, -32603, "{answer:?}");
    assert_eq!(running.call("tools/call", json!({ "name": "whoami" })).await.status, 200);
}

/// O1, O30, O33: in a session of an earlier revision a lack of scopes is 403 with a challenge, too.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn sessions_are_told_of_scopes() {
    let issuer = super::issuer();
    let guard = Authorize::testing(super::RESOURCE, &issuer).scopes(["base"]);
    let web = Web::at(super::guarded(files(), guard));
    let token = |scopes: &[&str]| format!("Bearer {}", issuer.token("alice").scopes(scopes).sign());
    let narrow = web.with("authorization", &token(&["base"])).session(V2025_11_25, &json!({})).await;
    let call =
        crate::peers::request(1, "tools/call", json!({ "name": "write", "arguments": { "folder": "a" } }));
    for (scopes, needed) in
        [(&["base"][..], "base files:write"), (&["base", "files:write"], "base files:write files:write:a")]
    {
        let mut answer = narrow.with("authorization", &token(scopes)).post(&call).await;
        assert_eq!(answer.status, 403);
        let challenge = answer.header("www-authenticate").expect("a challenge").to_owned();
        assert!(challenge.contains(&format!("scope=\"{needed}\"")), "{challenge}");
        assert_eq!(answer.json().await["id"], 1);
    }
    let wide = narrow.with("authorization", &token(&["base", "files:write", "files:write:a"]));
    assert_eq!(crate::peers::text(&wide.post(&call).await.json().await), "written");
}
