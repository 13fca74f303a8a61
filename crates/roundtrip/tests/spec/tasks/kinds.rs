//! Tasks that ask for everything: forms, web pages, the model and the roots; inline, by hand, as parameters and in resolvers.

use roundtrip::server::{Page, Roots, Sampled, Samples, Visited, Visits};
use roundtrip::wire::{CreateMessageRequestParams, JsonObject};
use roundtrip::{Ask, Asked, Form, MemoryTasks, Resolve, Resolved, Server, Tasks, Tool, ToolError, When};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sep_2322::related;
use super::{TaskClient, text};
use crate::by_hand::{self, kinds};
use crate::support::accept;

#[derive(Form)]
#[form(key = "table", message = "Which table?")]
struct Table {
    name: String,
}

/// Asks for each kind inline, all at once.
async fn inline(ask: Ask) -> Result<String, ToolError> {
    let (table, (), sure, said, roots) = tokio::try_join!(
        ask.form::<Table>("table", "Which table?"),
        ask.url("page", "Please sign in", "https://id.example/in"),
        ask.confirm("sure", "Sure?"),
        ask.sample("model", CreateMessageRequestParams::text("Say hello", 10)),
        ask.roots("roots"),
    )?;
    Ok(told(&table, sure, said.text(), roots.len()))
}

fn told(table: &Table, sure: bool, said: impl std::fmt::Display, roots: usize) -> String {
    format!("\"{}\" 2 {sure} {said} {roots}", table.name)
}

struct Hello;

impl Samples for Hello {
    const KEY: &'static str = "model";

    fn request(_: &JsonObject) -> CreateMessageRequestParams {
        CreateMessageRequestParams::text("Say hello", 10)
    }
}

struct SignIn;

impl Visits for SignIn {
    const KEY: &'static str = "page";

    fn page(_: &JsonObject) -> Page {
        Page::new("Please sign in", "https://id.example/in")
    }
}

#[derive(Form)]
#[form(key = "sure", message = "Sure?")]
struct Sure {
    confirm: bool,
}

/// Takes each kind as a parameter.
async fn parameters(
    Asked(table): Asked<Table>,
    _: Asked<Visited<SignIn>>,
    Asked(sure): Asked<Sure>,
    Asked(said): Asked<Sampled<Hello>>,
    Asked(Roots(roots)): Asked<Roots>,
) -> String {
    told(&table, sure.confirm, said.text(), roots.len())
}

/// A visit to a web page.
#[derive(Serialize, Deserialize)]
struct SignedIn(bool);

impl Resolve for SignedIn {
    const KEY: &'static str = "signed in";
    type From = ();

    async fn resolve((): (), ask: Ask) -> Result<Self, ToolError> {
        ask.url("page", "Please sign in", "https://id.example/in").await?;
        Ok(Self(ask.confirm("sure", "Sure?").await?))
    }
}

/// Words of the client's model, for those who have signed in, and the number of its roots.
#[derive(Serialize, Deserialize)]
struct Words(bool, String, usize);

impl Resolve for Words {
    const KEY: &'static str = "words";
    type From = (Resolved<SignedIn>,);

    async fn resolve((Resolved(SignedIn(sure)),): Self::From, ask: Ask) -> Result<Self, ToolError> {
        let request = CreateMessageRequestParams::text("Say hello", 10);
        let (said, roots) = tokio::try_join!(ask.sample("model", request), ask.roots("roots"))?;
        Ok(Self(sure, said.text().to_string(), roots.len()))
    }
}

/// Has resolvers ask for each kind, one round after the other.
async fn resolved(Asked(table): Asked<Table>, Resolved(words): Resolved<Words>) -> String {
    let Words(sure, said, roots) = words;
    told(&table, sure, said, roots)
}

