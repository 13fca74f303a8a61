//! What an old client gets to see is what its revision has words for.

use roundtrip::{Caller, Server, Tool};
use serde_json::{Value, json};

use super::tools::{Diary, server};
use crate::peers::{Pipe, V2025_11_25, accept, everything, request, text, tool};
use crate::support::Call;

/// Every member's name, at any depth.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                found.push(name.clone());
                names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

/// L5: what came with 2026-07-28 never appears on the old wire, in no result of no method.
#[tokio::test]
async fn new_words_do_not_appear_on_the_old_wire() {
    let new = [
        "resultType",
        "ttlMs",
        "cacheScope",
        "requestState",
        "inputRequests",
        "io.modelcontextprotocol/serverInfo",
        "io.modelcontextprotocol/subscriptionId",
        "_meta",
    ];
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", V2025_11_25] {
        let mut pipe = Pipe::agreed(server(&Diary::default()), version, &everything()).await;
        let requests = [
            request(1, "tools/list", json!({})),
            request(2, "prompts/list", json!({})),
            request(3, "resources/list", json!({})),
            request(4, "resources/templates/list", json!({})),
            request(5, "resources/read", json!({ "uri": "test://notes" })),
            tool(6, "total"),
            tool(7, "link"),
            tool(8, "page"),
        ];
        for asked in requests {
            let answer = pipe.call(&asked).await;
            assert!(answer["error"].is_null() || asked["id"] == 8, "{answer}");
            let mut found = Vec::new();
            names(&answer, &mut found);
            let leaked: Vec<&String> = found.iter().filter(|name| new.contains(&name.as_str())).collect();
            assert!(leaked.is_empty(), "{version}: {leaked:?} in {answer}");
        }
    }
}

