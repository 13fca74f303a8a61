//! Handlers: arguments, structured output, state, hooks, and what is found out before the first call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::server::{Call, CallInfo, FromCall, Next, Peer, Rejection};
use roundtrip::wire::{ErrorObject, JsonObject};
use roundtrip::{
    Args, Ask, Asked, Asking, Extension, Form, Json, Keyring, Principal, Progress, Prompt, Resource,
    ResourceTemplate, Round, Server, State, Tool, ToolError, Uri,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Running, message, messages_of};

async fn nothing() -> &'static str {
    ""
}

/// A parameter that shows the call it was taken from.
struct Shown(String);

impl FromCall for Shown {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        Ok(Self(format!("{call:?}")))
    }
}

/// Z1: a call that is logged shows neither its arguments nor its answers nor its state.
#[tokio::test]
async fn a_call_does_not_show_what_it_carries() {
    let shown = async |Shown(call): Shown, Args(_): Args<JsonObject>| call;
    let running = Running::start(Server::new("s", "1").tool(Tool::new("shown", shown))).await;
    let params = json!({
        "name": "shown",
        "arguments": { "a": "s3cret" },
        "inputResponses": { "a": { "action": "accept", "content": { "a": "s3cret" } } },
    });
    let text = running.call("tools/call", params).await.result()["content"][0]["text"].to_string();
    assert!(text.contains("shown") && !text.contains("s3cret"), "{text}");
}

/// Errors: `?` turns any error into one the model can read, and leaves a protocol error what it is.
#[tokio::test]
async fn failures_reach_whom_they_concern() {
    let server = Server::new("s", "1")
        .tool(Tool::new("parse", async || {
            let number: i32 = "seven".parse()?;
            Ok::<_, ToolError>(number.to_string())
        }))
        .tool(Tool::new("protocol", async || {
            Err::<String, _>(ErrorObject::new(4711, "mine"))?;
            Ok::<_, ToolError>("unreachable")
        }))
        .prompt(Prompt::new("broken", async || Err::<String, _>(ErrorObject::internal("no prompt today"))))
        .resource(Resource::new("app://broken", "broken", async || {
            Err::<String, _>(ErrorObject::internal("no"))
        }));
    let running = Running::start(server).await;
    let parsed = running.call("tools/call", json!({ "name": "parse" })).await.result();
    assert_eq!(
        (&parsed["isError"], &parsed["content"][0]["text"]),
        (&json!(true), &json!("invalid digit found in string"))
    );
    assert_eq!(running.call("tools/call", json!({ "name": "protocol" })).await.refusal(), (200, 4711));
    assert_eq!(running.call("prompts/get", json!({ "name": "broken" })).await.refusal().1, -32603);
    assert_eq!(running.call("resources/read", json!({ "uri": "app://broken" })).await.refusal().1, -32603);
    assert_eq!(running.call("prompts/get", json!({ "name": "nope" })).await.refusal().1, -32602);
}

