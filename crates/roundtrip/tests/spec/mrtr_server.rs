//! Multi round-trip requests, the server's side (basic, patterns, "Multi Round-Trip Requests").

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::server::{Endpoint, Partial};
use roundtrip::wire::{
    CallToolResult, CreateMessageRequestParams, ErrorObject, GetPromptResult, IncludeContext,
    ReadResourceResult, SamplingMessage, Tool as WireTool,
};
use roundtrip::{
    Args, Ask, AskError, Form, Progress, Prompt, Question, Reply, Resource, ResourceTemplate, Round, Server,
    State, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::try_join;

use crate::support::{Call, Running, Turn, accept, everything, headers, message, meta};

#[derive(Form)]
pub(crate) struct Party {
    /// How many people?
    #[form(min = 1, max = 12)]
    pub(crate) people: u8,
}

#[derive(Form)]
struct When {
    #[form(format = "date")]
    date: String,
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    restaurant: String,
}

/// Two questions at once.
pub(crate) async fn both(ask: Ask) -> Result<String, ToolError> {
    let (party, when) =
        try_join!(ask.form::<Party>("party", "How many people?"), ask.form::<When>("when", "Which day?"),)?;
    Ok(format!("{} on {}", party.people, when.date))
}

/// One question.
pub(crate) async fn party(ask: Ask) -> Result<String, ToolError> {
    let party: Party = ask.form("party", "How many people?").await?;
    Ok(format!("for {}", party.people))
}

pub(crate) fn endpoint(tools: impl IntoIterator<Item = Tool>) -> Endpoint {
    let server = Server::new("rounds", "1");
    tools.into_iter().fold(server, Server::tool).build().expect("a server")
}

pub(crate) fn question_of_the_model() -> CreateMessageRequestParams {
    let said: SamplingMessage =
        serde_json::from_value(json!({ "role": "user", "content": { "type": "text", "text": "Capital?" } }))
            .expect("a message");
    CreateMessageRequestParams { messages: vec![said], max_tokens: 10, ..Default::default() }
}

fn with_tools() -> CreateMessageRequestParams {
    let tool =
        serde_json::from_value::<WireTool>(json!({ "name": "t", "inputSchema": { "type": "object" } }));
    CreateMessageRequestParams { tools: vec![tool.expect("a tool")], ..question_of_the_model() }
}

fn with_context() -> CreateMessageRequestParams {
    CreateMessageRequestParams {
        include_context: Some(IncludeContext::ThisServer),
        ..question_of_the_model()
    }
}

pub(crate) fn said_by_the_model() -> Value {
    json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" })
}

/// M1: the lists, discovery and completion answer completely and at once, whatever state and answers they are sent.
#[tokio::test]
async fn other_methods_never_ask() {
    let server = Server::new("rounds", "1")
        .tool(Tool::new("party", party))
        .template(
            ResourceTemplate::new("app://{restaurant}", "t", async |Args(Booking { restaurant })| restaurant)
                .complete("restaurant", async |partial: Partial| partial.starting(["x"])),
        )
        .resource(Resource::new("app://r", "r", async || "r"));
    let running = Running::start(server).await;
    let complete = json!({ "ref": { "type": "ref/resource", "uri": "app://{restaurant}" }, "argument": { "name": "restaurant", "value": "" } });
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", complete),
    ] {
        let mut params = params;
        params["requestState"] = json!("anything");
        params["inputResponses"] = json!({ "party": accept(&json!({ "people": 2 })) });
        let result = running.call(method, params).await.result();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result.get("inputRequests"), None, "{method}");
        assert_eq!(result.get("requestState"), None, "{method}");
    }
}

/// M2: each question has its own key and is one of the three requests, in the specification's form.
#[tokio::test]
async fn questions_are_the_three_requests_by_key() {
    let all = Tool::new("all", async |ask: Ask| {
        let asked = try_join!(
            ask.form::<Party>("form", "How many people?"),
            ask.url("page", "Please sign in", "https://id.example/in"),
            ask.sample("model", question_of_the_model()),
            ask.roots("roots"),
        );
        asked.map(|_| "all").map_err(ToolError::from)
    });
    let running = Running::start(Server::new("rounds", "1").tool(all)).await;
    let call = Call::tool("all").request(None, None);
    let answer = running.connect().await.post(&headers(&call), call.to_string().as_bytes()).await;
    assert_eq!(answer.status, 200);
    let turn = Turn::of(&answer);
    assert_eq!(turn.result()["resultType"], "input_required");
    assert_eq!(turn.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "rounds");
    assert_eq!(
        turn.result()["inputRequests"],
        json!({
            "form": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "How many people?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {
                            "people": { "type": "integer", "description": "How many people?", "minimum": 1, "maximum": 12 }
                        },
                        "required": ["people"],
                    },
                },
            },
            "page": {
                "method": "elicitation/create",
                "params": { "mode": "url", "message": "Please sign in", "url": "https://id.example/in" },
            },
            "model": {
                "method": "sampling/createMessage",
                "params": {
                    "messages": [{ "role": "user", "content": { "type": "text", "text": "Capital?" } }],
                    "maxTokens": 10,
                },
            },
            "roots": { "method": "roots/list" },
        })
    );
}

