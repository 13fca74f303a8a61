//! Rounds by hand: every kind of question, and what becomes of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use roundtrip::wire::{
    CreateMessageRequestParams, ElicitSchema, NumberSchema, PrimitiveSchemaDefinition, StringSchema,
};
use roundtrip::{Ask, Question, Reply, Round, State, Tool, ToolError};
use serde_json::{Value, json};

use crate::mrtr_server::endpoint;
use crate::support::{Call, accept};

/// A form that no type describes: a required name, and a number with a default.
fn form() -> ElicitSchema {
    let name = PrimitiveSchemaDefinition::String(StringSchema { min_length: Some(2), ..Default::default() });
    let people =
        PrimitiveSchemaDefinition::Integer(NumberSchema { default: Some(2.0), ..Default::default() });
    ElicitSchema {
        properties: vec![("name".into(), name), ("people".into(), people)],
        required: vec!["name".into()],
        ..ElicitSchema::default()
    }
}

/// Every kind of question at once; the answers come in any order and number.
pub(crate) async fn kinds(round: Round) -> Result<Reply, ToolError> {
    let table = Question::form_of("table", "Which table?", form());
    let page = Question::url("page", "Please sign in", "https://id.example/in");
    let mut open = Vec::new();
    let (table_of, signed_in) = (round.content(&table)?, round.consent(&page)?);
    if table_of.is_none() {
        open.push(table);
    }
    if !signed_in {
        open.push(page);
    }
    let (sure, said, roots) = (round.confirmed("sure")?, round.message("model")?, round.roots("roots")?);
    if sure.is_none() {
        open.push(Question::confirm("sure", "Sure?"));
    }
    if said.is_none() {
        open.push(Question::sample("model", CreateMessageRequestParams::text("Say hello", 10)));
    }
    if roots.is_none() {
        open.push(Question::roots("roots"));
    }
    let (Some(table), Some(sure), Some(said), Some(roots)) = (table_of, sure, said, roots) else {
        return Ok(round.ask(open));
    };
    if !signed_in {
        return Ok(round.ask(open));
    }
    let (name, people) = (&table["name"], &table["people"]);
    Ok(Reply::text(format!("{name} {people} {sure} {} {}", said.text(), roots.len())))
}

pub(crate) fn said(text: &str) -> Value {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": text } })
}

fn answers() -> Value {
    json!({
        "table": accept(&json!({ "name": "Ada" })),
        "page": { "action": "accept" },
        "sure": accept(&json!({ "confirm": true })),
        "model": said("hello"),
        "roots": { "roots": [{ "uri": "file:///a" }] },
    })
}

/// A1, M7: by hand, every kind of question can be asked, and read in whatever round its answer comes.
#[tokio::test]
async fn every_kind_of_question_can_be_asked_by_hand() {
    let endpoint = endpoint([Tool::new("kinds", kinds)]);
    let call = Call::tool("kinds");
    let first = call.begin(&endpoint).await;
    assert_eq!(first.keys(), ["table", "page", "sure", "model", "roots"]);
    assert_eq!(first.question("page")["params"]["mode"], "url");
    assert_eq!(first.question("table")["params"]["requestedSchema"]["properties"]["people"]["default"], 2);
    let done = call.answer(&endpoint, &first, answers()).await;
    assert_eq!(done.text(), "\"Ada\" 2 true hello 1");

    let all = answers();
    let mut turn = first;
    for key in ["roots", "model", "sure", "page"] {
        turn = call.answer(&endpoint, &turn, json!({ (key): all[key] })).await;
        assert!(!turn.keys().contains(&key), "{key} is remembered: {:?}", turn.keys());
    }
    let done = call.answer(&endpoint, &turn, json!({ "table": all["table"] })).await;
    assert_eq!(done.text(), "\"Ada\" 2 true hello 1");
}

