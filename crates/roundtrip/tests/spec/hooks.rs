//! Hooks around all calls, those of a group and those of one offer: what they see, and in which order they run.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use roundtrip::server::{CallInfo, Group, Next, Outcome, Partial, Peer};
use roundtrip::wire::{ErrorObject, ProtocolVersion, RequestId, ServerResult};
use roundtrip::{Args, Ask, Principal, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

#[cfg(feature = "legacy")]
use {
    crate::peers::{self, Pipe},
    roundtrip::{Question, Reply, Round},
};

use crate::logged::logged;
use crate::support::{Call, Running, accept, message, messages_of};

/// Lines that hooks write down.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn add(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }

    /// A hook that notes its name before the call and after it.
    fn named(&self, name: &'static str) -> impl Fn(CallInfo, Next) -> HookFuture + Send + Sync + 'static {
        let lines = self.clone();
        move |call, next| {
            let lines = lines.clone();
            Box::pin(async move {
                lines.add(format!("{name} {}", call.target.as_deref().unwrap_or("-")));
                let outcome = next.run().await;
                lines.add(format!("/{name}"));
                outcome
            })
        }
    }
}

type HookFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    restaurant: String,
}

async fn book(Args(Booking { restaurant }): Args<Booking>, ask: Ask) -> Result<String, ToolError> {
    ask.confirm("sure", "Sure?").await?;
    Ok(restaurant)
}

async fn nothing() -> &'static str {
    ""
}

/// Record of a call as a hook sees it: before it, and after it.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(CallInfo, Outcome)>>>);

impl Seen {
    fn hook(&self) -> impl Fn(CallInfo, Next) -> HookFuture + Send + Sync + 'static {
        let seen = Arc::clone(&self.0);
        move |call, next| {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                assert_eq!((call.flow(), call.round()), (None, None), "no token is opened before the hooks");
                let outcome = next.run().await;
                seen.lock().expect("no panic").push((call, outcome.clone()));
                outcome
            })
        }
    }

    fn last(&self) -> (CallInfo, Outcome) {
        self.0.lock().expect("no panic").pop().expect("a call")
    }
}