/// M3: a round that asks nothing and keeps nothing cannot be made: by hand it is an error that says so, and every
/// other round has questions or state.
#[tokio::test]
async fn a_round_has_questions_or_state() {
    let endpoint = endpoint([
        Tool::new("nothing", async |round: Round| round.ask::<CallToolResult>([])),
        Tool::new("nothing_by_key", async |round: Round| round.by_key_alone().ask::<CallToolResult>([])),
        Tool::new("state", async |round: Round| round.hand_off::<CallToolResult>(&1)),
        Tool::new("null", async |round: Round| round.by_key_alone().hand_off::<CallToolResult>(&())),
        Tool::new("question", async |round: Round| {
            round.by_key_alone().ask::<CallToolResult>([Question::form::<Party>("party", "How many?")])
        }),
    ]);
    for tool in ["nothing", "nothing_by_key"] {
        let turn = Call::tool(tool).begin(&endpoint).await;
        assert_eq!(turn.error(), (-32603, "a round that asks needs a question"));
    }
    for tool in ["state", "null"] {
        let turn = Call::tool(tool).begin(&endpoint).await;
        assert_eq!(turn.keys(), [""; 0], "{tool}");
        assert_eq!(turn.result().get("inputRequests"), None, "{tool}: absent, not empty");
        assert!(turn.state().is_some(), "{tool}");
    }
    let turn = Call::tool("question").begin(&endpoint).await;
    assert_eq!((turn.keys(), turn.state()), (vec!["party"], None));
}

/// M4: state that does not open is refused before anything runs, also by a tool, a prompt and a resource that never
/// ask.
#[tokio::test]
async fn state_that_does_not_open_is_refused_everywhere() {
    let runs = Arc::new(AtomicUsize::new(0));
    async fn counted(State(runs): State<Arc<AtomicUsize>>) -> String {
        runs.fetch_add(1, Ordering::SeqCst);
        "ran".into()
    }
    let server = Server::new("rounds", "1")
        .state(Arc::clone(&runs))
        .tool(Tool::new("plain", counted))
        .tool(Tool::new("party", party))
        .prompt(Prompt::new("plain", counted))
        .resource(Resource::new("app://plain", "plain", counted));
    let http = server.into_http().expect("a server");
    let endpoint = http.endpoint().clone();
    let running = Running::start_http(http).await;
    let of_another_tool = Call::tool("party").begin(&endpoint).await.state().expect("state").to_owned();
    for call in [Call::tool("plain"), Call::prompt("plain"), Call::resource("app://plain")] {
        for state in ["", "x", "eyJhIjoxfQ", "\u{0}", "é", &"A".repeat(100_000), &of_another_tool] {
            let request = call.request(Some(state), None);
            let answer =
                running.connect().await.post(&headers(&request), request.to_string().as_bytes()).await;
            assert_eq!(answer.refusal(), (200, -32602), "{state:.20}");
            assert_eq!(answer.json()["error"]["message"], "Invalid or expired requestState");
            assert_eq!(answer.json()["error"]["data"], json!({ "reason": "invalid_request_state" }));
        }
        let request = call.request(None, None);
        let answer = running.connect().await.post(&headers(&request), request.to_string().as_bytes()).await;
        assert!(Turn::of(&answer).text().contains("ran"));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 3, "only the calls without a state ran");
}

