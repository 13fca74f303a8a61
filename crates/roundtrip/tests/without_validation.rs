//! Servers built without the feature `validation`: parsing enforces the arguments, and what it does not enforce is
//! refused at the start.

#![cfg(not(feature = "validation"))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

use roundtrip::testing::play;
use roundtrip::{Args, Json, Server, Tool};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn server(tool: Tool) -> Server {
    Server::new("s", "1").tool(tool)
}

fn taking<T: DeserializeOwned + JsonSchema + Send + 'static>() -> Tool {
    Tool::new("tool", async |_: Args<T>| "taken")
}

fn refusal(tool: Tool) -> String {
    server(tool).build().expect_err("refused").to_string()
}

fn assert_names(refusal: &str, words: &[&str]) {
    assert!(
        ["tool `tool`", "`validation`"].iter().chain(words).all(|word| refusal.contains(word)),
        "{refusal}"
    );
}

#[test]
fn schemas_written_by_hand_are_refused() {
    let plain = || Tool::new("tool", async || "taken");
    let schema = json!({ "type": "object" });
    assert_names(&refusal(plain().input_schema(schema.clone())), &["input schema"]);
    assert_names(&refusal(plain().output_schema(schema)), &["output schema"]);
}

#[test]
fn keywords_that_parsing_does_not_enforce_are_refused() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Range {
        #[schemars(range(min = 1))]
        people: u8,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Pattern {
        #[schemars(regex(pattern = "^a+$"))]
        _text: String,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Length {
        #[schemars(length(max = 3))]
        _texts: Vec<Option<String>>,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Unique {
        _of: std::collections::BTreeSet<String>,
    }
    assert_names(&refusal(taking::<Range>()), &["input schema", "`minimum`"]);
    assert_names(&refusal(taking::<Pattern>()), &["`pattern`"]);
    assert_names(&refusal(taking::<Length>()), &["`maxItems`"]);
    assert_names(&refusal(taking::<Unique>()), &["`uniqueItems`"]);
    let output = Tool::new("tool", async || Json(Range { people: 2 }));
    assert_names(&refusal(output), &["output schema", "`minimum`"]);
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
enum Shape {
    /// Nothing
    Empty,
    Point(i64),
    Line {
        from: (i8, u16),
        to: Option<Box<Shape>>,
    },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Filter {
    And { filters: Vec<Filter> },
    Is { field: String, value: i64 },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "value")]
enum Setting {
    Level(u8),
    Off,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Place {
    city: String,
    platform: u8,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "at")]
enum Stop {
    Place(Place),
    Both(Place, Place),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum End {
    Place(Place),
    Open,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Way {
    Train { to: Place },
    Walk,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Buffered {
    stop: Stop,
    end: End,
    #[serde(flatten)]
    way: Way,
}

/// N4: a list is not taken for a struct inside of what serde buffers, though no validator looks.
#[tokio::test]
async fn a_list_is_not_taken_for_a_struct_without_a_validator() {
    let place = || json!({ "city": "Bern", "platform": 7 });
    let good = json!({
        "stop": { "at": [place(), place()], "type": "Both" },
        "end": place(),
        "kind": "train",
        "to": place(),
    });
    let call = async |arguments: Value| {
        let tool = Tool::new("tool", async |Args(all): Args<Buffered>| Json(all));
        play(server(tool)).tool("tool", arguments).await.expect("a result")
    };
    assert_eq!(call(good.clone()).await["isError"], Value::Null);
    for at in ["/stop/at/0", "/end", "/to"] {
        let mut arguments = good.clone();
        *arguments.pointer_mut(at).expect("a place") = json!(["Bern", 7]);
        let refused = call(arguments).await;
        let told = refused["content"][0]["text"].as_str().unwrap_or_default();
        let expected = format!("invalid arguments: {at}: a list, where an object is expected");
        assert!(refused["isError"] == true && told == expected, "{at}: {refused}");
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Everything {
    people: u8,
    names: Option<Vec<String>>,
    shapes: Vec<Shape>,
    filter: Filter,
    id: Id,
    setting: Setting,
}

fn everything() -> Value {
    json!({
        "people": 2,
        "names": ["Ada"],
        "shapes": ["Empty", { "Point": 3 }, { "Line": { "from": [-1, 1], "to": "Empty" } }],
        "filter": { "kind": "and", "filters": [{ "kind": "is", "field": "f", "value": 1 }] },
        "id": "x",
        "setting": { "type": "Level", "value": 7 },
    })
}

async fn call(arguments: Value) -> Value {
    let tool = Tool::new("tool", async |Args(all): Args<Everything>| Json(all));
    play(server(tool)).tool("tool", arguments).await.expect("a result")
}

/// N4: arguments that do not parse are a tool error that names the place.
#[tokio::test]
async fn parsing_enforces_derived_schemas() {
    assert_eq!(call(everything()).await["structuredContent"], everything());
    for (place, wrong, told) in [
        ("/people", json!("2"), "/people"),
        ("/people", json!(256), "/people"),
        ("/names/0", json!(7), "/names"),
        ("/shapes/0", json!("Circle"), "/shapes"),
        ("/shapes/1", json!({ "Point": 3, "Empty": null }), "/shapes"),
        ("/shapes/2/Line/from", json!([1]), "/shapes"),
        ("/filter/filters/0/value", json!("1"), "/filter"),
        ("/filter/kind", json!("or"), "/filter"),
        ("/id", json!(true), "/id"),
        ("/setting/type", json!("On"), "/setting"),
        ("/setting/value", json!(-1), "/setting"),
    ] {
        let mut arguments = everything();
        *arguments.pointer_mut(place).expect("a place") = wrong;
        assert_refused(arguments, told).await;
    }
    let mut more = everything();
    more["more"] = json!(1);
    assert_refused(more, "unknown field `more`").await;
    assert_refused(json!({}), "missing field `people`").await;
    assert_refused(json!([]), "arguments are an object").await;
}

async fn assert_refused(arguments: Value, told: &str) {
    let result = call(arguments.clone()).await;
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(result["isError"] == true && text.starts_with("invalid arguments: "), "{arguments}: {result}");
    assert!(text.contains(told), "{arguments}: {text}");
}