/// M12, M13: by hand, an answer that does not fit is asked for again with the reason, and the others stay.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_by_hand() {
    let endpoint = endpoint([Tool::new("kinds", kinds)]);
    let call = Call::tool("kinds");
    let first = call.begin(&endpoint).await;
    for (key, wrong, why) in [
        ("table", accept(&json!({ "name": "A" })), Some("name: must have at least 2 characters")),
        ("table", accept(&json!({ "people": 3 })), Some("name: is required")),
        ("table", said("hello"), Some("an answer of the user was asked for")),
        ("sure", accept(&json!({ "confirm": "yes" })), Some("confirm: must be true or false")),
        ("page", said("hello"), Some("an answer of the user was asked for")),
        ("model", json!({ "roots": [] }), None),
        ("roots", said("hello"), None),
    ] {
        let mut given = answers();
        given[key] = wrong.clone();
        let again = call.answer(&endpoint, &first, given).await;
        assert_eq!(again.keys(), [key], "{wrong}");
        if let Some(why) = why {
            assert!(again.told(key).contains(why), "{}", again.told(key));
        }
        let done = call.answer(&endpoint, &again, json!({ (key): answers()[key] })).await;
        assert_eq!(done.text(), "\"Ada\" 2 true hello 1");
    }
}

/// A4, M14: by hand, a refusal of any question is a tool error that names it.
#[tokio::test]
async fn a_refusal_by_hand_is_a_tool_error() {
    let endpoint = endpoint([Tool::new("kinds", kinds)]);
    let call = Call::tool("kinds");
    let first = call.begin(&endpoint).await;
    for key in ["table", "page", "sure"] {
        for (action, told) in [("decline", "declined"), ("cancel", "dismissed")] {
            let done = call.answer(&endpoint, &first, json!({ (key): { "action": action } })).await;
            assert!(done.failure().contains(told) && done.failure().contains(key), "{}", done.failure());
        }
    }
}

/// M7: by hand, a client is not asked what it did not declare.
#[tokio::test]
async fn by_hand_a_client_is_not_asked_what_it_did_not_declare() {
    let endpoint = endpoint([Tool::new("kinds", kinds)]);
    for (capabilities, missing) in [
        (json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} }), "/elicitation/url"),
        (json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} }), "/sampling"),
        (json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {} }), "/roots"),
    ] {
        let refused = Call::tool("kinds").declaring(&capabilities).begin(&endpoint).await;
        assert_eq!(refused.error().0, -32021);
        let required = &refused.0["error"]["data"]["requiredCapabilities"];
        assert!(required.pointer(missing).is_some(), "{missing}: {}", refused.0);
    }
}

/// A6: by hand, an answer counts for the schema and for the site it was given for, whatever the wording.
#[tokio::test]
async fn by_hand_an_answer_counts_for_its_schema_and_its_site() {
    type Rounds = Arc<AtomicUsize>;
    async fn moving(State(rounds): State<Rounds>, round: Round) -> Result<Reply, ToolError> {
        let number = rounds.fetch_add(1, Ordering::Relaxed);
        let url =
            ["https://a.example/1", "https://a.example/2", "https://b.example/2", "https://b.example/2"];
        let page = Question::url("page", format!("Visit {number}"), url[number]);
        let mut schema = form();
        if number > 1 {
            schema.properties.pop();
        }
        let table = Question::form_of("table", format!("Table {number}"), schema);
        let last = Question::confirm(format!("go on {number}"), "Go on?");
        let open =
            [(round.consent(&page)?, page), (round.content(&table)?.is_some(), table), (number == 3, last)];
        let open: Vec<_> = open.into_iter().filter(|(done, _)| !done).map(|(_, question)| question).collect();
        Ok(if open.is_empty() { Reply::text("done") } else { round.ask(open) })
    }
    let server =
        roundtrip::Server::new("rounds", "1").tool(Tool::new("moving", moving)).state(Rounds::default());
    let endpoint = server.build().expect("a server");
    let call = Call::tool("moving");
    let first = call.begin(&endpoint).await;
    assert_eq!(first.keys(), ["page", "table", "go on 0"]);
    let second = call.answer(&endpoint, &first, answers()).await;
    assert_eq!(second.keys(), ["go on 1"], "another path and another wording");
    let third = call.answer(&endpoint, &second, json!({})).await;
    assert_eq!(third.keys(), ["page", "table", "go on 2"], "another site, another schema");
    assert_eq!(call.answer(&endpoint, &third, answers()).await.text(), "done");
}

