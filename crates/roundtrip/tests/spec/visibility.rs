//! Offers that not every caller sees: lists, calls, completions and subscriptions are as if they were not there.

use std::future::Ready;
use std::time::Duration;

use roundtrip::http::Http;
use roundtrip::server::{Endpoint, Event, Group, InFlight, Listed, Outcome, Peer, Viewer};
use roundtrip::wire::{ErrorObject, Message};
use roundtrip::{Args, Cache, Principal, Prompt, Resource, ResourceTemplate, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[cfg(feature = "legacy")]
use crate::peers::{self, Pipe};
use crate::support::{Running, headers, message, messages_of};

async fn nothing() -> &'static str {
    ""
}

fn is_ada(viewer: &Viewer<'_>) -> bool {
    viewer.principal().is_some_and(|who| who.as_str() == "ada")
}

fn by(name: &str) -> Peer {
    Peer { principal: Some(Principal::new(name)), ..Peer::default() }
}

async fn send(endpoint: &Endpoint, peer: &Peer, method: &str, params: Value) -> Value {
    let messages = messages_of(endpoint, peer, &message(1, method, params)).await;
    messages.into_iter().last().expect("a response")
}

/// The names in a list, and the cursor of the next page.
async fn listed(
    endpoint: &Endpoint,
    peer: &Peer,
    method: &str,
    cursor: Option<&Value>,
) -> (Vec<String>, Value) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    let answer = send(endpoint, peer, method, params).await;
    let result = &answer["result"];
    let member = ["tools", "prompts", "resources", "resourceTemplates"]
        .into_iter()
        .find(|member| result.get(*member).is_some())
        .unwrap_or_else(|| panic!("a list: {answer}"));
    let names = result[member].as_array().expect("a list").iter();
    (
        names.map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect(),
        result["nextCursor"].clone(),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    #[expect(dead_code, reason = "it only has to be there")]
    who: String,
}

/// One offer of each kind for all, and one for Ada alone, on its own or by its group.
fn half_hidden() -> Server {
    half(
        Group::new()
            .visible_to(is_ada)
            .tool(Tool::new("hidden", nothing))
            .prompt(hidden_prompt())
            .resource(Resource::new("app://hidden", "hidden", nothing)),
    )
    .template(ResourceTemplate::new("app://hidden/{x}", "hidden", nothing).visible_to(is_ada))
}

/// The same server without anything for Ada.
fn half(group: Group) -> Server {
    Server::new("s", "1")
        .tool(Tool::new("open", nothing))
        .prompt(Prompt::new("open", async |Args(Who { .. })| "").complete("who", async || Vec::new()))
        .resource(Resource::new("app://open", "open", nothing))
        .template(ResourceTemplate::new("app://open/{x}", "open", nothing))
        .group(group)
}

fn hidden_prompt() -> Prompt {
    Prompt::new("hidden", async |Args(Who { .. })| "").complete("who", async || vec!["secret".to_owned()])
}

/// N3: each list shows a caller what the caller may see.
#[tokio::test]
async fn lists_are_filtered_by_caller() {
    let endpoint = half_hidden().build().expect("a server");
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(listed(&endpoint, &by("ada"), method, None).await.0, ["open", "hidden"], "{method}");
        for other in [by("eve"), Peer::default()] {
            assert_eq!(listed(&endpoint, &other, method, None).await.0, ["open"], "{method}");
        }
    }
}

fn requests_for_hidden() -> Vec<(&'static str, Value)> {
    let complete = |reference: Value| json!({ "ref": reference, "argument": { "name": "who", "value": "" } });
    vec![
        ("tools/call", json!({ "name": "hidden" })),
        ("prompts/get", json!({ "name": "hidden", "arguments": { "who": "me" } })),
        ("resources/read", json!({ "uri": "app://hidden" })),
        ("resources/read", json!({ "uri": "app://hidden/7" })),
        ("completion/complete", complete(json!({ "type": "ref/prompt", "name": "hidden" }))),
        ("completion/complete", complete(json!({ "type": "ref/resource", "uri": "app://hidden/{x}" }))),
        ("completion/complete", complete(json!({ "type": "ref/resource", "uri": "app://hidden" }))),
        ("tools/list", json!({ "cursor": "dG9vbHM6aGlkZGVu" })),
    ]
}