/// L5: structured content is an object there, and its schema is one of an object; before 2025-06-18 there is none.
#[tokio::test]
async fn structured_content_is_an_object_or_none() {
    for (version, structured) in [("2025-03-26", false), ("2025-06-18", true), (V2025_11_25, true)] {
        let mut pipe = Pipe::agreed(server(&Diary::default()), version, &json!({})).await;
        let listed = pipe.call(&request(1, "tools/list", json!({}))).await;
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let schema =
            |name: &str| &tools.iter().find(|tool| tool["name"] == name).expect(name)["outputSchema"];
        assert!(schema("number").is_null());
        assert_eq!(schema("total").is_object(), structured, "{version}");
        assert!(pipe.call(&tool(2, "number")).await["result"]["structuredContent"].is_null());
        let total = pipe.call(&tool(3, "total")).await;
        let wanted = if structured { json!({ "total": 42 }) } else { Value::Null };
        assert_eq!(total["result"]["structuredContent"], wanted, "{version}");
        assert_eq!(text(&total), r#"{"total":42}"#, "the text is there for all");
    }
}

/// L5: a kind of content that a revision does not have is put into one that it has.
#[tokio::test]
async fn content_a_revision_does_not_have_is_put_into_words_it_has() {
    for (version, kind) in [("2025-03-26", "text"), ("2025-06-18", "resource_link")] {
        let mut pipe = Pipe::agreed(server(&Diary::default()), version, &json!({})).await;
        let linked = pipe.call(&tool(1, "link")).await;
        let block = &linked["result"]["content"][0];
        assert_eq!(block["type"], kind, "{linked}");
        if kind == "text" {
            assert_eq!(block["text"], "notes: test://notes");
        }
    }
}

/// L5: questions are in the words of the revision: modes and titled choices are newer than 2025-06-18.
#[tokio::test]
async fn questions_are_in_the_words_of_their_revision() {
    let mut old = Pipe::agreed(server(&Diary::default()), "2025-06-18", &everything()).await;
    let asked = old.call(&tool(1, "paint")).await;
    assert!(asked["params"].get("mode").is_none(), "{asked}");
    let colour = &asked["params"]["requestedSchema"]["properties"]["colour"];
    assert_eq!(
        (&colour["enum"], &colour["enumNames"]),
        (&json!(["red", "blue"]), &json!(["Deep red", "blue"]))
    );
    assert_eq!(text(&old.call(&accept(&asked, json!({ "colour": "red" }))).await), "red");

    let mut newer = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let asked = newer.call(&tool(1, "paint")).await;
    assert_eq!(asked["params"]["mode"], "form");
    let colour = &asked["params"]["requestedSchema"]["properties"]["colour"];
    assert_eq!(colour["oneOf"][0], json!({ "const": "red", "title": "Deep red" }));
    assert_eq!(text(&newer.call(&accept(&asked, json!({ "colour": "blue" }))).await), "blue");
}

/// L5: a question that a revision has no words for is not put, and the client is told why.
#[tokio::test]
async fn a_question_without_words_is_not_put() {
    let mut old = Pipe::agreed(server(&Diary::default()), "2025-06-18", &everything()).await;
    let refused = old.call(&tool(1, "several")).await;
    let told = "this question (`several`) cannot be asked: revision 2025-06-18 cannot ask for several choices at once";
    assert_eq!(refused["error"], json!({ "code": -32600, "message": told }));
    let mut newer = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let asked = newer.call(&tool(1, "several")).await;
    assert_eq!(text(&newer.call(&accept(&asked, json!({ "colours": ["red", "blue"] }))).await), "2 colours");
}

/// L5: a visit to a web page has the id that 2025-11-25 wants, a new one each time; earlier there are none.
#[tokio::test]
async fn a_web_page_has_an_id_of_its_own() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let mut ids = Vec::new();
    for id in 1..=2 {
        let asked = pipe.call(&tool(id, "page")).await;
        assert_eq!(asked["params"]["mode"], "url");
        assert_eq!(asked["params"]["url"], "https://example.com/sign-in");
        ids.push(asked["params"]["elicitationId"].as_str().expect("an id").to_owned());
        let done = pipe.call(&crate::peers::answer(&asked, json!({ "action": "accept" }))).await;
        assert_eq!(text(&done), "signed in");
    }
    assert_ne!(ids[0], ids[1]);

    let mut old = Pipe::agreed(server(&Diary::default()), "2025-06-18", &everything()).await;
    assert_eq!(old.call(&tool(1, "page")).await["error"]["code"], -32600);
}

/// L5: a resource that is not there has the code that the old revisions give it.
#[tokio::test]
async fn a_missing_resource_has_its_old_code() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &json!({})).await;
    let missing = pipe.call(&request(1, "resources/read", json!({ "uri": "test://nowhere" }))).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    assert_eq!(missing["error"]["data"]["uri"], "test://nowhere");
}

/// L5: what only a new client may say, an old one cannot: its rounds are not its own to make.
#[tokio::test]
async fn an_old_client_cannot_bring_answers_or_state() {
    let mut pipe = Pipe::agreed(server(&Diary::default()), V2025_11_25, &everything()).await;
    let mut forged = tool(1, "by_hand");
    forged["params"]["inputResponses"] =
        json!({ "party": { "action": "accept", "content": { "people": 2 } } });
    forged["params"]["requestState"] = json!("made up");
    forged["params"]["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    assert_eq!(pipe.call(&forged).await["method"], "elicitation/create");
}

/// L5: a handler sees the revision and the era of its caller.
#[tokio::test]
async fn a_handler_sees_the_revision_of_its_caller() {
    async fn revision(caller: Caller) -> String {
        format!("{} {:?}", caller.protocol_version, caller.era())
    }
    let server = || Server::new("s", "1").tool(Tool::new("revision", revision));
    for version in ["2025-03-26", "2025-06-18", V2025_11_25] {
        let mut pipe = Pipe::agreed(server(), version, &json!({})).await;
        assert_eq!(text(&pipe.call(&tool(1, "revision")).await), format!("{version} Handshake"));
    }
    let modern = Call::tool("revision").begin(&server().build().expect("a server")).await;
    assert_eq!(modern.text(), "2026-07-28 Modern");
}
