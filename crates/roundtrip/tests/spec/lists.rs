//! Lists, caching hints, completion and resources (server; utilities, "Pagination", "Caching", "Completion").

use std::time::Duration;

use roundtrip::server::{Listed, Partial};
use roundtrip::wire::{Annotations, Icon, Role};
use roundtrip::{
    Args, Ask, AskError, Cache, Json, Prompt, Resource, ResourceTemplate, Server, State, Tool, ToolError, Uri,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Running;

async fn nothing() -> &'static str {
    ""
}

fn numbered(count: usize) -> Server {
    (0..count).fold(Server::new("s", "1"), |server, number| {
        server.tool(Tool::new(format!("tool_{number}"), nothing))
    })
}

fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// N3: lists keep the order of registration, page by opaque cursors, and refuse a cursor that is none of theirs.
#[tokio::test]
async fn lists_are_stable_and_paged() {
    let server = numbered(7).page_size(3);
    let catalog = server.catalog();
    let running = Running::start(server).await;
    let (mut all, mut cursors, mut cursor) = (Vec::new(), Vec::new(), None::<Value>);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = running.call("tools/list", params).await.result();
        all.extend(names(&page));
        match page.get("nextCursor") {
            Some(next) => cursors.push(next.clone()),
            None => break,
        }
        cursor = cursors.last().cloned();
    }
    let expected: Vec<String> = (0..7).map(|number| format!("tool_{number}")).collect();
    assert_eq!((all, cursors.len()), (expected, 2));

    for bad in ["", "nonsense", "dG9vbHM6bm9uZQ", "cHJvbXB0czp0b29sXzM"] {
        let answer = running.call("tools/list", json!({ "cursor": bad })).await;
        assert_eq!(answer.refusal(), (200, -32602), "{bad}");
        assert!(answer.error_message().contains("cursor"));
    }

    catalog.remove::<Tool>("tool_1");
    catalog.add(Tool::new("tool_7", nothing)).expect("a tool");
    let page = running.call("tools/list", json!({ "cursor": cursors[0] })).await.result();
    assert_eq!(
        names(&page),
        ["tool_3", "tool_4", "tool_5"],
        "a cursor outlives changes elsewhere in the list"
    );
    catalog.remove::<Tool>("tool_3");
    let answer = running.call("tools/list", json!({ "cursor": cursors[0] })).await;
    assert_eq!(answer.refusal().1, -32602, "what it pointed at is gone");
    let first = running.call("tools/list", json!({})).await.result();
    assert_eq!(names(&first), ["tool_0", "tool_2", "tool_4"], "a change is seen at once");
}

/// N3: `ttlMs` and `cacheScope` are on every list and on discovery, private and zero unless set, list by list.
#[tokio::test]
async fn caching_hints_are_set_per_list() {
    let minute = Duration::from_secs(60);
    let server = numbered(1)
        .cache(Listed::Tools, Cache::public(minute))
        .cache(Listed::Discover, Cache::private(minute))
        .resource(Resource::new("app://kept", "kept", nothing).cache(Cache::public(minute)))
        .resource(Resource::new("app://stale", "stale", nothing));
    let running = Running::start(server).await;
    let cases = [
        ("tools/list", json!({}), 60_000, "public"),
        ("server/discover", json!({}), 60_000, "private"),
        ("prompts/list", json!({}), 0, "private"),
        ("resources/list", json!({}), 0, "private"),
        ("resources/templates/list", json!({}), 0, "private"),
        ("resources/read", json!({ "uri": "app://kept" }), 60_000, "public"),
        ("resources/read", json!({ "uri": "app://stale" }), 0, "private"),
    ];
    for (method, params, ttl, scope) in cases {
        let result = running.call(method, params).await.result();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)), "{method}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Lines {
    file: String,
    from: u32,
}

