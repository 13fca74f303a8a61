//! Arguments and structured output, checked against their schemas.

use roundtrip::{Args, Json, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::Running;

#[derive(Deserialize, JsonSchema)]
struct Party {
    #[schemars(range(min = 1, max = 12))]
    people: u8,
    names: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
struct Plain {
    people: u8,
    names: Option<Vec<String>>,
}

async fn nothing() -> &'static str {
    ""
}

/// N4: arguments that break the input schema are a tool error naming the path, whether the type finds out or the
/// schema does.
#[tokio::test]
async fn arguments_are_checked_against_the_schema() {
    let server = Server::new("s", "1")
        .tool(Tool::new("constrained", async |Args(party): Args<Party>| {
            format!("{} {:?}", party.people, party.names)
        }))
        .tool(Tool::new("plain", async |Args(party): Args<Plain>| {
            format!("{} {:?}", party.people, party.names)
        }))
        .tool(Tool::new("none", nothing))
        .tool(Tool::new("written", async |Args(value): Args<Value>| value.to_string()).input_schema(
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "enum": [1, 2] } } }),
        ));
    let running = Running::start(server).await;
    let cases = [
        ("constrained", json!({ "people": 13 }), "/people"),
        ("constrained", json!({ "people": "2" }), "/people"),
        ("constrained", json!({ "people": 2, "names": ["a", 7] }), "/names/1"),
        ("constrained", json!({}), "people"),
        ("plain", json!({ "people": 256 }), "/people"),
        ("plain", json!({ "people": "2" }), "/people"),
        ("plain", json!({ "people": 2, "names": ["a", 7] }), "/names"),
        ("plain", json!({}), "people"),
        ("plain", json!([]), "arguments are an object"),
        ("plain", json!([2, null]), "arguments are an object"),
        ("none", json!({ "a": 1 }), "takes no arguments"),
        ("written", json!({ "a": 3 }), "/a"),
        ("written", json!({}), "a"),
    ];
    for (tool, arguments, place) in cases {
        let result =
            running.call("tools/call", json!({ "name": tool, "arguments": arguments })).await.result();
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.contains(place), "{tool} {arguments}: {text}");
    }
    let fine = json!({ "name": "constrained", "arguments": { "people": 2, "names": ["a"], "more": 1 } });
    let result = running.call("tools/call", fine).await.result();
    assert_eq!((&result["content"][0]["text"], result.get("isError")), (&json!("2 Some([\"a\"])"), None));
    assert_eq!(running.call("tools/call", json!({ "name": "nope" })).await.refusal(), (200, -32602));
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Filter {
    And { filters: Vec<Filter> },
    Or { filters: Vec<Filter> },
    Is { field: String, value: i64 },
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Search {
    filter: Filter,
}

/// N4: one wrong leaf in a recursive enum is named with its path and the reason, at a cost that does not double with
/// every level; in arguments and in structured output.
#[tokio::test]
async fn a_wrong_leaf_in_recursive_arguments_does_not_stop_the_server() {
    let search = async |Args(search): Args<Search>| Json(search);
    let lie = async |Args(search): Args<Value>| Json(search);
    let schema = Value::from(schemars::schema_for!(Search));
    let server = Server::new("s", "1")
        .tool(Tool::new("search", search))
        .tool(Tool::new("lie", lie).input_schema(json!({ "type": "object" })).output_schema(schema));
    let running = Running::start(server).await;
    let search = |leaf: Value| {
        let leaf = json!({ "kind": "is", "field": "f", "value": leaf });
        let kind = |level: usize| if level.is_multiple_of(2) { "and" } else { "or" };
        let nest = |inner, level| json!({ "kind": kind(level), "filters": [inner] });
        json!({ "filter": (0..50).fold(leaf, nest) })
    };
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let fine = running.call("tools/call", call("search", search(json!(1)))).await.result();
    assert_eq!(fine["structuredContent"], search(json!(1)));
    let wrong = running.call("tools/call", call("search", search(json!("x")))).await.result();
    let path = format!("/filter{}/value", "/filters/0".repeat(50));
    assert_eq!(
        wrong["content"][0]["text"],
        format!("invalid arguments: {path}: \"x\" is not of type \"integer\"")
    );
    assert_eq!(running.call("tools/call", call("lie", search(json!("x")))).await.refusal().1, -32603);
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    celsius: f64,
}

/// N4: structured output carries its schema and its text, and is checked against the schema before it is sent.
#[tokio::test]
async fn structured_output_fits_its_schema() {
    let server = Server::new("s", "1")
        .tool(Tool::new("weather", async || Json(Weather { celsius: 21.5 })))
        .tool(Tool::new("maybe", async || Err::<Json<Weather>, _>(ToolError::new("no weather today"))))
        .tool(
            Tool::new("liar", async || Json(Value::from("text"))).output_schema(json!({ "type": "integer" })),
        )
        .tool(Tool::new("forgetful", async || "text").output_schema(json!({ "type": "integer" })))
        .tool(Tool::new("list", async || Json(vec![1, 2])));
    let running = Running::start(server).await;
    let call = async |name: &str| running.call("tools/call", json!({ "name": name })).await;
    let result = call("weather").await.result();
    assert_eq!(result["structuredContent"], json!({ "celsius": 21.5 }));
    assert_eq!(result["content"], json!([{ "type": "text", "text": "{\"celsius\":21.5}" }]));
    assert_eq!(call("list").await.result()["structuredContent"], json!([1, 2]));
    assert_eq!(call("maybe").await.result()["isError"], true, "a failure owes nobody structured content");
    assert_eq!(call("liar").await.refusal().1, -32603);
    assert_eq!(call("forgetful").await.refusal().1, -32603);
    let tools = running.call("tools/list", json!({})).await.result()["tools"].clone();
    assert_eq!(tools[0]["outputSchema"]["properties"]["celsius"]["type"], "number");
}
