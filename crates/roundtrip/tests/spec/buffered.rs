//! Types that serde buffers before it reads them: flattened fields, tagged and untagged enums. A list is not taken for a
//! struct inside of them either.

use roundtrip::{Args, Json, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::peers::Pipe;
use crate::support::message;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Point {
    x: i64,
    y: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Dot { at: Point },
    Line { at: (i64, i64), to: Point },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Place {
    Point(Point),
    Named { name: String, near: Option<Point> },
    Numbers(Vec<i64>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
enum Goal {
    At(Point),
    Between(Point, Point),
}

/// Its schema is that of an `Option`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Perhaps {
    Point(Point),
    Nothing,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Start {
    start: Point,
    legs: Vec<i64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Trip {
    #[serde(flatten)]
    start: Start,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Everything {
    #[serde(flatten)]
    start: Start,
    shapes: Vec<Shape>,
    place: Place,
    goal: Goal,
    perhaps: Perhaps,
}

fn point() -> Value {
    json!({ "x": 1, "y": 2 })
}

fn everything() -> Value {
    json!({
        "start": point(),
        "legs": [1, 2, 3],
        "shapes": [{ "kind": "dot", "at": point() }, { "kind": "line", "at": [1, 2], "to": point() }],
        "place": { "name": "here", "near": point() },
        // The content ahead of its tag is buffered.
        "goal": { "value": [point(), point()], "type": "between" },
        "perhaps": point(),
    })
}

async fn call(tool: Tool, arguments: &Value) -> Value {
    let call = message(1, "tools/call", json!({ "name": "tool", "arguments": arguments }));
    Pipe::open(Server::new("s", "1").tool(tool)).call(&call).await["result"].take()
}

/// Tools that take an argument of this type: with the derived schema and, if there is a validator, with a schema that leaves all
/// to the type.
fn tools<T>() -> Vec<Tool>
where
    T: Serialize + serde::de::DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    let tool = || Tool::new("tool", async |Args(taken): Args<T>| Json(taken));
    vec![
        tool(),
        #[cfg(feature = "validation")]
        tool().input_schema(json!({ "type": "object" })).output_schema(json!({ "type": "object" })),
    ]
}

async fn assert_refused<T>(good: &Value, place: &str, list: &Value)
where
    T: Serialize + serde::de::DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    for tool in tools::<T>() {
        let mut arguments = good.clone();
        *arguments.pointer_mut(place).expect("a place") = list.clone();
        let refused = call(tool, &arguments).await;
        let told = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert!(refused["isError"] == true && told.starts_with("invalid arguments: "), "{place}: {refused}");
        assert!(told.contains(&place[..5]), "{place}: {told}");
    }
}

/// N4: a list is not taken for a struct inside of a flattened field, of a tagged or of an untagged enum.
#[tokio::test]
async fn a_list_is_not_taken_for_a_struct_that_serde_buffers() {
    for tool in tools::<Everything>() {
        assert_eq!(call(tool, &everything()).await["structuredContent"], everything());
    }
    let list = json!([1, 2]);
    for (place, list) in [
        ("/start", &list),
        ("/shapes/0/at", &list),
        ("/shapes/1/to", &list),
        ("/shapes/0", &json!(["dot", point()])),
        ("/place", &list),
        ("/place", &json!(["here", null])),
        ("/place/near", &list),
        ("/goal/value/0", &list),
        ("/goal", &json!(["between", [point(), point()]])),
        ("/perhaps", &list),
    ] {
        assert_refused::<Everything>(&everything(), place, list).await;
    }
}

/// N4: so it is for a type whose schema has nothing that parsing does not enforce, so that no validator is used.
#[tokio::test]
async fn a_list_is_not_taken_for_a_struct_where_the_type_checks() {
    let good = json!({ "start": point(), "legs": [1, 2] });
    for tool in tools::<Trip>() {
        assert_eq!(call(tool, &good).await["structuredContent"], good);
    }
    assert_refused::<Trip>(&good, "/start", &json!([1, 2])).await;
}

/// N4: what is a list in Rust is a list, also inside of these types.
#[tokio::test]
async fn lists_inside_of_buffered_types_are_taken() {
    for (place, list) in [
        ("/legs", json!([])),
        ("/place", json!([1, 2, 3])),
        ("/shapes/1/at", json!([7, 7])),
        ("/shapes", json!([])),
    ] {
        for tool in tools::<Everything>() {
            let mut arguments = everything();
            *arguments.pointer_mut(place).expect("a place") = list.clone();
            let taken = call(tool, &arguments).await;
            assert_eq!(taken["structuredContent"], arguments, "{place}: {taken}");
        }
    }
}

/// Serde tries the variants in this order, and reads a struct in one of them from a list, but not the fields of a variant.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Spot {
    Small(Small),
    Named { name: String, at: Vec<i64> },
    Numbers(Vec<i64>),
    Pair(String, Vec<i64>),
    Nothing,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "a name / that is escaped in a reference %")]
struct Small {
    x: u8,
    #[serde(default)]
    y: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Located {
    spot: Spot,
}

/// N4: a list is told from a struct as serde tells them: only lists that it would read a struct from are refused.
#[tokio::test]
async fn a_list_is_told_from_a_struct_as_serde_tells_them() {
    for (spot, refused) in [
        (json!({ "x": 1 }), false),
        (json!([1, 2]), true),
        (json!([1]), true),
        (json!([1, 2, 3]), false),
        (json!([300, 2]), false),
        (json!([-1]), false),
        (json!([]), false),
        (json!(["a", [1]]), false),
        (json!({ "name": "a", "at": [1, 2] }), false),
        (json!(null), false),
    ] {
        for tool in tools::<Located>() {
            let result = call(tool, &json!({ "spot": spot })).await;
            let told = result["content"][0]["text"].as_str().unwrap_or_default();
            assert_eq!(result["isError"] == true, refused, "{spot}: {result}");
            let expected = "invalid arguments: /spot: a list, where an object is expected";
            assert!(!refused || told == expected, "{spot}: {told}");
        }
    }
}