/// Z3: a call of what a caller does not see gets the very answer of a server that does not have it; none of its hooks runs.
#[tokio::test]
async fn what_is_hidden_is_unknown() {
    let guarded = Tool::new("hidden", nothing)
        .visible_to(is_ada)
        .around(|_, _| -> Ready<Outcome> { panic!("a hook tells that there is something") });
    let (hiding, without) = (half_hidden().build().expect("ok"), half(Group::new()).build().expect("ok"));
    for (method, params) in requests_for_hidden() {
        let answer = send(&hiding, &by("eve"), method, params.clone()).await;
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        assert_eq!(answer, send(&without, &by("eve"), method, params.clone()).await, "{method}");
        let answer = send(&hiding, &by("ada"), method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
    }
    let hooked = half(Group::new().tool(guarded)).build().expect("ok");
    let (method, params) = requests_for_hidden().swap_remove(0);
    let told = send(&hooked, &by("eve"), method, params.clone()).await;
    assert_eq!(told, send(&without, &by("eve"), method, params).await);
}

const WATCHED: [&str; 5] = ["app://hidden", "app://hidden/7", "app://later", "app://nothing", "app://open"];

/// A subscription to the resources, and its acknowledgement.
async fn watch(endpoint: &Endpoint, peer: &Peer) -> (InFlight, Value) {
    let filter = json!({ "notifications": { "resourceSubscriptions": WATCHED } });
    let text = message(1, "subscriptions/listen", filter).to_string();
    let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("{text}") };
    let decoded = endpoint.decode(&request).expect("a request");
    let mut call = endpoint.begin(request.id, &decoded, peer);
    let Event::Notification(acknowledged) = call.event().await else { panic!("no acknowledgement") };
    (call, serde_json::from_slice(&acknowledged).expect("JSON"))
}

/// The resources that an ended subscription has yet to tell of.
async fn told(mut call: InFlight) -> Vec<String> {
    let mut uris = Vec::new();
    while let Event::Notification(bytes) = call.event().await {
        let told: Value = serde_json::from_slice(&bytes).expect("JSON");
        uris.push(told["params"]["uri"].as_str().expect("a URI").to_owned());
    }
    uris
}

/// N1: a subscription to a resource that the caller does not see is one to a resource that is not there: acknowledged as any,
/// and told nothing, also if it is added later. A rule that panics tells nothing either.
#[tokio::test]
async fn what_is_hidden_is_not_watched() {
    let careless = Resource::new("app://nothing", "careless", nothing).visible_to(|viewer| {
        assert!(is_ada(viewer), "boom");
        true
    });
    let (hiding, without) = (half_hidden().build().expect("ok"), half(Group::new()).build().expect("ok"));
    let ((ada, _), (eve, acknowledged)) =
        (watch(&hiding, &by("ada")).await, watch(&hiding, &by("eve")).await);
    assert_eq!(acknowledged, watch(&without, &by("eve")).await.1);
    let catalog = hiding.catalog().clone();
    let uses = catalog.clone();
    let later = Resource::new("app://later", "later", nothing).visible_to(move |viewer| {
        uses.resource_updated("app://unwatched");
        uses.remove::<Tool>("open");
        is_ada(viewer)
    });
    catalog.add(later).expect("a resource");
    catalog.add(careless).expect("a resource");
    WATCHED.iter().for_each(|uri| catalog.resource_updated(uri));
    hiding.close_subscriptions();
    assert_eq!(told(ada).await, WATCHED);
    assert_eq!(told(eve).await, ["app://open"]);
}