/// N5: structured output may have a text of its own beside it, with the same output schema.
#[tokio::test]
async fn structured_output_may_have_a_text_of_its_own() {
    #[derive(Serialize, JsonSchema)]
    struct Weather {
        celsius: f64,
    }
    let plain = async || Json(Weather { celsius: 21.5 });
    let told = async || Ok::<_, ToolError>(Json(Weather { celsius: 21.5 }).with_text("a mild day"));
    let server = Server::new("s", "1").tool(Tool::new("plain", plain)).tool(Tool::new("told", told));
    let running = Running::start(server).await;
    for (name, text) in [("plain", r#"{"celsius":21.5}"#), ("told", "a mild day")] {
        let result = running.call("tools/call", json!({ "name": name })).await.result();
        assert_eq!(result["structuredContent"], json!({ "celsius": 21.5 }));
        assert_eq!(result["content"], json!([{ "type": "text", "text": text }]));
    }
    let tools = running.call("tools/list", json!({})).await.result();
    assert_eq!(tools["tools"][0]["outputSchema"]["properties"]["celsius"]["type"], "number");
    assert_eq!(tools["tools"][0]["outputSchema"], tools["tools"][1]["outputSchema"]);
}

/// Hooks see every call in order, and can refuse it before the handler runs.
#[tokio::test]
async fn hooks_stand_around_every_call() {
    let (ran, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counter, watching) = (Arc::clone(&ran), Arc::clone(&seen));
    let server = Server::new("s", "1")
        .state(counter)
        .tool(Tool::new("open", async |State(ran): State<Arc<AtomicUsize>>| {
            ran.fetch_add(1, Ordering::SeqCst).to_string()
        }))
        .tool(Tool::new("secret", async |State(ran): State<Arc<AtomicUsize>>| {
            ran.fetch_add(1, Ordering::SeqCst).to_string()
        }))
        .around(move |_, next| {
            let seen = Arc::clone(&watching);
            async move {
                let outcome = next.run().await;
                seen.fetch_add(1, Ordering::SeqCst);
                outcome
            }
        })
        .around(async |call, next| {
            if call.target.as_deref() == Some("secret") {
                return Err(ErrorObject::new(403, "not for you"));
            }
            next.run().await
        });
    let running = Running::start(server).await;
    assert_eq!(running.call("tools/call", json!({ "name": "open" })).await.status, 200);
    assert_eq!(running.call("tools/call", json!({ "name": "secret" })).await.refusal().1, 403);
    assert_eq!(running.call("tools/list", json!({})).await.status, 200);
    assert_eq!((ran.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (1, 3));
}

/// What is wrong with a server is found out when it starts, and says which tool it is about.
#[test]
fn mistakes_are_found_at_start_up() {
    #[derive(Deserialize, JsonSchema)]
    struct Id {
        #[expect(dead_code, reason = "only its name matters")]
        id: String,
    }
    let tool = |name: &str| Tool::new(name, nothing);
    let schema = |schema| tool("odd").input_schema(schema);
    let refused = |server: Server| server.build().expect_err("a mistake").to_string();
    let new = || Server::new("s", "1");
    assert!(refused(new().tool(tool("twice")).tool(tool("twice"))).contains("tool `twice`: there is one"));
    assert!(refused(new().tool(tool("a b"))).contains("tool `a b`: a tool's name"));
    if cfg!(feature = "validation") {
        assert!(
            refused(new().tool(schema(json!({ "type": "array" }))))
                .contains("tool `odd`: the input schema must be an object")
        );
        assert!(refused(new().tool(schema(json!(7)))).contains("tool `odd`"));
        assert!(
            refused(
                new()
                    .tool(schema(json!({ "type": "object", "properties": { "a": { "type": "nonsense" } } })))
            )
            .contains("tool `odd`")
        );
    }
    let array = Tool::new("array", async |Args(_): Args<Vec<String>>| "");
    assert!(refused(new().tool(array)).contains("tool `array`: the input schema must be an object"));
    let stateful = Tool::new("stateful", async |State(_): State<u64>| "");
    assert!(refused(new().tool(stateful)).contains("tool `stateful`: its handler takes `State<u64>`"));
    let completing = Prompt::new("p", nothing).complete("x", async || Vec::new());
    assert!(refused(new().prompt(completing)).contains("prompt `p`: completes `x`"));
    assert!(
        refused(new().resource(Resource::new("motto", "m", nothing)))
            .contains("resource `motto`: a resource's URI")
    );
    let template = ResourceTemplate::new("app://{name}", "t", async |Args(_): Args<Id>| "");
    assert!(refused(new().template(template)).contains("want `id`"));
    assert!(
        refused(new().template(ResourceTemplate::new("app://{?q}", "t", nothing))).contains("`app://{?q}`")
    );
}

/// Parameters that do not go together, or that a call of this kind does not have, are mistakes too.
#[test]
fn parameters_that_do_not_fit_are_found_at_start_up() {
    #[derive(Deserialize, JsonSchema)]
    struct One {
        #[expect(dead_code, reason = "only its name matters")]
        one: String,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Other {
        #[expect(dead_code, reason = "only its name matters")]
        other: String,
    }
    #[derive(Form)]
    #[form(key = "sure", message = "Sure?")]
    struct Sure {
        #[expect(dead_code, reason = "only its name matters")]
        sure: bool,
    }
    let refused = |server: Server| server.build().expect_err("a mistake").to_string();
    let new = || Server::new("s", "1");
    let two = "its handler takes the arguments twice: put both types into one `Args`";
    let twice = async |_: Args<One>, _: Args<Other>| "";
    assert_eq!(refused(new().tool(Tool::new("t", twice))), format!("tool `t`: {two}"));
    assert_eq!(refused(new().prompt(Prompt::new("p", twice))), format!("prompt `p`: {two}"));
    let template = ResourceTemplate::new("app://{one}/{other}", "t", twice);
    assert_eq!(
        refused(new().template(template)),
        format!("resource template `app://{{one}}/{{other}}`: {two}")
    );

    let uri = "its handler takes `Uri`, which resources and resource templates alone have";
    assert_eq!(refused(new().tool(Tool::new("t", async |_: Uri| ""))), format!("tool `t`: {uri}"));
    assert_eq!(refused(new().prompt(Prompt::new("p", async |_: Uri| ""))), format!("prompt `p`: {uri}"));
    let read = new()
        .resource(Resource::new("app://x", "x", async |_: Uri| ""))
        .template(ResourceTemplate::new("app://y/{y}", "y", async |_: Uri| ""));
    read.build().expect("resources have a URI");

    let both = "its handler takes `Ask` or `Asking` beside `Round`: take `Ask` to ask inline, or `Round` to ask by hand";
    assert_eq!(refused(new().tool(Tool::new("t", async |_: Ask, _: Round| ""))), format!("tool `t`: {both}"));
    let awaited = async |_: Round, _: Asking<Sure>| "";
    assert_eq!(refused(new().tool(Tool::new("t", awaited))), format!("tool `t`: {both}"));
    let mixed = async |_: Round, _: Asked<Sure>, _: Ask| "";
    assert_eq!(refused(new().prompt(Prompt::new("p", mixed))), format!("prompt `p`: {both}"));
    new().tool(Tool::new("t", async |_: Ask, _: Asked<Sure>, _: Ask| "")).build().expect("these go together");
    assert!(new().catalog().add(Tool::new("t", async |_: Ask, _: Round| "")).is_err(), "later too");
}

/// Settings of the server itself that cannot be meant.
#[test]
fn mistakes_of_the_server_itself_are_found_at_start_up() {
    let refused = |server: Server| server.build().expect_err("a mistake").to_string();
    assert_eq!(
        refused(Server::new("s", "1").state(7_u64).state("text").state(8_u64)),
        "server `s`: two values of type `u64` are its state: give one a type of its own"
    );
    let ring = || Keyring::random().expect("a key");
    assert_eq!(
        refused(Server::new("", "1").seal(ring())),
        "server ``: servers that share keys are told apart by their names: give it a name, or an `.audience(..)`"
    );
    refused(Server::new("s", "1").audience("").seal(ring()));
    Server::new("", "1").audience("bookings").seal(ring()).build().expect("told apart by its audience");
    Server::new("", "1").build().expect("its key is its own");
}

/// Tools, prompts and resources come and go while the server runs.
#[tokio::test]
async fn the_catalog_changes_while_the_server_runs() {
    let server = Server::new("s", "1").state(7_u64);
    let catalog = server.catalog();
    let running = Running::start(server).await;
    assert_eq!(running.call("tools/call", json!({ "name": "late" })).await.refusal().1, -32602);
    catalog.add(Tool::new("late", async |State(number): State<u64>| number.to_string())).expect("added");
    assert!(catalog.add(Tool::new("late", nothing)).is_err());
    assert!(catalog.add(Tool::new("other", async |State(_): State<i8>| "")).is_err(), "no such state");
    assert_eq!(
        running.call("tools/call", json!({ "name": "late" })).await.result()["content"][0]["text"],
        "7"
    );
    assert!(catalog.remove::<Tool>("late") && !catalog.remove::<Tool>("late"));
    assert_eq!(running.call("tools/call", json!({ "name": "late" })).await.refusal().1, -32602);
}

/// A parameter that counts how often it is taken.
struct Counted;

impl FromCall for Counted {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let Extension(count) = Extension::<Arc<AtomicUsize>>::from_call(call)?;
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Self)
    }
}

/// Z3: a call that a hook refuses runs none of the author's extractors, whatever method it is; one that is let through runs
/// them once, and keeps its progress.
#[tokio::test]
async fn hooks_run_before_any_extractor() {
    async fn count(_: Counted, progress: Progress) -> &'static str {
        progress.report(1.0);
        "counted"
    }
    let server = Server::new("s", "1")
        .tool(Tool::new("count", count))
        .prompt(Prompt::new("count", count))
        .resource(Resource::new("app://count", "count", count))
        .around(async |call: CallInfo, next: Next| match &call.principal {
            Some(_) => next.run().await,
            None => Err(ErrorObject::new(401, "sign in first")),
        });
    let endpoint = server.build().expect("a server");
    let count = Arc::new(AtomicUsize::new(0));
    let mut peer = Peer::default();
    peer.extensions.insert(Arc::clone(&count));
    let requests = [
        ("tools/call", json!({ "name": "count" })),
        ("prompts/get", json!({ "name": "count" })),
        ("resources/read", json!({ "uri": "app://count" })),
    ];
    for (method, params) in &requests {
        let refused = messages_of(&endpoint, &peer, &message(1, method, params.clone())).await;
        assert_eq!(refused[0]["error"]["code"], 401, "{method}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0, "nothing of a refused call runs");
    peer.principal = Some(Principal::new("ada"));
    for (round, (method, params)) in requests.into_iter().enumerate() {
        let mut request = message(1, method, params);
        request["params"]["_meta"]["progressToken"] = json!(7);
        let messages = messages_of(&endpoint, &peer, &request).await;
        assert_eq!(messages[0]["method"], "notifications/progress", "{messages:?}");
        assert!(messages[1].get("result").is_some(), "{messages:?}");
        assert_eq!(count.load(Ordering::SeqCst), round + 1);
    }
}

/// Names of extensions have a prefix, and these and keys of `_meta` are spelled as the specification has it: else the server
/// does not start, and the error names them.
#[test]
fn names_that_break_the_rules_are_found_at_start_up() {
    let refused = |server: Server| server.build().expect_err("a mistake").to_string();
    for (name, why) in [
        ("views", "`views` needs a prefix"),
        ("com.example/", "needs a prefix and a name"),
        ("1com.example/views", "the prefix of"),
        ("com..example/views", "the prefix of"),
        ("com.example-/views", "the prefix of"),
        ("com.example/vi ews", "the name in"),
        ("com.example/-views", "the name in"),
    ] {
        let problem = refused(Server::new("s", "1").extension(name, Default::default()));
        assert!(problem.starts_with("server `s`: ") && problem.contains(why), "{name}: {problem}");
    }
    let fine = ["com.example/views", "io.modelcontextprotocol/ui", "a-b.c1/x_y.z-9"];
    let server = fine.into_iter().fold(Server::new("s", "1"), |server, name| {
        server
            .extension(name, Default::default())
            .tool(Tool::new(name.replace('/', "."), nothing).meta(name, json!(1)))
    });
    server.build().expect("a server");
    for key in ["", "-x", "a b", "com.example/x-", "com_example/x"] {
        let problem = refused(Server::new("s", "1").tool(Tool::new("t", nothing).meta(key, json!(1))));
        assert!(problem.starts_with("tool `t`: `_meta`: "), "{key}: {problem}");
    }
    Server::new("s", "1").tool(Tool::new("t", nothing).meta("plain", json!(1))).build().expect("a server");
}

/// The URI of a resource is one by RFC 3986: else the server does not start, and the error says what to write.
#[test]
fn uris_that_are_none_are_found_at_start_up() {
    let resource = |uri: &str| Server::new("s", "1").resource(Resource::new(uri, "r", nothing)).build();
    for (uri, why) in [
        ("notes", "needs a scheme"),
        ("1app://x", "is not the scheme"),
        ("a b://x", "is not the scheme"),
        (":x", "is not the scheme"),
        ("app://a b", "`%20`"),
        ("app://\u{fc}", "`%C3%BC`"),
        ("app://{x}", "`%7B`"),
        ("app://100%", "hexadecimal"),
        ("app://a#b#c", "`%23`"),
    ] {
        let problem = resource(uri).expect_err("a mistake").to_string();
        assert!(
            problem.starts_with(&format!("resource `{uri}`: ")) && problem.contains(why),
            "{uri}: {problem}"
        );
    }
    for uri in ["app://x", "urn:isbn:0451450523", "file:///a%20b", "https://[::1]:80/a?b=c#d", "x+y-z.1:a"] {
        resource(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
    }
}