/// Z3: hooks see the request's id, revision, arguments, and whether it carries state and answers; flow and round once the
/// token behind them has been opened.
#[tokio::test]
async fn hooks_see_the_request_and_its_place_in_its_flow() {
    let seen = Seen::default();
    let endpoint =
        Server::new("s", "1").tool(Tool::new("book", book)).around(seen.hook()).build().expect("a server");
    let call = Call::tool("book").with(json!({ "restaurant": "Nopa" })).by("ada");

    let asked = call.begin(&endpoint).await;
    let (first, outcome) = seen.last();
    assert_eq!((&first.id, first.method), (&RequestId::from(7_i64), "tools/call"));
    assert_eq!(first.target.as_deref(), Some("book"));
    assert_eq!(first.principal.as_ref().map(Principal::as_str), Some("ada"));
    assert_eq!(first.revision, ProtocolVersion::V2026_07_28);
    assert_eq!(first.arguments().map(RawValue::get), Some(r#"{"restaurant":"Nopa"}"#));
    assert_eq!((first.has_state, first.has_answers, first.round()), (false, false, Some(1)));
    let Ok(ServerResult::InputRequired(asks)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(asks.input_requests.keys().collect::<Vec<_>>(), ["sure"]);
    assert!(!format!("{first:?}").contains("Nopa"), "arguments do not belong into a log by accident");

    let done = call.answer(&endpoint, &asked, json!({ "sure": accept(&json!({ "confirm": true })) })).await;
    assert_eq!(done.text(), "Nopa");
    let (second, _) = seen.last();
    assert_eq!((second.has_state, second.has_answers, second.round()), (true, true, Some(2)));
    assert!(second.flow().is_some() && second.flow() == first.flow(), "{first:?} {second:?}");
}

/// Z3: a call that cannot ask has no flow, and neither has one whose token is refused. Arguments are there if they were sent.
#[tokio::test]
async fn a_call_without_a_flow_has_none_to_see() {
    let seen = Seen::default();
    let server = Server::new("s", "1").tool(Tool::new("plain", nothing)).tool(Tool::new("book", book));
    let endpoint = server.around(seen.hook()).build().expect("a server");
    assert_eq!(Call::tool("plain").begin(&endpoint).await.text(), "");
    let (plain, _) = seen.last();
    assert_eq!((plain.flow(), plain.round(), plain.arguments().is_none()), (None, None, true));
    let nulls = json!({ "name": "plain", "inputResponses": null, "requestState": null });
    messages_of(&endpoint, &Peer::default(), &message(1, "tools/call", nulls)).await;
    let (nulls, outcome) = seen.last();
    assert!(!nulls.has_state && !nulls.has_answers && outcome.is_ok(), "{nulls:?} {outcome:?}");

    let call = Call::tool("book").with(json!({ "restaurant": "Nopa" }));
    let asked = call.begin(&endpoint).await;
    let forged = call.send(&endpoint, Some("AAAA"), None).await;
    assert_eq!(forged.error().0, -32602);
    let (forged, outcome) = seen.last();
    assert!(forged.has_state && forged.flow().is_none() && outcome.is_err());

    // A token of another tool is refused, and tells nothing.
    let other = Call::tool("plain").send(&endpoint, asked.state(), None).await;
    assert_eq!(other.error().0, -32602);
    assert_eq!(seen.last().0.flow(), None);
}

/// Prompts, resources and completions have hooks too: the arguments of a prompt are seen as JSON.
#[tokio::test]
async fn every_method_can_be_seen() {
    let seen = Seen::default();
    let prompt = Prompt::new("menu", async |Args(Booking { restaurant })| restaurant)
        .complete("restaurant", async |partial: Partial| partial.starting(["Nopa"]));
    let server = Server::new("s", "1").prompt(prompt).resource(Resource::new("app://r", "r", nothing));
    let endpoint = server.around(seen.hook()).build().expect("a server");
    let call = Call::prompt("menu").with(json!({ "restaurant": "Nopa" }));
    assert_eq!(call.begin(&endpoint).await.text(), "Nopa");
    let (got, _) = seen.last();
    assert_eq!(got.arguments().map(RawValue::get), Some(r#"{"restaurant":"Nopa"}"#));
    Call::resource("app://r").begin(&endpoint).await.text();
    let (read, _) = seen.last();
    assert_eq!((read.target.as_deref(), read.arguments().is_none()), (Some("app://r"), true));
    let params = json!({ "ref": { "type": "ref/prompt", "name": "menu" },
        "argument": { "name": "restaurant", "value": "" } });
    messages_of(&endpoint, &Peer::default(), &message(1, "completion/complete", params)).await;
    let (completed, _) = seen.last();
    assert_eq!((completed.method, completed.target.as_deref()), ("completion/complete", Some("menu")));
    messages_of(&endpoint, &Peer::default(), &message(1, "prompts/list", json!({}))).await;
    assert_eq!(seen.last().0.target, None);
}

/// A server with hooks on every level: two of the server's, two groups in each other, each offer its own.
fn nested(lines: &Lines) -> Server {
    let completes = Prompt::new("prompt", async |Args(Booking { restaurant })| restaurant)
        .complete("restaurant", async || Vec::new())
        .around(lines.named("own"));
    let inner = Group::new()
        .tool(Tool::new("tool", nothing).around(lines.named("own")).around(lines.named("own2")))
        .prompt(completes)
        .resource(Resource::new("app://resource", "resource", nothing).around(lines.named("own")))
        .template(ResourceTemplate::new("app://at/{x}", "template", nothing).around(lines.named("own")))
        .around(lines.named("inner"));
    let outer = Group::new().around(lines.named("outer")).group(inner).tool(Tool::new("outer_tool", nothing));
    Server::new("s", "1")
        .group(outer)
        .tool(Tool::new("plain", nothing))
        .around(lines.named("server"))
        .around(lines.named("server2"))
}

/// Hooks run from the server's to the group's to the offer's own, around tools, prompts, resources and templates alike.
#[tokio::test]
async fn hooks_run_from_the_server_inwards() {
    let lines = Lines::default();
    let endpoint = nested(&lines).build().expect("a server");
    let all = |target: &str| -> Vec<String> {
        let before = ["server", "server2", "outer", "inner", "own"].map(|name| format!("{name} {target}"));
        let after = ["/own", "/inner", "/outer", "/server2", "/server"].map(str::to_owned);
        before.into_iter().chain(after).collect()
    };
    for (call, target) in [
        (Call::prompt("prompt").with(json!({ "restaurant": "" })), "prompt"),
        (Call::resource("app://resource"), "app://resource"),
        (Call::resource("app://at/7"), "app://at/7"),
    ] {
        call.begin(&endpoint).await.text();
        assert_eq!(lines.take(), all(target));
    }
    Call::tool("tool").begin(&endpoint).await.text();
    let told = lines.take();
    assert_eq!((told.len(), &*told[4], &*told[5], &*told[6]), (12, "own tool", "own2 tool", "/own2"));
    let params = json!({ "ref": { "type": "ref/prompt", "name": "prompt" },
        "argument": { "name": "restaurant", "value": "" } });
    messages_of(&endpoint, &Peer::default(), &message(1, "completion/complete", params)).await;
    assert_eq!(lines.take(), all("prompt"), "what completes an argument is the prompt's too");
    Call::tool("outer_tool").begin(&endpoint).await.text();
    assert_eq!(lines.take()[2..4], ["outer outer_tool", "/outer"]);
    Call::tool("plain").begin(&endpoint).await.text();
    assert_eq!(lines.take(), ["server plain", "server2 plain", "/server2", "/server"]);
}

/// Z3: a hook of one tool refuses before the handler's parameters are taken, on a server without any other hook; the other
/// tools are not its business. It stands in every round.
#[tokio::test]
async fn a_hook_of_one_tool_is_for_that_tool() {
    let seen = Seen::default();
    let guarded = Tool::new("guarded", book).around(async |call: CallInfo, next: Next| {
        if call.principal.is_none() { Err(ErrorObject::new(401, "sign in first")) } else { next.run().await }
    });
    let server = Server::new("s", "1").tool(guarded.around(seen.hook())).tool(Tool::new("plain", nothing));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("guarded").with(json!({ "restaurant": 7 }));
    assert_eq!(call.begin(&endpoint).await.error(), (401, "sign in first"), "before arguments are checked");
    assert_eq!(Call::tool("plain").begin(&endpoint).await.text(), "");
    let call = Call::tool("guarded").with(json!({ "restaurant": "Nopa" })).by("ada");
    let asked = call.begin(&endpoint).await;
    let (first, _) = seen.last();
    call.answer(&endpoint, &asked, json!({ "sure": accept(&json!({ "confirm": true })) })).await.text();
    let (second, _) = seen.last();
    assert_eq!((first.round(), second.round()), (Some(1), Some(2)));
    assert!(first.flow().is_some() && first.flow() == second.flow());
}

/// The tool whose hooks ran is the one that is called, also if another takes its name meanwhile.
#[tokio::test]
async fn hooks_and_handler_are_of_one_tool() {
    let server = Server::new("s", "1");
    let catalog = server.catalog();
    let swaps = move |_: CallInfo, next: Next| {
        assert!(catalog.remove::<Tool>("tool"));
        catalog.add(Tool::new("tool", async || "the new one")).expect("added");
        next.run()
    };
    let endpoint =
        server.tool(Tool::new("tool", async || "the old one").around(swaps)).build().expect("a server");
    assert_eq!(Call::tool("tool").begin(&endpoint).await.text(), "the old one");
    assert_eq!(Call::tool("tool").begin(&endpoint).await.text(), "the new one");
}

/// Z1: a tool's hook that panics costs this call alone, and the server's hooks see it fail.
#[tokio::test]
async fn a_panic_in_a_hook_is_an_outcome_for_the_hooks_around_it() {
    let seen = Seen::default();
    let careless =
        Tool::new("careless", nothing).around(|_, _| -> std::future::Ready<Outcome> { panic!("boom") });
    let server = Server::new("s", "1").tool(careless).tool(Tool::new("fine", async || "fine"));
    let running = Running::start(server.around(seen.hook())).await;
    let mut connection = running.connect().await;
    let answer = connection.request("tools/call", json!({ "name": "careless" })).await;
    assert_eq!(answer.refusal().1, -32603);
    let (call, outcome) = seen.last();
    assert_eq!(call.target.as_deref(), Some("careless"));
    assert_eq!(outcome.map_err(|error| error.code).expect_err("it failed"), -32603);
    assert_eq!(connection.request("tools/call", json!({ "name": "fine" })).await.status, 200);
}

/// N7: hooks run inside the request's span.
#[test]
fn hooks_run_inside_the_span() {
    let lines = Lines::default();
    let hook = |lines: &Lines| {
        let lines = lines.clone();
        move |_: CallInfo, next: Next| {
            let span = tracing::Span::current();
            lines.add(span.metadata().map_or("none", tracing::Metadata::name).to_owned());
            next.run()
        }
    };
    let tool = Tool::new("tool", nothing).around(hook(&lines));
    let endpoint = Server::new("s", "1").tool(tool).around(hook(&lines)).build().expect("a server");
    let request = message(1, "tools/call", json!({ "name": "tool" }));
    logged(async {
        messages_of(&endpoint, &Peer::default(), &request).await;
    });
    assert_eq!(lines.take(), ["mcp.request", "mcp.request"]);
}

/// L2: the same hooks stand around calls of the handshake eras, on a pipe: they see the revision, the arguments and the flow.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn hooks_stand_around_calls_of_the_handshake_eras() {
    let seen = Seen::default();
    let tool = Tool::new("book", book).around(seen.hook());
    let mut pipe = Pipe::agreed(Server::new("s", "1").tool(tool), "2025-06-18", &peers::everything()).await;
    let mut call = peers::tool(5, "book");
    call["params"]["arguments"] = json!({ "restaurant": "Nopa" });
    let question = pipe.call(&call).await;
    assert_eq!(question["method"], "elicitation/create");
    let done = pipe.call(&peers::accept(&question, json!({ "confirm": true }))).await;
    assert_eq!(peers::text(&done), "Nopa");
    let (call, outcome) = seen.last();
    assert_eq!((call.revision, call.id.clone()), (ProtocolVersion::V2025_06_18, RequestId::from(5_i64)));
    assert_eq!(call.arguments().map(RawValue::get), Some(r#"{"restaurant":"Nopa"}"#));
    assert_eq!((call.has_state, call.has_answers, call.round()), (false, false, Some(1)));
    assert!(call.flow().is_some() && matches!(outcome, Ok(ServerResult::CallTool(_))), "{outcome:?}");
}

/// L3: a handler by hand returns its questions, so hooks see each round of it also in the handshake eras.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn hooks_see_each_round_by_hand_in_the_handshake_eras() {
    async fn by_hand(round: Round) -> Result<Reply, ToolError> {
        Ok(match round.confirmed("sure")? {
            Some(sure) => Reply::text(sure.to_string()),
            None => round.ask([Question::confirm("sure", "Sure?")]),
        })
    }
    let seen = Seen::default();
    let tool = Tool::new("by_hand", by_hand).around(seen.hook());
    let mut pipe = Pipe::agreed(Server::new("s", "1").tool(tool), "2025-11-25", &peers::everything()).await;
    let question = pipe.call(&peers::tool(5, "by_hand")).await;
    let (first, outcome) = seen.last();
    assert!(matches!(outcome, Ok(ServerResult::InputRequired(_))), "{outcome:?}");
    let done = pipe.call(&peers::accept(&question, json!({ "confirm": true }))).await;
    assert_eq!(peers::text(&done), "true");
    let (second, outcome) = seen.last();
    assert!(matches!(outcome, Ok(ServerResult::CallTool(_))), "{outcome:?}");
    assert_eq!((first.round(), second.round()), (Some(1), Some(2)));
    assert!(second.id == first.id && second.flow() == first.flow());
    assert!(second.has_state && second.has_answers, "{second:?}");
}

/// A hook is dropped with its call: nothing behind `next.run()` runs, and a guard is dropped.
#[tokio::test]
async fn a_hook_is_dropped_with_its_call() {
    struct Guard(Lines);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.add("dropped".to_owned());
        }
    }
    let lines = Lines::default();
    let hook = {
        let lines = lines.clone();
        move |_: CallInfo, next: Next| {
            let guard = Guard(lines.clone());
            async move {
                let outcome = next.run().await;
                guard.0.add("ended".to_owned());
                outcome
            }
        }
    };
    let server = Server::new("s", "1").tool(Tool::new("waits", std::future::pending::<&str>).around(hook));
    let endpoint = server.build().expect("a server");
    let request = message(1, "tools/call", json!({ "name": "waits" }));
    let peer = Peer::default();
    let mut call = Box::pin(messages_of(&endpoint, &peer, &request));
    tokio::select! {
        biased;
        answer = &mut call => panic!("it waits: {answer:?}"),
        () = std::future::ready(()) => {}
    }
    drop(call);
    assert_eq!(lines.take(), ["dropped"]);
}