/// N1: what is behind a hidden resource, a template that the caller sees, is watched.
#[tokio::test]
async fn what_can_be_read_is_watched() {
    let server = Server::new("s", "1")
        .resource(Resource::new("app://later", "later", nothing).visible_to(is_ada))
        .resource(Resource::new("app://open", "open", nothing).visible_to(is_ada))
        .template(ResourceTemplate::new("app://{+any}", "any", nothing).visible_to(|_| true));
    let endpoint = server.build().expect("a server");
    let (eve, _) = watch(&endpoint, &by("eve")).await;
    WATCHED.iter().for_each(|uri| endpoint.catalog().resource_updated(uri));
    endpoint.close_subscriptions();
    let uris = told(eve).await;
    for uri in WATCHED {
        let read = send(&endpoint, &by("eve"), "resources/read", json!({ "uri": uri })).await;
        assert_eq!(read.get("result").is_some(), uris.iter().any(|told| told == uri), "{uri}: {read}");
    }
    assert!(uris.iter().any(|uri| uri == "app://open"), "{uris:?}");
}

/// A group can be added while the server runs, with its rules and hooks; one that does not fit leaves nothing behind.
#[tokio::test]
async fn a_group_is_added_whole() {
    let endpoint = half(Group::new()).build().expect("a server");
    let tools = |name: &'static str| {
        let refuses = |_, _| std::future::ready::<Outcome>(Err(ErrorObject::new(401, "sign in first")));
        Group::new()
            .visible_to(is_ada)
            .around(refuses)
            .resource(Resource::new("app://group", "group", nothing))
            .tool(Tool::new("first", nothing))
            .tool(Tool::new(name, nothing))
    };
    let wrong = endpoint.catalog().add_group(tools("open")).expect_err("the name is taken");
    assert!(wrong.to_string().contains("open"), "{wrong}");
    assert_eq!(listed(&endpoint, &by("ada"), "tools/list", None).await.0, ["open"]);
    assert_eq!(listed(&endpoint, &by("ada"), "resources/list", None).await.0, ["open"]);
    endpoint.catalog().add_group(tools("second")).expect("a group");
    assert_eq!(listed(&endpoint, &by("ada"), "tools/list", None).await.0, ["open", "first", "second"]);
    assert_eq!(listed(&endpoint, &by("eve"), "tools/list", None).await.0, ["open"]);
    let refused = send(&endpoint, &by("ada"), "tools/call", json!({ "name": "first" })).await;
    assert_eq!(refused["error"]["code"], 401, "{refused}");
}

/// N3: pages and cursors count what the caller sees; a cursor to anything else is none.
#[tokio::test]
async fn pages_of_a_filtered_list_are_whole() {
    let server = (0..9).fold(Server::new("s", "1").page_size(2), |server, number| {
        let tool = Tool::new(format!("tool_{number}"), nothing);
        server.tool(if number % 3 == 1 { tool.visible_to(is_ada) } else { tool })
    });
    let endpoint = server.build().expect("a server");
    let pages = async |peer: &Peer| {
        let (mut pages, mut cursors) = (Vec::new(), Vec::<Value>::new());
        loop {
            let (page, next) = listed(&endpoint, peer, "tools/list", cursors.last()).await;
            pages.push(page.join(" "));
            if next.is_null() {
                return (pages, cursors);
            }
            cursors.push(next);
        }
    };
    let (eves, cursors) = pages(&by("eve")).await;
    assert_eq!(eves, ["tool_0 tool_2", "tool_3 tool_5", "tool_6 tool_8"]);
    let (adas, _) = pages(&by("ada")).await;
    assert_eq!(adas, ["tool_0 tool_1", "tool_2 tool_3", "tool_4 tool_5", "tool_6 tool_7", "tool_8"]);
    // A cursor outlives changes elsewhere.
    assert!(endpoint.catalog().remove::<Tool>("tool_0"));
    assert_eq!(listed(&endpoint, &by("eve"), "tools/list", cursors.first()).await.0, ["tool_3", "tool_5"]);
    for number in [1, 4, 7] {
        assert!(endpoint.catalog().remove::<Tool>(&format!("tool_{number}")));
    }
    assert_eq!(pages(&by("eve")).await.0, ["tool_2 tool_3", "tool_5 tool_6", "tool_8"]);
}

