//! The flows that SEP-2322 prints, message by message: what the client sends is sent, and what the server sends must
//! be what is printed. State is opaque, so of that only its presence is compared.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::form::{Definition, Problems, check};
use roundtrip::seal::{Key, Keyring};
use roundtrip::server::Endpoint;
use roundtrip::wire::{
    ElicitSchema, JsonObject, NumberSchema, PrimitiveSchemaDefinition, UntitledSingleSelectEnumSchema,
};
use roundtrip::{Args, Ask, Form, Question, Reply, Round, Server, State, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::try_join;

use crate::support::{Answer, Running, everything, headers, meta};

#[derive(Form)]
struct Login {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    location: String,
}

/// Instances of one service share this.
fn ring() -> Keyring {
    Keyring::new([Key::generate([5; 32])]).expect("a ring")
}

/// Sends a printed request, with the `_meta` that the print leaves out.
async fn send(running: &Running, mut printed: Value) -> Answer {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = everything();
    printed["params"]["_meta"] = meta;
    running.connect().await.post(&headers(&printed), printed.to_string().as_bytes()).await
}

/// What came must be what is printed, but for the server's name, for the mode that a form may leave out, and for the
/// state, which is given back.
#[track_caller]
fn assert_printed(answer: &Answer, mut printed: Value) -> Option<String> {
    let mut came = answer.json();
    let result = came["result"].as_object_mut().unwrap_or_else(|| panic!("a result: {answer:?}"));
    result.remove("_meta");
    let state = result.remove("requestState").map(|state| state.as_str().expect("text").to_owned());
    let stated = printed["result"].as_object_mut().expect("a result").remove("requestState");
    assert_eq!(state.is_some(), stated.is_some(), "there is a state where one is printed, and only there");
    let asked = printed["result"].get_mut("inputRequests").and_then(Value::as_object_mut);
    for (key, asked) in asked.into_iter().flatten() {
        if asked["method"] == "elicitation/create" && asked["params"].get("mode").is_none() {
            assert_eq!(result["inputRequests"][key]["params"]["mode"], "form");
            asked["params"]["mode"] = json!("form");
        }
    }
    // That nothing went wrong need not be said.
    if result.get("resultType") == Some(&json!("complete")) {
        result.entry("isError").or_insert(json!(false));
    }
    assert_eq!(came, printed);
    state
}

fn github() -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Please provide your GitHub username",
            "requestedSchema": {
                "type": "object",
                "properties": { "name": { "type": "string" } },
                "required": ["name"],
            },
        },
    })
}

/// M9: the basic flow of the proposal, the weather for whoever signs in, as it is printed.
#[tokio::test]
async fn the_weather_flow_runs_as_printed() {
    async fn weather(Args(place): Args<Place>, ask: Ask) -> Result<String, ToolError> {
        let _: Login = ask.form("github_login", "Please provide your GitHub username").await?;
        Ok(format!("Current weather in {}:\nTemperature: 72°F\nConditions: Partly cloudy", place.location))
    }
    let running = Running::start(Server::new("weather", "1").tool(Tool::new("get_weather", weather))).await;
    let mut call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "get_weather", "arguments": { "location": "New York" } },
    });
    let state = assert_printed(
        &send(&running, call.clone()).await,
        json!({
            "jsonrpc": "2.0", "id": 2,
            "result": {
                "resultType": "input_required",
                "inputRequests": { "github_login": github() },
                "requestState": "foo",
            },
        }),
    );
    call["id"] = json!(3);
    call["params"]["inputResponses"] =
        json!({ "github_login": { "action": "accept", "content": { "name": "octocat" } } });
    call["params"]["requestState"] = json!(state);
    assert_printed(
        &send(&running, call).await,
        json!({
            "jsonrpc": "2.0", "id": 3,
            "result": {
                "resultType": "complete",
                "content": [{
                    "type": "text",
                    "text": "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
                }],
                "isError": false,
            },
        }),
    );
}

async fn weather_by_hand(Args(place): Args<Place>, round: Round) -> Result<Reply, ToolError> {
    let round = round.by_key_alone();
    let Some(Login { name }) = round.answer("github_login")? else {
        let message = "Please provide your GitHub username";
        return Ok(round.ask([Question::form::<Login>("github_login", message)]));
    };
    Ok(Reply::text(format!("Sunny in {}, {name}", place.location)))
}

