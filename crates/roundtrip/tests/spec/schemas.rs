//! Arguments and structured output, checked against their schemas.

use roundtrip::wire::ElicitSchema;
use roundtrip::{Args, Ask, Json, Prompt, Resource, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Call, Running};

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

/// Names of an object's members, in the order they were sent.
#[track_caller]
fn names(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// N4, N6: properties are sent in their author's order: of arguments, of output, of prompts, of schemas written by hand, and
/// of forms made at run time.
#[tokio::test]
async fn properties_keep_their_authors_order() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Trip {
        to: String,
        from: String,
        at: Option<String>,
    }
    async fn ask_at_run_time(ask: Ask) -> Result<&'static str, ToolError> {
        let text = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": { "to": text, "from": text, "at": text } });
        let schema: ElicitSchema = serde_json::from_value(schema).expect("a form");
        ask.form_of("trip", "Where?", schema).await?;
        Ok("done")
    }
    let written = json!({ "type": "object", "properties": { "to": {}, "from": {}, "at": {} } });
    let by_hand = Tool::new("written", async |Args(trip): Args<Value>| Json(trip))
        .input_schema(written.clone())
        .output_schema(written);
    let server = Server::new("s", "1")
        .tool(Tool::new("derived", async |Args(trip): Args<Trip>| Json(trip)))
        .tool(by_hand)
        .prompt(Prompt::new("trip", async |Args(trip): Args<Trip>| trip.to));
    let asking = Server::new("s", "1").tool(Tool::new("asks", ask_at_run_time));
    let asked = Call::tool("asks").begin(&asking.build().expect("a server")).await;
    assert_eq!(
        names(&asked.question("trip")["params"]["requestedSchema"]["properties"]),
        ["to", "from", "at"]
    );
    let running = Running::start(server).await;
    let tools = running.call("tools/list", json!({})).await.result()["tools"].clone();
    for (tool, schema) in [(0, "inputSchema"), (0, "outputSchema"), (1, "inputSchema"), (1, "outputSchema")] {
        assert_eq!(names(&tools[tool][schema]["properties"]), ["to", "from", "at"], "{tool} {schema}");
    }
    let prompts = running.call("prompts/list", json!({})).await.result()["prompts"].clone();
    let arguments = prompts[0]["arguments"].as_array().expect("arguments");
    assert!(arguments.iter().map(|argument| &argument["name"]).eq(["to", "from", "at"]), "{arguments:?}");
}