/// N3: a list that depends on the caller is private whatever hints it has, and so are contents that only some may read; the
/// others keep their hints.
#[tokio::test]
async fn what_depends_on_the_caller_is_cached_privately() {
    let public = Cache::public(Duration::from_secs(60));
    let server = Server::new("s", "1")
        .cache(Listed::Tools, public)
        .cache(Listed::Prompts, public)
        .tool(Tool::new("hidden", nothing).visible_to(is_ada))
        .prompt(Prompt::new("open", nothing))
        .resource(Resource::new("app://hidden", "hidden", nothing).cache(public).visible_to(is_ada))
        .resource(Resource::new("app://open", "open", nothing).cache(public))
        .template(ResourceTemplate::new("app://at/{x}", "at", nothing).cache(public).visible_to(is_ada));
    let endpoint = server.build().expect("a server");
    for (method, params, scope) in [
        ("tools/list", json!({}), "private"),
        ("prompts/list", json!({}), "public"),
        ("resources/read", json!({ "uri": "app://hidden" }), "private"),
        ("resources/read", json!({ "uri": "app://at/7" }), "private"),
        ("resources/read", json!({ "uri": "app://open" }), "public"),
    ] {
        let answer = send(&endpoint, &by("ada"), method, params).await;
        let told = (&answer["result"]["cacheScope"], &answer["result"]["ttlMs"]);
        assert_eq!(told, (&json!(scope), &json!(60_000)), "{method}: {answer}");
    }
    assert!(endpoint.catalog().remove::<Tool>("hidden"));
    let answer = send(&endpoint, &by("eve"), "tools/list", json!({})).await;
    assert_eq!(answer["result"]["cacheScope"], "public", "no rule is left");
}

/// A resource that is hidden makes room for the next that fits: templates in their order.
#[tokio::test]
async fn the_next_that_fits_is_read() {
    let server = Server::new("s", "1")
        .resource(Resource::new("app://x", "x", async || "resource").visible_to(is_ada))
        .template(ResourceTemplate::new("app://{a}", "a", async || "first").visible_to(is_ada))
        .template(ResourceTemplate::new("app://{b}", "b", async || "second"));
    let endpoint = server.build().expect("a server");
    let read = async |peer: &Peer, uri: &str| {
        send(&endpoint, peer, "resources/read", json!({ "uri": uri })).await["result"]["contents"][0]["text"]
            .clone()
    };
    assert_eq!(read(&by("ada"), "app://x").await, "resource");
    assert_eq!(read(&by("ada"), "app://y").await, "first");
    assert_eq!(read(&by("eve"), "app://x").await, "second");
    assert_eq!(read(&by("eve"), "app://y").await, "second");
}

/// Z1: a rule that panics shows nothing, and costs the request alone. A rule may use the catalog.
#[tokio::test]
async fn rules_are_code_like_any_other() {
    let server = Server::new("s", "1");
    let catalog = server.catalog();
    let uses = Tool::new("uses", nothing).visible_to(move |_| !catalog.remove::<Tool>("another"));
    let server = server.tool(uses).tool(Tool::new("another", nothing));
    let endpoint = server.build().expect("a server");
    assert_eq!(listed(&endpoint, &by("ada"), "tools/list", None).await.0, ["another"]);
    assert_eq!(listed(&endpoint, &by("ada"), "tools/list", None).await.0, ["uses"]);

    let careless = Tool::new("careless", nothing).visible_to(|viewer| {
        assert!(viewer.principal().is_some(), "boom");
        true
    });
    let server = Server::new("s", "1").tool(careless).tool(Tool::new("fine", nothing));
    let running = Running::start(server).await;
    let mut connection = running.connect().await;
    assert_eq!(connection.request("tools/list", json!({})).await.refusal().1, -32603);
    assert_eq!(connection.request("tools/call", json!({ "name": "careless" })).await.refusal().1, -32603);
    assert_eq!(connection.request("tools/call", json!({ "name": "fine" })).await.status, 200);
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    #[expect(dead_code, reason = "its header matters")]
    region: String,
}