/// N6: templates match and decode their variables, typed as the handler wants them; no match is no resource.
#[tokio::test]
async fn templates_hand_over_their_variables() {
    let server = Server::new("s", "1")
        .template(ResourceTemplate::new(
            "lines://{file}/{from}",
            "lines",
            async |Args(Lines { file, from })| format!("{file} from {from}"),
        ))
        .template(ResourceTemplate::new("any://{+rest}", "any", async |Uri(uri)| uri))
        .template(ResourceTemplate::new("shown://{+rest}", "shown", async |uri: Uri| {
            format!("{uri} has {} bytes, {}", uri.len(), uri.as_ref() == uri.0)
        }))
        .resource(Resource::new("lines://exact/1", "exact", async || "the exact one wins"));
    let running = Running::start(server).await;
    let read = async |uri: &str| running.call("resources/read", json!({ "uri": uri })).await;
    let text = async |uri: &str| read(uri).await.result()["contents"][0]["text"].clone();
    assert_eq!(text("lines://a%20b.txt/7").await, "a b.txt from 7");
    assert_eq!(text("lines://exact/1").await, "the exact one wins");
    assert_eq!(text("any://deep/er").await, "any://deep/er");
    assert_eq!(text("shown://a").await, "shown://a has 9 bytes, true");
    for none in ["lines://a/seven", "lines://a/-1", "lines://a/b/7", "any://../x", "lines://a"] {
        assert_eq!(read(none).await.refusal().1, -32602, "{none}");
    }
}

/// N6: completion suggests for prompts and templates, at most a hundred at a time, and knows what it cannot complete.
#[tokio::test]
async fn completion_suggests() {
    #[derive(Deserialize, JsonSchema)]
    struct Review {
        language: String,
        #[expect(dead_code, reason = "only its name matters")]
        topic: Option<String>,
    }
    let prompt = Prompt::new("review", async |Args(review): Args<Review>| review.language)
        .complete("language", async |partial: Partial| partial.starting(["rust", "ruby", "go"]))
        .complete("topic", async |partial: Partial| {
            let language = partial.arguments.get("language").cloned().unwrap_or_default();
            (0..150).map(|number| format!("{language} {number}")).collect::<Vec<_>>()
        });
    let running = Running::start(Server::new("s", "1").prompt(prompt)).await;
    let complete = async |argument: &str, value: &str, name: &str| {
        let params = json!({ "ref": { "type": "ref/prompt", "name": name },
            "argument": { "name": argument, "value": value }, "context": { "arguments": { "language": "go" } } });
        running.call("completion/complete", params).await
    };
    let found = complete("language", "ru", "review").await.result()["completion"].clone();
    assert_eq!(found, json!({ "values": ["rust", "ruby"], "total": 2, "hasMore": false }));
    let many = complete("topic", "", "review").await.result()["completion"].clone();
    assert_eq!(
        (many["values"].as_array().map(Vec::len), &many["total"], &many["hasMore"]),
        (Some(100), &json!(150), &json!(true))
    );
    assert_eq!(many["values"][0], "go 0");
    assert_eq!(complete("unknown", "", "review").await.result()["completion"]["values"], json!([]));
    assert_eq!(complete("language", "", "nope").await.refusal().1, -32602);
    let without = Running::start(numbered(1)).await;
    let params =
        json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } });
    assert_eq!(without.call("completion/complete", params).await.refusal(), (404, -32601));
}

/// N6: completers take parameters as handlers do, and may fail; one that asks, and a handler that takes an argument being
/// typed, are mistakes of the setup.
#[tokio::test]
async fn completers_take_parameters() {
    #[derive(Deserialize, JsonSchema)]
    struct Trip {
        country: String,
        #[expect(dead_code, reason = "only its name matters")]
        city: Option<String>,
    }
    type Cities = Vec<(&'static str, &'static str)>;
    async fn cities(
        State(known): State<Cities>,
        Args(trip): Args<Trip>,
        partial: Partial,
    ) -> Result<Vec<String>, ToolError> {
        if trip.country == "Atlantis" {
            return Err(ToolError::new("Atlantis has sunk"));
        }
        Ok(partial
            .starting(known.iter().filter(|(country, _)| trip.country == *country).map(|(_, city)| *city)))
    }
    let plan = || Prompt::new("plan", async |Args(trip): Args<Trip>| trip.country);
    let known: Cities = vec![("France", "Paris"), ("France", "Lyon"), ("Italy", "Parma")];
    let running =
        Running::start(Server::new("s", "1").prompt(plan().complete("city", cities)).state(known)).await;
    let complete = async |context: Value| {
        let params = json!({ "ref": { "type": "ref/prompt", "name": "plan" },
            "argument": { "name": "city", "value": "Pa" }, "context": { "arguments": context } });
        running.call("completion/complete", params).await
    };
    let found = complete(json!({ "country": "France" })).await.result();
    assert_eq!(found["completion"]["values"], json!(["Paris"]));
    assert_eq!(complete(json!({ "country": "Atlantis" })).await.error_message(), "Atlantis has sunk");
    assert_eq!(complete(json!({})).await.refusal().1, -32602, "`Args` are the other arguments");

    let problem = |server: Server| server.build().expect_err("a mistake").to_string();
    let stateless = problem(Server::new("s", "1").prompt(plan().complete("city", cities)));
    assert!(stateless.contains("prompt `plan`: its handler takes `State<"), "{stateless}");
    async fn asks(ask: Ask) -> Result<Vec<String>, AskError> {
        ask.confirm("sure", "Sure?").await.map(|sure| vec![sure.to_string()])
    }
    let asking = problem(Server::new("s", "1").prompt(plan().complete("city", asks)));
    assert!(asking.contains("the completer of `city` asks"), "{asking}");
    let typed = problem(Server::new("s", "1").tool(Tool::new("t", async |_: Partial| "")));
    assert!(typed.contains("takes `Partial`, which only completers have"), "{typed}");
}