/// M5: a state is good for its own method, target, arguments and principal, and for nothing else.
#[tokio::test]
async fn a_state_is_good_for_its_own_call_only() {
    async fn book(Args(_): Args<Booking>, ask: Ask) -> Result<String, ToolError> {
        party(ask).await
    }
    async fn prompt(ask: Ask) -> Result<String, AskError> {
        Ok(ask.form::<Party>("party", "How many people?").await?.people.to_string())
    }
    let endpoint = Server::new("rounds", "1")
        .tool(Tool::new("book", book))
        .tool(Tool::new("rebook", book))
        .prompt(Prompt::new("book", prompt))
        .build()
        .expect("a server");
    let own = Call::tool("book").with(json!({ "restaurant": "Nopa" })).by("alice");
    let asked = own.begin(&endpoint).await;
    let answers = json!({ "party": accept(&json!({ "people": 2 })) });
    let others = [
        Call::tool("rebook").with(json!({ "restaurant": "Nopa" })).by("alice"),
        Call::tool("book").with(json!({ "restaurant": "Delfina" })).by("alice"),
        Call::tool("book").with(json!({ "restaurant": "Nopa", "more": null })).by("alice"),
        Call::tool("book").by("alice"),
        Call::tool("book").with(json!({ "restaurant": "Nopa" })).by("mallory"),
        Call::tool("book").with(json!({ "restaurant": "Nopa" })),
        Call::prompt("book").with(json!({ "restaurant": "Nopa" })).by("alice"),
    ];
    for (index, other) in others.iter().enumerate() {
        let turn = other.answer(&endpoint, &asked, answers.clone()).await;
        assert_eq!(turn.error(), (-32602, "Invalid or expired requestState"), "{index}");
    }
    assert_eq!(own.answer(&endpoint, &asked, answers).await.text(), "for 2");
}

/// M7: only what the request's own capabilities declare is asked; the rest is -32021 and 400, and names what is
/// missing.
#[tokio::test]
async fn only_what_the_client_can_answer_is_asked() {
    let tools = [
        Tool::new("form", async |ask: Ask| ask.form::<Party>("k", "?").await.map(|_| "x")),
        Tool::new("form_by_hand", async |round: Round| {
            round.ask::<CallToolResult>([Question::form::<Party>("k", "?")])
        }),
        Tool::new("confirm", async |ask: Ask| ask.confirm("k", "?").await.map(|_| "x")),
        Tool::new("url", async |ask: Ask| ask.url("k", "?", "https://x.example").await.map(|()| "x")),
        Tool::new("sample", async |ask: Ask| ask.sample("k", question_of_the_model()).await.map(|_| "x")),
        Tool::new("sample_tools", async |ask: Ask| ask.sample("k", with_tools()).await.map(|_| "x")),
        Tool::new("sample_context", async |ask: Ask| ask.sample("k", with_context()).await.map(|_| "x")),
        Tool::new("roots", async |ask: Ask| ask.roots("k").await.map(|_| "x")),
    ];
    let running = Running::start(tools.into_iter().fold(Server::new("rounds", "1"), Server::tool)).await;
    let form = json!({ "elicitation": { "form": {} } });
    let url = json!({ "elicitation": { "url": {} } });
    let sample = json!({ "sampling": {} });
    let sample_tools = json!({ "sampling": { "tools": {} } });
    let sample_context = json!({ "sampling": { "context": {} } });
    let roots = json!({ "roots": {} });
    let cases = [
        ("form", &form, vec![json!({}), url.clone(), sample_tools.clone(), roots.clone()]),
        ("form_by_hand", &form, vec![json!({}), url.clone()]),
        ("confirm", &form, vec![json!({}), url.clone()]),
        ("url", &url, vec![json!({}), form.clone(), json!({ "elicitation": {} })]),
        ("sample", &sample, vec![json!({}), form.clone(), roots.clone()]),
        ("sample_tools", &sample_tools, vec![json!({}), sample.clone()]),
        ("sample_context", &sample_context, vec![json!({}), sample.clone(), sample_tools.clone()]),
        ("roots", &roots, vec![json!({}), everything_but("roots")]),
    ];
    for (tool, enough, too_little) in cases {
        let mut connection = running.connect().await;
        let request = Call::tool(tool).declaring(enough).request(None, None);
        let answer = connection.post(&headers(&request), request.to_string().as_bytes()).await;
        assert_eq!(Turn::of(&answer).keys(), ["k"], "{tool}");
        for capabilities in too_little {
            let request = Call::tool(tool).declaring(&capabilities).request(None, None);
            let answer = connection.post(&headers(&request), request.to_string().as_bytes()).await;
            assert_eq!(answer.refusal(), (400, -32021), "{tool} {capabilities}");
            assert_eq!(answer.json()["error"]["data"]["requiredCapabilities"], *enough, "{tool}");
        }
    }
}