/// H3: headers that mirror arguments are checked for callers who see the tool, and tell nothing to others.
#[tokio::test]
async fn headers_do_not_tell_of_a_hidden_tool() {
    let query = Tool::new("query", async |Args(Query { .. })| "").visible_to(is_ada);
    let http: Http = Server::new("s", "1").tool(query).into_http().expect("a server");
    let who = |parts: &http::request::Parts| {
        parts.headers.get("x-user").and_then(|who| who.to_str().ok()).map(Principal::new)
    };
    let running = Running::start_http(http.principal(who)).await;
    let request = message(1, "tools/call", json!({ "name": "query", "arguments": { "region": "eu" } }));
    for (user, told) in [("ada", "Mcp-Param-Region"), ("eve", "unknown tool: query")] {
        let mut headers = headers(&request);
        headers.push(("X-User".to_owned(), user.to_owned()));
        let answer = running.connect().await.post(&headers, request.to_string().as_bytes()).await;
        assert!(answer.error_message().to_lowercase().contains(&told.to_lowercase()), "{user}: {answer:?}");
    }
}

/// L2: clients of the handshake eras get filtered lists too; a rule may look at revision and capabilities.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn rules_hold_for_the_handshake_eras() {
    let server = || {
        let modern = |viewer: &Viewer<'_>| viewer.revision().era() == roundtrip::wire::Era::Modern;
        let asked = |viewer: &Viewer<'_>| viewer.capabilities().elicitation.is_some();
        Server::new("s", "1")
            .tool(Tool::new("modern", nothing).visible_to(modern))
            .tool(Tool::new("asks", nothing).visible_to(asked))
            .tool(Tool::new("open", nothing))
    };
    for (capabilities, expected) in [(peers::everything(), "asks open"), (json!({}), "open")] {
        let mut pipe = Pipe::agreed(server(), "2025-11-25", &capabilities).await;
        let list = pipe.call(&peers::request(1, "tools/list", json!({}))).await;
        let names = list["result"]["tools"].as_array().expect("tools").iter();
        let names: Vec<_> = names.map(|tool| tool["name"].as_str().expect("a name")).collect();
        assert_eq!(names.join(" "), expected);
        let hidden = pipe.call(&peers::tool(2, "modern")).await;
        assert_eq!(hidden["error"]["message"], "unknown tool: modern", "{hidden}");
        let same_pipe = pipe.call(&message(3, "tools/call", json!({ "name": "modern" }))).await;
        assert!(same_pipe.get("result").is_some(), "{same_pipe}");
    }
}

/// L1: a session watches what its client sees; a subscription to anything else is answered alike and tells nothing.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_session_does_not_watch_what_is_hidden() {
    for (capabilities, sees) in [(peers::everything(), true), (json!({}), false)] {
        let asked = |viewer: &Viewer<'_>| viewer.capabilities().elicitation.is_some();
        let server = Server::new("s", "1")
            .resource(Resource::new("app://hidden", "hidden", nothing).visible_to(asked))
            .resource(Resource::new("app://open", "open", nothing));
        let catalog = server.catalog();
        let mut pipe = Pipe::agreed(server, "2025-11-25", &capabilities).await;
        for (id, uri) in ["app://hidden", "app://nothing", "app://open"].into_iter().enumerate() {
            let watched = pipe.call(&peers::request(id, "resources/subscribe", json!({ "uri": uri }))).await;
            assert_eq!(watched["result"], json!({}), "{uri}");
        }
        catalog.resource_updated("app://hidden");
        catalog.resource_updated("app://open");
        let expected = if sees { &["app://hidden", "app://open"][..] } else { &["app://open"] };
        for uri in expected {
            assert_eq!(pipe.receive().await["params"]["uri"], **uri);
        }
    }
}