/// N6: icons, titles, annotations and metadata stand in lists as they were given.
#[tokio::test]
async fn definitions_carry_what_they_were_given() {
    let icon = Icon {
        src: "https://example.com/i.png".into(),
        mime_type: Some("image/png".into()),
        ..Icon::default()
    };
    let annotations =
        Annotations { audience: vec![Role::User], priority: Some(0.5), ..Annotations::default() };
    let server = Server::new("s", "1")
        .title("The server")
        .instructions("Be kind")
        .tool(
            Tool::new("t", nothing)
                .title("T")
                .description("d")
                .icon(icon.clone())
                .read_only()
                .idempotent()
                .meta("k", json!(1)),
        )
        .resource(
            Resource::new("app://r", "r", nothing).title("R").size(7).annotations(annotations).icon(icon),
        )
        .template(ResourceTemplate::new("app://r/{x}", "x", nothing).mime_type("text/plain"));
    let running = Running::start(server).await;
    let tool = running.call("tools/list", json!({})).await.result()["tools"][0].clone();
    assert_eq!(tool["icons"][0], json!({ "src": "https://example.com/i.png", "mimeType": "image/png" }));
    assert_eq!(tool["annotations"], json!({ "readOnlyHint": true, "idempotentHint": true }));
    assert_eq!((&tool["title"], &tool["_meta"]), (&json!("T"), &json!({ "k": 1 })));
    assert_eq!(tool["inputSchema"], json!({ "type": "object", "additionalProperties": false }));
    let resource = running.call("resources/list", json!({})).await.result()["resources"][0].clone();
    assert_eq!((&resource["size"], &resource["annotations"]["priority"]), (&json!(7), &json!(0.5)));
    let discovered = running.call("server/discover", json!({})).await.result();
    assert_eq!(discovered["instructions"], "Be kind");
    let spoken = discovered["supportedVersions"].as_array().expect("versions");
    assert_eq!((&spoken[0], spoken.len() > 1), (&json!("2026-07-28"), cfg!(feature = "legacy")));
    let can =
        json!({ "resources": { "subscribe": true, "listChanged": true }, "tools": { "listChanged": true } });
    assert_eq!(discovered["capabilities"], can, "what there are handlers for, and nothing else");
}

/// N6: bytes go out as Base64, JSON as text, each under the URI that was read.
#[tokio::test]
async fn contents_are_labelled() {
    let server = Server::new("s", "1")
        .resource(
            Resource::new("app://bytes", "bytes", async || vec![0_u8, 255])
                .mime_type("application/octet-stream"),
        )
        .resource(Resource::new("app://json", "json", async || Json(json!({ "a": 1 }))));
    let running = Running::start(server).await;
    let bytes =
        running.call("resources/read", json!({ "uri": "app://bytes" })).await.result()["contents"][0].clone();
    assert_eq!(
        bytes,
        json!({ "uri": "app://bytes", "mimeType": "application/octet-stream", "blob": "AP8=" })
    );
    let text =
        running.call("resources/read", json!({ "uri": "app://json" })).await.result()["contents"][0].clone();
    assert_eq!(text, json!({ "uri": "app://json", "mimeType": "application/json", "text": "{\"a\":1}" }));
}

/// N2: an empty cursor is not the same as none: this server never gave it out, and refuses it as it does any other such cursor.
#[tokio::test]
async fn an_empty_cursor_does_not_begin_a_list_anew() {
    let running = Running::start(Server::new("s", "1").tool(Tool::new("t", nothing))).await;
    let refused = running.call("tools/list", json!({ "cursor": "" })).await;
    assert_eq!(refused.refusal(), (200, -32602), "{refused:?}");
}