fn everything_but(left_out: &str) -> Value {
    let mut all = everything();
    all.as_object_mut().expect("an object").remove(left_out);
    all
}

/// M7: a handler can see what may be asked, and do without.
#[tokio::test]
async fn a_handler_sees_what_may_be_asked() {
    async fn polite(ask: Ask) -> Result<String, ToolError> {
        let may = ask.may();
        let people = if may.form.is_ok() { ask.form::<Party>("party", "?").await?.people } else { 2 };
        let rest = [may.url, may.sample, may.sample_with_tools, may.roots].map(|may| may.is_ok().to_string());
        Ok(format!("{people} {}", rest.join(" ")))
    }
    let endpoint = endpoint([Tool::new("polite", polite)]);
    for (capabilities, text) in [
        (json!({}), "2 false false false false"),
        (json!({ "elicitation": { "url": {} } }), "2 true false false false"),
        (json!({ "sampling": {}, "roots": {} }), "2 false true false true"),
        (json!({ "sampling": { "tools": {} } }), "2 false true true false"),
    ] {
        let turn = Call::tool("polite").declaring(&capabilities).begin(&endpoint).await;
        assert_eq!(turn.text(), text, "{capabilities}");
    }
    let turn = Call::tool("polite").declaring(&json!({ "elicitation": {} })).begin(&endpoint).await;
    assert_eq!(turn.keys(), ["party"]);
}

/// M7: what counts is the request at hand: a retry that no longer declares a kind is not asked it again, but its
/// answers are taken.
#[tokio::test]
async fn capabilities_are_those_of_the_round() {
    let endpoint = endpoint([Tool::new("both", both)]);
    let able = Call::tool("both");
    let unable = able.clone().declaring(&json!({}));
    let asked = able.begin(&endpoint).await;
    let party = json!({ "party": accept(&json!({ "people": 2 })) });
    assert_eq!(unable.answer(&endpoint, &asked, party).await.error().0, -32021);
    let all =
        json!({ "party": accept(&json!({ "people": 2 })), "when": accept(&json!({ "date": "2026-10-03" })) });
    assert_eq!(unable.answer(&endpoint, &asked, all).await.text(), "2 on 2026-10-03");
}

/// M15: on a stream the questions are the last message, and the stream ends with them.
#[tokio::test]
async fn on_a_stream_the_questions_come_last() {
    async fn slow(progress: Progress, ask: Ask) -> Result<String, ToolError> {
        progress.report((1, 3));
        tokio::task::yield_now().await;
        progress.report((2, 3));
        let party: Party = ask.form("party", "How many people?").await?;
        progress.report((3, 3));
        Ok(format!("for {}", party.people))
    }
    let running = Running::start(Server::new("rounds", "1").tool(Tool::new("slow", slow))).await;
    let mut meta = meta();
    meta["progressToken"] = json!("p");
    meta["io.modelcontextprotocol/clientCapabilities"] = everything();
    let first = message(1, "tools/call", json!({ "name": "slow", "_meta": meta }));
    let mut connection = running.connect().await;
    let events = connection.post(&headers(&first), first.to_string().as_bytes()).await.events();
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events[..2].iter().all(|event| event["method"] == "notifications/progress"));
    assert_eq!(Turn(events[2].clone()).keys(), ["party"]);
    assert_eq!(events[2]["id"], 1);

    let mut second = first;
    second["id"] = json!(2);
    second["params"]["requestState"] = events[2]["result"]["requestState"].clone();
    second["params"]["inputResponses"] = json!({ "party": accept(&json!({ "people": 2 })) });
    let events = connection.post(&headers(&second), second.to_string().as_bytes()).await.events();
    assert_eq!(Turn(events[events.len() - 1].clone()).text(), "for 2");
}