/// M9, M10, M19: the error of the ephemeral workflow as it is printed, without state on either side: an answer that nobody asked for is
/// ignored, and what is missing is asked for again. The print has one slip, a response with the `id` of another request.
#[tokio::test]
async fn the_ephemeral_error_is_asked_again_as_printed() {
    let server = Server::new("weather", "1").tool(Tool::new("get_weather", weather_by_hand));
    let running = Running::start(server).await;
    let mut call = json!({
        "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {
            "name": "get_weather",
            "arguments": { "location": "New York" },
            "inputResponses": {
                "not_requested_info": {
                    "action": "accept",
                    "content": { "not_requested_param_name": "Information the server did not request" },
                },
            },
        },
    });
    let asked = json!({
        "jsonrpc": "2.0", "id": 3,
        "result": {
            "resultType": "input_required",
            "inputRequests": { "github_login": github() },
        },
    });
    assert_eq!(assert_printed(&send(&running, call.clone()).await, asked), None);
    call["id"] = json!(4);
    call["params"]["inputResponses"] =
        json!({ "github_login": { "action": "accept", "content": { "name": "octocat" } } });
    let done = send(&running, call).await.result();
    assert_eq!(done["content"][0]["text"], "Sunny in New York, octocat");
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Update {
    work_item_id: u64,
    fields: std::collections::BTreeMap<String, String>,
}

struct Resolution(String);

impl Form for Resolution {
    fn definition() -> &'static Definition {
        static DEFINITION: std::sync::LazyLock<Definition> = std::sync::LazyLock::new(|| {
            let choice = UntitledSingleSelectEnumSchema {
                description: Some("Resolution type for this bug".into()),
                values: ["Fixed", "Won't Fix", "Duplicate", "By Design"].map(Into::into).into(),
                ..Default::default()
            };
            Definition::new(ElicitSchema {
                properties: vec![(
                    "resolution".into(),
                    PrimitiveSchemaDefinition::UntitledSingleSelect(choice),
                )],
                required: vec!["resolution".into()],
                ..Default::default()
            })
        });
        &DEFINITION
    }

    fn from_content(content: &JsonObject) -> Result<Self, Problems> {
        let content = check(Self::definition().schema(), content)?;
        Ok(Self(content["resolution"].as_str().unwrap_or_default().to_owned()))
    }
}

struct DuplicateOf(f64);

impl Form for DuplicateOf {
    fn definition() -> &'static Definition {
        static DEFINITION: std::sync::LazyLock<Definition> = std::sync::LazyLock::new(|| {
            let number = NumberSchema {
                description: Some("Work item ID of the original bug".into()),
                ..Default::default()
            };
            Definition::new(ElicitSchema {
                properties: vec![("duplicateOfId".into(), PrimitiveSchemaDefinition::Number(number))],
                required: vec!["duplicateOfId".into()],
                ..Default::default()
            })
        });
        &DEFINITION
    }

    fn from_content(content: &JsonObject) -> Result<Self, Problems> {
        let content = check(Self::definition().schema(), content)?;
        Ok(Self(content["duplicateOfId"].as_f64().unwrap_or_default()))
    }
}

async fn update_work_item(Args(update): Args<Update>, round: Round) -> Result<Reply, ToolError> {
    let (round, bug) = (round.by_key_alone(), update.work_item_id);
    if update.fields.get("System.State").map(String::as_str) != Some("Resolved") {
        return Ok(Reply::text(format!("Bug #{bug} updated.")));
    }
    let Some(Resolution(resolution)) = round.answer("resolution")? else {
        let message = format!("Resolving Bug #{bug} requires a resolution. How was this bug resolved?");
        return Ok(round.ask([Question::form::<Resolution>("resolution", message)]));
    };
    if resolution != "Duplicate" {
        return Ok(Reply::text(format!("Bug #{bug} resolved as {resolution}.")));
    }
    let Some(DuplicateOf(original)) = round.answer("duplicate_of")? else {
        let message = Cow::Borrowed("Since this is a duplicate, which work item is the original?");
        return Ok(round.ask([Question::form::<DuplicateOf>("duplicate_of", message)]));
    };
    Ok(Reply::text(format!(
        "Bug #{bug} resolved as Duplicate of Bug #{original}. State set to Resolved and duplicate link created."
    )))
}

fn work_items() -> Server {
    Server::new("work-items", "1").seal(ring()).tool(Tool::new("update_work_item", update_work_item))
}

fn work_item_call() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "update_work_item",
            "arguments": { "workItemId": 4522, "fields": { "System.State": "Resolved" } },
        },
    })
}