/// The answer to a question of this method and these parameters.
pub(crate) fn answer(question: &Value) -> Value {
    let params = &question["params"];
    match question["method"].as_str() {
        Some("sampling/createMessage") => by_hand::said("hello"),
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///a" }] }),
        Some("elicitation/create") if params["mode"] == "url" => {
            assert_eq!(params["url"], "https://id.example/in");
            json!({ "action": "accept" })
        }
        Some("elicitation/create") if params["requestedSchema"]["properties"].get("name").is_some() => {
            accept(&json!({ "name": "Ada" }))
        }
        Some("elicitation/create") => accept(&json!({ "confirm": true })),
        _ => panic!("no question: {question}"),
    }
}

/// Answers to all that a task asks.
fn answers(asked: &Value) -> Value {
    let asked = asked["inputRequests"].as_object().expect("questions");
    asked
        .iter()
        .map(|(key, question)| (key.clone(), answer(question)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(crate) const TOLD: &str = "\"Ada\" 2 true hello 1";

/// A server with a tool of each style, and how many rounds each takes.
pub(crate) fn styles(tasks: Tasks) -> (Server, [(&'static str, usize); 4]) {
    let server = Server::new("kinds", "1.0.0")
        .tool(Tool::new("inline", inline).task(When::Required))
        .tool(Tool::new("by_hand", kinds).task(When::Required))
        .tool(Tool::new("parameters", parameters).task(When::Required))
        .tool(Tool::new("resolved", resolved).task(When::Required))
        .tasks(tasks);
    (server, [("inline", 1), ("by_hand", 1), ("parameters", 1), ("resolved", 3)])
}

/// T3, A1, A12: a task asks for forms, web pages, the model and the roots in every style of handler, in the dialect of the extension.
#[tokio::test]
async fn a_task_asks_for_every_kind_in_the_extension() {
    let (server, styles) = styles(Tasks::new(MemoryTasks::new()));
    let client = TaskClient::of(server);
    for (tool, rounds) in styles {
        let id = client.start(tool, json!({})).await;
        for _ in 0..rounds {
            let asked = client.asks(&id).await;
            client.update(&id, answers(&asked)).await;
        }
        assert_eq!(text(&client.ended(&id).await), TOLD, "{tool}");
    }
}

/// T21, T22, A1, A12: and in the dialect of SEP-2322.
#[tokio::test]
async fn a_task_asks_for_every_kind_in_sep_2322() {
    let (server, styles) = styles(Tasks::new(MemoryTasks::new()).sep_2322());
    let client = TaskClient::of(server).sep_2322();
    for (tool, rounds) in styles {
        let created = client.result("tools/call", json!({ "name": tool, "task": {} })).await;
        let id = created["task"]["taskId"].as_str().expect("an id");
        for _ in 0..rounds {
            let asked = client.result("tasks/result", json!({ "taskId": id })).await;
            let answers = json!({ "inputResponses": answers(&asked), "_meta": related(id) });
            client.result("tasks/input_response", answers).await;
        }
        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(result["content"][0]["text"], TOLD, "{tool}");
    }
}

/// A12, M7: a web page is a parameter: declined, it ends the call; a client that opens none is not asked.
#[tokio::test]
async fn a_web_page_is_a_parameter() {
    async fn terms(_: Asked<Visited<SignIn>>, Asked(again): Asked<Option<Table>>) -> String {
        again.map_or_else(|| "read".to_owned(), |table| table.name)
    }
    let endpoint = crate::mrtr_server::endpoint([Tool::new("terms", terms)]);
    let call = crate::support::Call::tool("terms");
    let first = call.begin(&endpoint).await;
    assert_eq!(first.keys(), ["page", "table"]);
    let page = json!({ "mode": "url", "message": "Please sign in", "url": "https://id.example/in" });
    let mut shown = first.question("page")["params"].clone();
    shown.as_object_mut().expect("an object").retain(|name, _| page.get(name).is_some());
    assert_eq!(shown, page);
    let both = |page: &str| json!({ "page": { "action": page }, "table": { "action": "decline" } });
    assert_eq!(call.answer(&endpoint, &first, both("accept")).await.text(), "read");
    assert!(call.answer(&endpoint, &first, both("decline")).await.failure().contains("page"));
    let forms = call.declaring(&json!({ "elicitation": { "form": {} } }));
    assert_eq!(forms.begin(&endpoint).await.error().0, -32021);
}