/// M10: `inputResponses` are there as they were sent, whatever was asked.
#[tokio::test]
async fn by_hand_the_responses_are_there_as_sent() {
    async fn raw(round: Round) -> Result<String, ToolError> {
        Ok(round.responses().iter().map(|(key, answer)| format!("{key}={}", answer.get())).collect())
    }
    let endpoint = endpoint([Tool::new("raw", raw)]);
    let call = Call::tool("raw");
    let sent = json!({ "b": { "roots": [] }, "a": { "action": "accept", "x": [1] } });
    let turn = call.send(&endpoint, None, Some(sent)).await;
    assert_eq!(turn.text(), r#"a={"action":"accept","x":[1]}b={"roots":[]}"#);
    assert_eq!(call.begin(&endpoint).await.text(), "");
}

/// A run-time form has its defaults, inline as by hand.
#[tokio::test]
async fn a_form_of_a_schema_has_its_defaults() {
    async fn inline(ask: Ask) -> Result<String, ToolError> {
        let table = ask.form_of("table", "Which table?", form()).await?;
        Ok(Value::from(table).to_string())
    }
    let endpoint = endpoint([Tool::new("inline", inline)]);
    let call = Call::tool("inline");
    let first = call.begin(&endpoint).await;
    for (content, expected) in [
        (json!({ "name": "Ada" }), json!({ "name": "Ada", "people": 2 })),
        (json!({ "name": "Ada", "people": null }), json!({ "name": "Ada", "people": 2 })),
        (json!({ "name": "Ada", "people": 3 }), json!({ "name": "Ada", "people": 3 })),
    ] {
        let done = call.answer(&endpoint, &first, json!({ "table": accept(&content) })).await;
        assert_eq!(serde_json::from_str::<Value>(done.text()).expect("JSON"), expected);
    }
}

/// By hand, an identity counts where a reader is given the question, and is refused elsewhere: the answer would never be found.
#[tokio::test]
async fn by_hand_an_identity_is_for_readers_that_are_given_the_question() {
    async fn versions(State(rounds): State<Arc<AtomicUsize>>, round: Round) -> Result<Reply, ToolError> {
        let version = if rounds.fetch_add(1, Ordering::Relaxed) < 2 { "1" } else { "2" };
        let terms = Question::url("terms", "Read them", "https://a.example/terms").identity(version);
        let table = Question::form_of("table", "Which table?", form()).identity(version);
        let open = [(round.consent(&terms)?, terms), (round.content(&table)?.is_some(), table)];
        let open: Vec<_> = open.into_iter().filter(|(done, _)| !done).map(|(_, question)| question).collect();
        Ok(if open.is_empty() { Reply::text("done") } else { round.ask(open) })
    }
    let tool = Tool::new("versions", versions);
    let server = roundtrip::Server::new("rounds", "1").tool(tool).state(Arc::<AtomicUsize>::default());
    let call = Call::tool("versions");
    let rounds = server.build().expect("a server");
    let first = call.begin(&rounds).await;
    let given = json!({ "terms": { "action": "accept" }, "table": accept(&json!({ "name": "Ada" })) });
    assert_eq!(call.answer(&rounds, &first, given.clone()).await.text(), "done");
    assert_eq!(call.answer(&rounds, &first, given).await.keys(), ["terms", "table"], "another version");

    for question in [
        Question::confirm("key", "Sure?"),
        Question::sample("key", CreateMessageRequestParams::text("Say hello", 10)),
        Question::roots("key"),
    ] {
        let question = question.identity("one");
        let tool = Tool::new("lost", move |round: Round| {
            let question = question.clone();
            async move { round.ask::<roundtrip::wire::CallToolResult>([question]) }
        });
        let refused = Call::tool("lost").begin(&endpoint([tool])).await;
        let (code, told) = refused.error();
        assert!(code == -32603 && told.contains("`key` has an identity"), "{code}: {told}");
    }
}