/// M19: the work-item flow of the proposal runs as it is printed, a first round without state included, each round on
/// another instance.
#[tokio::test]
async fn the_work_item_flow_runs_as_printed() {
    let (one, two) = (Running::start(work_items()).await, Running::start(work_items()).await);
    let mut call = work_item_call();
    let state = assert_printed(
        &send(&one, call.clone()).await,
        json!({
            "jsonrpc": "2.0", "id": 1,
            "result": {
                "resultType": "input_required",
                "inputRequests": {
                    "resolution": {
                        "method": "elicitation/create",
                        "params": {
                            "message": "Resolving Bug #4522 requires a resolution. How was this bug resolved?",
                            "requestedSchema": {
                                "type": "object",
                                "properties": {
                                    "resolution": {
                                        "type": "string",
                                        "enum": ["Fixed", "Won't Fix", "Duplicate", "By Design"],
                                        "description": "Resolution type for this bug",
                                    },
                                },
                                "required": ["resolution"],
                            },
                        },
                    },
                },
            },
        }),
    );
    assert_eq!(state, None);
    call["id"] = json!(2);
    call["params"]["inputResponses"] =
        json!({ "resolution": { "action": "accept", "content": { "resolution": "Duplicate" } } });
    let state = assert_printed(
        &send(&two, call.clone()).await,
        json!({
            "jsonrpc": "2.0", "id": 2,
            "result": {
                "resultType": "input_required",
                "inputRequests": {
                    "duplicate_of": {
                        "method": "elicitation/create",
                        "params": {
                            "message": "Since this is a duplicate, which work item is the original?",
                            "requestedSchema": {
                                "type": "object",
                                "properties": {
                                    "duplicateOfId": {
                                        "type": "number",
                                        "description": "Work item ID of the original bug",
                                    },
                                },
                                "required": ["duplicateOfId"],
                            },
                        },
                    },
                },
                "requestState": "eyJyZXNvbHV0aW9uIjoiRHVwbGljYXRlIn0...",
            },
        }),
    );
    call["id"] = json!(3);
    call["params"]["inputResponses"] =
        json!({ "duplicate_of": { "action": "accept", "content": { "duplicateOfId": 4301 } } });
    call["params"]["requestState"] = json!(state);
    assert_printed(
        &send(&one, call).await,
        json!({
            "jsonrpc": "2.0", "id": 3,
            "result": {
                "resultType": "complete",
                "content": [{
                    "type": "text",
                    "text": "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
                }],
                "isError": false,
            },
        }),
    );
}

/// M19: answers by key alone are held against their form all the same, and refusals are refusals.
#[tokio::test]
async fn answers_by_key_alone_are_validated() {
    let running = Running::start(work_items()).await;
    let mut call = work_item_call();
    call["params"]["inputResponses"] =
        json!({ "resolution": { "action": "accept", "content": { "resolution": "Forgotten" } } });
    let result = send(&running, call.clone()).await.result();
    let told = result["inputRequests"]["resolution"]["params"]["message"].as_str().expect("a message");
    assert!(told.contains("resolution: must be one of"), "{told}");
    call["params"]["inputResponses"] =
        json!({ "resolution": { "action": "decline", "content": { "resolution": "Fixed" } } });
    let result = send(&running, call.clone()).await.result();
    assert_eq!(result["isError"], true, "{result}");
    call["params"]["inputResponses"] =
        json!({ "resolution": { "action": "accept", "content": { "resolution": "Fixed" } } });
    assert_eq!(send(&running, call).await.result()["content"][0]["text"], "Bug #4522 resolved as Fixed.");
}

async fn old_version(ask: Ask) -> Result<String, ToolError> {
    let (github, google) = try_join!(
        ask.form::<Login>("github_login", "Please provide your GitHub username"),
        ask.form::<Login>("google_login", "Please provide your Google username"),
    )?;
    Ok(format!("{} and {}", github.name, google.name))
}

async fn new_version(ask: Ask) -> Result<String, ToolError> {
    let (github, microsoft) = try_join!(
        ask.form::<Login>("github_login", "Please provide your GitHub username"),
        ask.form::<Login>("microsoft_login", "Please provide your Microsoft username"),
    )?;
    Ok(format!("{} and {}", github.name, microsoft.name))
}