/// N4: a derived schema has no `format` that JSON Schema does not define; bounds, standard formats, and properties and
/// values of that name stay.
#[tokio::test]
async fn derived_schemas_have_standard_formats_only() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Reading {
        count: u32,
        offsets: Vec<Option<i64>>,
        ratio: f64,
        small: u8,
        #[schemars(extend("format" = "date-time"))]
        at: String,
        format: String,
        inner: Option<Inner>,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        weight: f32,
        #[schemars(extend("default" = { "format": "uint32" }))]
        rest: Value,
    }
    let server =
        Server::new("s", "1").tool(Tool::new("read", async |Args(reading): Args<Reading>| Json(reading)));
    let running = Running::start(server).await;
    let tools = running.call("tools/list", json!({})).await.result()["tools"].clone();
    for schema in [&tools[0]["inputSchema"], &tools[0]["outputSchema"]] {
        let properties = &schema["properties"];
        assert_eq!(properties["at"]["format"], "date-time");
        assert_eq!(properties["format"]["type"], "string");
        assert_eq!(properties["small"], json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
        assert_eq!(schema["$defs"]["Inner"]["properties"]["rest"]["default"], json!({ "format": "uint32" }));
        let text = schema.to_string();
        for unknown in ["\"uint8\"", "int64", "\"float\"", "\"double\"", "\"format\":\"uint32\",\"minimum"] {
            assert!(!text.contains(unknown), "{unknown} in {text}");
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: f64 },
    Group { shapes: Vec<Shape> },
    Square(Square),
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Square {
    side: f64,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema matters")]
enum Place {
    Square(Square),
    Named { name: String },
}

/// N4: an enum whose variants are all objects can be `Args`: its schema says `"type": "object"`. One with another variant
/// cannot.
#[tokio::test]
async fn enums_of_objects_can_be_arguments() {
    let server = Server::new("s", "1")
        .tool(Tool::new("tagged", async |Args(shape): Args<Shape>| Json(shape)))
        .tool(Tool::new("untagged", async |Args(_): Args<Place>| ""));
    let running = Running::start(server).await;
    let tools = running.call("tools/list", json!({})).await.result()["tools"].clone();
    for tool in tools.as_array().expect("tools") {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
    let arguments = json!({ "kind": "group", "shapes": [{ "kind": "circle", "radius": 1.5 }] });
    let call = json!({ "name": "tagged", "arguments": arguments });
    assert_eq!(running.call("tools/call", call).await.result()["structuredContent"], arguments);
    let wrong = json!({ "name": "tagged", "arguments": { "kind": "line" } });
    assert_eq!(running.call("tools/call", wrong).await.result()["isError"], true);

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    enum Mixed {
        Nothing,
        Some { number: u8 },
    }
    let mixed = Server::new("s", "1").tool(Tool::new("mixed", async |Args(_): Args<Mixed>| ""));
    let problem = mixed.build().expect_err("not an object").to_string();
    assert!(problem.contains("the input schema must be an object"), "{problem}");
}

/// N4: JSON has no NaN and no infinity: structured output with one is the server's failure, not a `null` that its schema
/// does not allow. A `None` is a `null`.
#[tokio::test]
async fn numbers_that_json_does_not_have_are_not_sent() {
    #[derive(Serialize, JsonSchema)]
    struct Statistics {
        name: Option<String>,
        means: std::collections::BTreeMap<String, Vec<(f32, Option<f64>)>>,
    }
    fn statistics(mean: Option<f64>) -> Json<Statistics> {
        Json(Statistics { name: None, means: [("a".to_owned(), vec![(1.0, mean)])].into() })
    }
    let server = Server::new("s", "1")
        .tool(Tool::new("nan", async || Json(f64::NAN)))
        .tool(Tool::new("infinite", async || Json(vec![1.0, f32::INFINITY])))
        .tool(Tool::new("deep", async || statistics(Some(f64::NEG_INFINITY))))
        .tool(Tool::new("fine", async || statistics(None)))
        .resource(Resource::new("app://nan", "nan", async || Json(f64::NAN)));
    let running = Running::start(server).await;
    for tool in ["nan", "infinite", "deep"] {
        let answer = running.call("tools/call", json!({ "name": tool })).await;
        assert_eq!(answer.refusal().1, -32603, "{tool}");
        assert!(answer.error_message().contains("NaN or infinite"), "{}", answer.error_message());
    }
    assert_eq!(running.call("resources/read", json!({ "uri": "app://nan" })).await.refusal().1, -32603);
    let fine = running.call("tools/call", json!({ "name": "fine" })).await.result();
    assert_eq!(fine["structuredContent"], json!({ "name": null, "means": { "a": [[1.0, null]] } }));
}

/// N4: a schema is judged by the dialect that it declares: in draft-07 keywords beside `$ref` do not count, and `items` may be a
/// list; misfits name their place there, too.
#[cfg(feature = "validation")]
#[tokio::test]
async fn a_schema_is_judged_by_its_own_dialect() {
    let tuple = json!({ "type": "array", "items": [{ "type": "string" }, { "type": "integer" }] });
    let named = json!({ "$ref": "#/definitions/name", "maxLength": 2 });
    let schema = |dialect: &str, pair: &Value| {
        json!({
            "$schema": dialect,
            "type": "object",
            "properties": { "pair": pair, "name": named },
            "definitions": { "name": { "type": "string", "minLength": 1 } },
        })
    };
    let prefix = json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }] });
    for (dialect, pair, siblings_count) in [
        ("http://json-schema.org/draft-04/schema#", &tuple, false),
        ("http://json-schema.org/draft-06/schema#", &tuple, false),
        ("http://json-schema.org/draft-07/schema#", &tuple, false),
        ("https://json-schema.org/draft/2019-09/schema", &tuple, true),
        ("https://json-schema.org/draft/2020-12/schema", &prefix, true),
    ] {
        let tool = Tool::new("t", async |Args(value): Args<Value>| value.to_string());
        let tool = tool.input_schema(schema(dialect, pair));
        let running = Running::start(Server::new("s", "1").tool(tool)).await;
        let judge = async |arguments: Value| {
            let call = json!({ "name": "t", "arguments": arguments });
            let result = running.call("tools/call", call).await.result();
            (result["isError"] == true)
                .then(|| result["content"][0]["text"].as_str().expect("text").to_owned())
        };
        assert_eq!(judge(json!({ "pair": ["a", 1], "name": "ab" })).await, None, "{dialect}");
        let problem = judge(json!({ "pair": ["a", "b"] })).await.expect("a misfit");
        assert!(problem.contains("/pair/1"), "{dialect}: {problem}");
        assert_eq!(judge(json!({ "name": "abc" })).await.is_some(), siblings_count, "{dialect}");
        let problem = judge(json!({ "name": "" })).await.expect("a misfit");
        assert!(problem.contains("/name"), "{dialect}: {problem}");
    }
}

/// N4: a server with a schema of a dialect that it does not know does not start, and the error names the dialect.
#[cfg(feature = "validation")]
#[test]
fn an_unknown_dialect_is_found_at_start_up() {
    let any = || Tool::new("t", async |Args(value): Args<Value>| value.to_string());
    for dialect in
        [json!("https://example.com/own-dialect"), json!("http://json-schema.org/draft-03/schema#"), json!(7)]
    {
        let schema = json!({ "$schema": dialect, "type": "object" });
        for tool in [any().input_schema(schema.clone()), Tool::new("t", nothing).output_schema(schema)] {
            let problem = Server::new("s", "1").tool(tool).build().expect_err("a mistake").to_string();
            let names = problem.contains(&dialect.to_string()) && problem.contains("is not supported");
            assert!(problem.starts_with("tool `t`: ") && names, "{problem}");
        }
    }
}