/// M22: prompts, resources and templates ask exactly as tools do, inline and by hand.
#[tokio::test]
async fn prompts_resources_and_templates_ask_as_tools_do() {
    async fn inline(ask: Ask) -> Result<String, AskError> {
        let (party, when) = try_join!(
            ask.form::<Party>("party", "How many people?"),
            ask.form::<When>("when", "Which day?")
        )?;
        Ok(format!("{} on {}", party.people, when.date))
    }
    async fn prompt(round: Round) -> Result<Reply<GetPromptResult>, ErrorObject> {
        let Some(party) = round.answer::<Party>("party")? else {
            return Ok(round.ask([Question::form::<Party>("party", "How many people?")]));
        };
        let message = serde_json::from_value(
            json!({ "role": "user", "content": { "type": "text", "text": format!("for {}", party.people) } }),
        );
        Ok(Reply::complete(GetPromptResult {
            messages: vec![message.expect("a message")],
            ..Default::default()
        }))
    }
    async fn resource(round: Round) -> Result<Reply<ReadResourceResult>, ErrorObject> {
        let Some(party) = round.answer::<Party>("party")? else {
            return Ok(round.ask([Question::form::<Party>("party", "How many people?")]));
        };
        let contents = json!([{ "uri": "app://by-hand", "text": format!("for {}", party.people) }]);
        let contents = serde_json::from_value(contents).expect("contents");
        Ok(Reply::complete(ReadResourceResult { contents, ..Default::default() }))
    }
    let endpoint = Server::new("rounds", "1")
        .prompt(Prompt::new("inline", inline))
        .prompt(Prompt::new("by_hand", prompt))
        .resource(Resource::new("app://inline", "inline", inline))
        .resource(Resource::new("app://by-hand", "by hand", resource))
        .template(ResourceTemplate::new(
            "app://table/{restaurant}",
            "table",
            async |Args(_): Args<Booking>, ask: Ask| inline(ask).await,
        ))
        .build()
        .expect("a server");
    for call in [Call::prompt("inline"), Call::resource("app://inline"), Call::resource("app://table/nopa")] {
        let first = call.begin(&endpoint).await;
        assert_eq!(first.keys(), ["party", "when"]);
        let second = call.answer(&endpoint, &first, json!({ "party": accept(&json!({ "people": 99 })), "when": accept(&json!({ "date": "2026-10-03" })) })).await;
        assert_eq!(second.keys(), ["party"]);
        assert!(second.told("party").contains("at most 12"));
        let done = call.answer(&endpoint, &second, json!({ "party": accept(&json!({ "people": 2 })) })).await;
        assert_eq!(done.text(), "2 on 2026-10-03");
        let declined = json!({ "party": { "action": "decline" }, "when": { "action": "decline" } });
        let refused = call.answer(&endpoint, &first, declined).await;
        assert!(refused.error().1.contains("declined"), "{refused:?}");
    }
    for call in [Call::prompt("by_hand"), Call::resource("app://by-hand")] {
        let first = call.begin(&endpoint).await;
        assert_eq!(first.keys(), ["party"]);
        let done = call.answer(&endpoint, &first, json!({ "party": accept(&json!({ "people": 2 })) })).await;
        assert_eq!(done.text(), "for 2");
    }
    let first = Call::resource("app://table/nopa").begin(&endpoint).await;
    let elsewhere = Call::resource("app://table/delfina").answer(&endpoint, &first, json!({})).await;
    assert_eq!(elsewhere.error().0, -32602, "a state is of one resource");
}

/// M23: an effect inside `once` happens once in a flow, and its result is there in every later round.
#[tokio::test]
async fn an_effect_inside_once_is_not_repeated() {
    #[derive(Serialize, Deserialize)]
    struct Hold {
        number: usize,
    }
    async fn hold(State(held): State<Arc<AtomicUsize>>, ask: Ask) -> Result<String, ToolError> {
        let hold: Hold = ask
            .once("hold", async |_| {
                Ok::<_, ToolError>(Hold { number: held.fetch_add(1, Ordering::SeqCst) + 1 })
            })
            .await?;
        for turn in 0..4 {
            ask.confirm(format!("sure-{turn}"), "Sure?").await?;
        }
        Ok(format!("hold {}", hold.number))
    }
    let held = Arc::new(AtomicUsize::new(0));
    let server = Server::new("rounds", "1").state(Arc::clone(&held)).tool(Tool::new("hold", hold));
    let endpoint = server.build().expect("a server");
    let call = Call::tool("hold");
    let mut turn = call.begin(&endpoint).await;
    for round in 0..4 {
        let answer = json!({ format!("sure-{round}"): accept(&json!({ "confirm": true })) });
        turn = call.answer(&endpoint, &turn, answer).await;
    }
    assert_eq!(turn.text(), "hold 1");
    assert_eq!(held.load(Ordering::SeqCst), 1);
    call.begin(&endpoint).await;
    assert_eq!(held.load(Ordering::SeqCst), 2, "another flow has its own");
}