async fn new_by_hand(round: Round) -> Result<Reply, ToolError> {
    let wanted = [("github_login", "GitHub"), ("microsoft_login", "Microsoft")];
    let (mut names, mut open) = (Vec::new(), Vec::new());
    for (key, who) in wanted {
        match round.answer::<Login>(key)? {
            Some(login) => names.push(login.name),
            None => open.push(Question::form::<Login>(key, format!("Please provide your {who} username"))),
        }
    }
    Ok(if open.is_empty() { Reply::text(names.join(" and ")) } else { round.ask(open) })
}

async fn old_by_hand(round: Round) -> Result<Reply, ToolError> {
    if round.answer::<Login>("github_login")?.is_some() && round.answer::<Login>("google_login")?.is_some() {
        return Ok(Reply::text("old"));
    }
    Ok(round.ask([
        Question::form::<Login>("github_login", "Please provide your GitHub username"),
        Question::form::<Login>("google_login", "Please provide your Google username"),
    ]))
}

/// M17: the rolling upgrade of the proposal: the answer the new code needs is kept, its new question is asked, the
/// answer it no longer needs is passed over; inline and by hand.
#[tokio::test]
async fn a_rolling_upgrade_keeps_what_was_answered() {
    let release = |tool: Tool| Server::new("logins", "1").seal(ring()).tool(tool);
    for (old, new) in [
        (Tool::new("logins", old_version), Tool::new("logins", new_version)),
        (Tool::new("logins", old_by_hand), Tool::new("logins", new_by_hand)),
    ] {
        let (old, new) = (Running::start(release(old)).await, Running::start(release(new)).await);
        let mut call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "logins" } });
        let first = send(&old, call.clone()).await.result();
        let asked: Vec<_> = first["inputRequests"].as_object().expect("a map").keys().collect();
        assert_eq!(asked, ["github_login", "google_login"]);
        assert_eq!(first["inputRequests"]["github_login"], github());
        call["id"] = json!(2);
        call["params"]["requestState"] = first["requestState"].clone();
        call["params"]["inputResponses"] = json!({
            "github_login": { "action": "accept", "content": { "name": "octocat" } },
            "google_login": { "action": "accept", "content": { "name": "larry" } },
        });
        let second = send(&new, call.clone()).await.result();
        let asked: Vec<_> = second["inputRequests"].as_object().expect("a map").keys().collect();
        assert_eq!(asked, ["microsoft_login"]);
        call["id"] = json!(3);
        call["params"]["requestState"] = second["requestState"].clone();
        call["params"]["inputResponses"] =
            json!({ "microsoft_login": { "action": "accept", "content": { "name": "clippy" } } });
        let third = send(&new, call).await.result();
        assert_eq!(third["content"][0]["text"], "octocat and clippy");
    }
}

/// How far a computation has come.
#[derive(Serialize, Deserialize, Default)]
struct Sum {
    next: u64,
    sum: u64,
}

async fn add_up(
    State(budget): State<u64>,
    State(added): State<Arc<AtomicUsize>>,
    round: Round,
) -> Result<Reply, ToolError> {
    let mut sum: Sum = round.state()?.unwrap_or_default();
    for _ in 0..budget {
        added.fetch_add(1, Ordering::SeqCst);
        sum.sum += sum.next;
        sum.next += 1;
        if sum.next > 100 {
            return Ok(Reply::text(sum.sum.to_string()));
        }
    }
    Ok(round.hand_off(&sum))
}

/// M16: the load shedding of the proposal: state and no questions, and another instance goes on from there without
/// doing again what was done.
#[tokio::test]
async fn load_is_shed_with_state_alone() {
    let added = Arc::new(AtomicUsize::new(0));
    let instance = |budget: u64| -> Endpoint {
        let server = Server::new("sums", "1").seal(ring()).state(budget).state(Arc::clone(&added));
        server.tool(Tool::new("add_up", add_up)).build().expect("a server")
    };
    let (loaded, free) = (instance(40), instance(1000));
    let call = crate::support::Call::tool("add_up");
    let shed = call.begin(&loaded).await;
    assert_eq!(shed.result().get("inputRequests"), None);
    assert_eq!(added.load(Ordering::SeqCst), 40);
    assert_eq!(call.send(&free, shed.state(), None).await.text(), "5050");
    assert_eq!(added.load(Ordering::SeqCst), 101, "nothing was done twice");
    let again = call.send(&loaded, shed.state(), None).await;
    assert_eq!(again.keys(), [""; 0], "an instance that is still loaded sheds it again");
    assert_eq!(call.send(&free, again.state(), None).await.text(), "5050");
}
