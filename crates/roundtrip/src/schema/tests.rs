//! Tests of the bounds of schemas and of checking, and of the explanations.

use super::validator::options;
use super::*;
use proptest::prelude::*;
use schemars::{JsonSchema, schema_for};
use serde_json::json;

fn derived<T: JsonSchema>() -> Check {
    Check::derived(&schema_for!(T).into()).expect("a usable schema")
}

#[test]
fn a_plain_struct_is_checked_by_its_type_and_a_constrained_one_by_its_schema() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Plain {
        a: u8,
        b: Option<Vec<String>>,
        c: f64,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Constrained {
        #[schemars(range(min = 1, max = 12))]
        people: u8,
    }
    assert!(matches!(derived::<Plain>(), Check::ByType));
    let check = derived::<Constrained>();
    assert!(
        check.problems(&json!({ "people": 13 })).expect("a problem").starts_with("/people: 13 is greater")
    );
    assert_eq!(check.problems(&json!({ "people": 12 })), None);
}

/// N5: network and file references are never fetched; a schema that needs one is refused.
#[test]
fn external_references_are_refused() {
    for reference in ["http://127.0.0.1:9/x.json", "https://example.com/x.json", "file:///etc/passwd"] {
        let refused =
            Check::written(&json!({ "type": "object", "properties": { "a": { "$ref": reference } } }));
        assert!(refused.is_err(), "{reference}");
    }
    assert!(Check::written(&json!({ "$defs": { "a": {} }, "$ref": "#/$defs/a" })).is_ok());
}

/// N5: schema depth and size are bounded.
#[test]
fn deep_and_huge_schemas_are_refused() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert!(Check::written(&deep).is_err_and(|why| why.contains("deeper")));
    let huge = json!({ "enum": vec![0; 30_000] });
    assert!(Check::written(&huge).is_err_and(|why| why.contains("more than")));
}

/// Runs on a stack of the size tokio gives its workers, less what a server needs above the check.
fn on_a_small_stack<T: Send>(check: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(1536 * 1024).spawn_scoped(scope, check);
        thread.expect("a thread").join().expect("no panic")
    })
}

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).expect("a usable schema")
}

/// A chain of definitions, each applying the next to the same value with a keyword, and the last going one level down.
fn chain(length: usize, apply: impl Fn(Value) -> Value, descend: impl Fn(Value) -> Value) -> Value {
    let mut defs = serde_json::Map::new();
    for index in 0..length {
        let schema = if index + 1 == length {
            descend(json!({ "$ref": "#/$defs/0" }))
        } else {
            apply(json!({ "$ref": format!("#/$defs/{}", index + 1) }))
        };
        defs.insert(index.to_string(), schema);
    }
    json!({ "$defs": defs, "$ref": "#/$defs/0" })
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!(1), |inner, _| wrap(inner))
}

type Wrap = fn(Value) -> Value;

/// Keywords that apply a schema to the same value.
const APPLY: [Wrap; 8] = [
    |next| next,
    |next| json!({ "allOf": [next] }),
    |next| json!({ "anyOf": [false, next] }),
    |next| json!({ "oneOf": [false, next] }),
    |next| json!({ "not": { "not": next } }),
    |next| json!({ "if": true, "then": next }),
    |next| json!({ "dependentSchemas": { "a": next } }),
    |next| json!({ "allOf": [next], "unevaluatedProperties": false, "unevaluatedItems": false }),
];

/// Keywords that apply a schema one level down, with values that have such a level.
const DESCEND: [(Wrap, Wrap); 5] = [
    (|next| json!({ "items": next }), |inner| json!([inner])),
    (|next| json!({ "prefixItems": [next] }), |inner| json!([inner])),
    (|next| json!({ "properties": { "a": next } }), |inner| json!({ "a": inner })),
    (|next| json!({ "additionalProperties": next }), |inner| json!({ "a": inner })),
    (|next| json!({ "patternProperties": { "a": next } }), |inner| json!({ "a": inner })),
];

/// N5: whatever applies to a value, and however deep the value is, the stack of a worker is enough, also where the
/// check ends in an explanation.
#[test]
fn chained_references_and_deep_values_do_not_overflow_the_stack() {
    let deepest = nested(127, |inner| json!([inner]));
    for apply in APPLY {
        for (descend, wrap) in DESCEND {
            for length in [2, 19, 62] {
                let end = |next: Value| json!({ "type": ["object", "array"], "allOf": [descend(next)] });
                for schema in [chain(length, apply, descend), chain(length, apply, end)] {
                    let value = nested(127, wrap);
                    on_a_small_stack(|| {
                        if let Ok(schema) = Schema::compile(&schema) {
                            let _ = schema.check(&value);
                            let _ = schema.check(&deepest);
                        }
                    });
                }
            }
        }
    }
}

/// N5: trees and lists can be as deep as the JSON that is taken.
#[test]
fn recursive_types_are_checked_to_the_depth_of_json() {
    let tree = compiled(&json!({
        "$defs": { "tree": {
            "type": "object",
            "properties": {
                "value": { "type": "integer", "minimum": 0 },
                "children": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
            },
            "required": ["value"],
        } },
        "$ref": "#/$defs/tree",
    }));
    let leaf = |value: i64| json!({ "value": value });
    let deep = |leaf: Value| (0..62).fold(leaf, |inner, _| json!({ "value": 1, "children": [inner] }));
    on_a_small_stack(|| {
        assert_eq!(tree.check(&deep(leaf(3))), Ok(()));
        let Err(Misfit::Problems(why)) = tree.check(&deep(leaf(-3))) else { panic!("it fits") };
        assert_eq!(why, format!("{}/value: -3 is less than the minimum of 0", "/children/0".repeat(62)));
    });
}

/// N5: a schema is bounded by what its references unfold to, not by what is written.
#[test]
fn chained_references_and_reference_bombs_are_refused() {
    let refused = |schema: Value| Schema::compile(&schema).expect_err("too much");
    assert!(refused(chain(400, APPLY[0], DESCEND[0].0)).contains("more than 64 schemas apply one another"));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let bomb = |index: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
            (index.to_string(), json!({ keyword: [next, next], "unevaluatedProperties": false }))
        };
        let mut defs: serde_json::Map<String, Value> = (0..27).map(bomb).collect();
        defs.insert("27".into(), json!({ "type": "object" }));
        let why = refused(json!({ "$defs": defs, "$ref": "#/$defs/0" }));
        assert!(why.contains("unfold to more than 100000 schemas"), "{why}");
    }
    assert!(refused(json!({ "allOf": [{ "$ref": "#" }] })).contains("without end"));
}

/// N5: a bomb that goes one level down at every step passes for a recursive type, and is defused while it is checked.
#[test]
fn a_bomb_in_the_depth_of_a_value_ends_when_the_budget_is_spent() {
    // Every definition is applied twice by the one before; the library remembers nothing between them.
    let bomb = |index: usize| {
        let next = json!({ "$ref": format!("#/$defs/{}", (index + 1) % 40) });
        (index.to_string(), json!({ "anyOf": [{ "items": next }, { "items": next }, { "items": next }] }))
    };
    let mut defs: serde_json::Map<String, Value> = (0..40).map(bomb).collect();
    defs.insert("39".into(), json!({ "items": false }));
    let schema = compiled(&json!({ "$defs": defs, "$ref": "#/$defs/0" }));
    let value = nested(100, |inner| json!([inner]));
    assert_eq!(schema.check(&value), Err(Misfit::TooMuchWork));
}

/// N5: patterns are matched in linear time, and those that cannot be are refused.
#[test]
fn patterns_do_not_backtrack() {
    let schema = compiled(&json!({ "items": { "pattern": "^(a+)+$" } }));
    let texts = vec![format!("{}!", "a".repeat(300)); 30];
    let Err(Misfit::Problems(why)) = schema.check(&json!(texts)) else { panic!("it fits") };
    assert!(why.starts_with("/0: the value does not match"), "{why}");
    for pattern in ["^(?=a)a", "^(a)\\1$"] {
        let why = Schema::compile(&json!({ "pattern": pattern })).expect_err("not linear");
        assert!(why.contains("linear time"), "{why}");
    }
    assert!(Schema::compile(&json!({ "pattern": "^(?:(?:a{1,100}){1,100}){1,100}$" })).is_err());
}

#[test]
fn what_is_wrong_is_told_with_its_path() {
    let misfits = [
        (json!({ "type": "object", "required": ["a"] }), json!({}), "\"a\" is a required property"),
        (
            json!({ "properties": { "a": { "type": "string" }, "b": { "maximum": 3 } } }),
            json!({ "a": 1, "b": 4 }),
            "/a: 1 is not of type \"string\"; /b: 4 is greater than the maximum of 3",
        ),
        (
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "a": 1, "b": 4 }),
            "Additional properties are not allowed ('b' was unexpected)",
        ),
        (
            json!({ "additionalProperties": { "type": "null" } }),
            json!({ "x/y": 1 }),
            "/x~1y: 1 is not of type \"null\"",
        ),
        (json!({ "prefixItems": [{}, { "const": 2 }] }), json!([1, 3]), "/1: 2 was expected"),
        (json!({ "not": { "type": "null" } }), json!(null), "fits a schema that it must not fit (`not`)"),
        (json!({ "anyOf": [{ "const": 1 }, { "const": "b" }] }), json!(3), "must be one of 1, \"b\""),
        (
            json!({ "anyOf": [{ "type": "null" }, { "minimum": 3 }] }),
            json!(1),
            "1 is less than the minimum of 3",
        ),
        (json!({ "oneOf": [{}, { "minimum": 3 }] }), json!(4), "fits 2 of the alternatives, not one"),
        (
            json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
            json!(4),
            "fits none of the 2 alternatives",
        ),
        (
            json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] } }),
            json!({ "a": 1 }),
            "\"b\" is a required property",
        ),
        (json!({ "properties": { "a": false } }), json!({ "a": 1 }), "/a: nothing is allowed here"),
        (json!({ "contains": { "type": "null" } }), json!([1]), "does not fit the schema"),
    ];
    for (schema, value, expected) in misfits {
        assert_eq!(compiled(&schema).check(&value), Err(Misfit::Problems(expected.into())), "{schema}");
    }
}

/// A problem quotes no more than a few words of what a peer sent.
#[test]
fn problems_are_short() {
    let schema = compiled(&json!({ "additionalProperties": { "type": "null" } }));
    let long = "x".repeat(100_000);
    let Err(Misfit::Problems(why)) = schema.check(&json!({ long.clone(): long })) else { panic!("it fits") };
    assert!(why.len() < 500, "{}", why.len());
}

/// A filter as tools have them, in the three ways serde writes an enum.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
#[schemars(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    And { filters: Vec<Tagged> },
    Or { filters: Vec<Tagged> },
    Not { filter: Box<Tagged> },
    Is { field: String, value: i64 },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
#[schemars(untagged)]
enum Untagged {
    And { and: Vec<Untagged> },
    Or { or: Vec<Untagged> },
    Not { not: Box<Untagged> },
    Is { field: String, value: i64 },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
#[schemars(rename_all = "snake_case")]
enum External {
    And(Vec<External>),
    Or(Vec<External>),
    Not(Box<External>),
    Is { field: String, value: i64 },
}

/// A filter, to be written in any of these ways.
#[derive(Debug, Clone)]
enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Is(Value),
}

impl Filter {
    /// With no tag, with a tag, and with the variant's name around it.
    fn write(&self, way: usize) -> Value {
        let all = |filters: &[Self]| Value::from_iter(filters.iter().map(|filter| filter.write(way)));
        let (kind, inner) = match self {
            Self::And(filters) => ("and", all(filters)),
            Self::Or(filters) => ("or", all(filters)),
            Self::Not(filter) => ("not", filter.write(way)),
            Self::Is(value) => {
                return match way {
                    0 => json!({ "kind": "is", "field": "f", "value": value }),
                    1 => json!({ "field": "f", "value": value }),
                    _ => json!({ "is": { "field": "f", "value": value } }),
                };
            }
        };
        let name = if kind == "not" { "filter" } else { "filters" };
        if way == 0 { json!({ "kind": kind, name: inner }) } else { json!({ kind: inner }) }
    }

    /// Makes the last leaf wrong.
    fn spoil(&mut self) {
        match self {
            Self::And(filters) | Self::Or(filters) => match filters.last_mut() {
                Some(last) => last.spoil(),
                None => *self = Self::Is(json!("wrong")),
            },
            Self::Not(filter) => filter.spoil(),
            Self::Is(value) => *value = json!("wrong"),
        }
    }
}

fn filters() -> impl Strategy<Value = Filter> {
    let leaf = any::<i64>().prop_map(|value| Filter::Is(json!(value)));
    leaf.prop_recursive(30, 120, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Filter::Or),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

fn filter_schemas() -> [Schema; 3] {
    [schema_for!(Tagged), schema_for!(Untagged), schema_for!(External)].map(|schema| compiled(&schema.into()))
}

/// N4: a wrong leaf in a recursive enum is found with its path, in work that does not grow with the alternatives of
/// every level on the way to it.
fn assert_wrong_leaf_is_found(schemas: &[Schema; 3], mut filter: Filter) {
    for (way, schema) in schemas.iter().enumerate() {
        assert_eq!(schema.check(&filter.write(way)), Ok(()));
    }
    filter.spoil();
    for (way, schema) in schemas.iter().enumerate() {
        let why = match schema.check(&filter.write(way)) {
            Err(Misfit::Problems(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(why.ends_with("/value: \"wrong\" is not of type \"integer\""), "{why}");
        assert!(!why.contains(';'), "{why}");
    }
}

/// N4: a wrong leaf at the bottom of the deepest filter JSON can write takes a bounded amount of work.
#[test]
fn a_wrong_leaf_in_a_recursive_enum_is_found_in_bounded_work() {
    let schemas = filter_schemas();
    for kind in [Filter::And, Filter::Or] {
        let leaf = || Filter::Is(json!(1));
        let deep = (0..60).fold(leaf(), |inner, _| kind(vec![leaf(), inner]));
        on_a_small_stack(|| assert_wrong_leaf_is_found(&schemas, deep));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// N4: wherever the wrong leaf is.
    #[test]
    fn any_wrong_leaf_in_a_recursive_enum_is_found(filter in filters()) {
        assert_wrong_leaf_is_found(&filter_schemas(), filter);
    }
}

/// Any keywords, with references to any of a few definitions.
fn hostile_schemas() -> impl Strategy<Value = Value> {
    let target = (0..6_usize).prop_map(|index| json!({ "$ref": format!("#/$defs/{index}") }));
    let assertion = prop_oneof![
        Just(json!(true)),
        Just(json!({})),
        Just(json!({ "type": ["object", "array"] })),
        Just(json!({ "const": 1 })),
        Just(json!({ "enum": [[], {}, 1] })),
        Just(json!({ "maxProperties": 1, "maxItems": 2, "uniqueItems": true })),
        Just(json!({ "required": ["a"], "pattern": "a" })),
    ];
    let inner = prop_oneof![3 => target, 2 => assertion];
    let keyword = prop_oneof![
        4 => prop::sample::select(vec!["items", "contains", "additionalProperties", "unevaluatedProperties",
            "unevaluatedItems", "propertyNames"]).prop_map(|name| (name, 0)),
        3 => prop::sample::select(vec!["prefixItems"]).prop_map(|name| (name, 1)),
        4 => prop::sample::select(vec!["properties", "patternProperties"]).prop_map(|name| (name, 2)),
        1 => prop::sample::select(vec!["not", "if", "then", "else"]).prop_map(|name| (name, 0)),
        2 => prop::sample::select(vec!["allOf", "anyOf", "oneOf"]).prop_map(|name| (name, 1)),
        1 => Just(("dependentSchemas", 2)),
    ];
    let member = (keyword, inner.clone(), inner).prop_map(|((name, shape), first, second)| {
        let held = match shape {
            0 => first,
            1 => json!([first, second]),
            _ => json!({ "a": first, "b": second }),
        };
        (name.to_owned(), held)
    });
    let schema = prop::collection::vec(member, 1..4).prop_map(|all| Value::Object(all.into_iter().collect()));
    prop::collection::vec(schema, 6).prop_map(|schemas| {
        let defs: serde_json::Map<String, Value> =
            schemas.into_iter().enumerate().map(|(index, schema)| (index.to_string(), schema)).collect();
        json!({ "$defs": defs, "$ref": "#/$defs/0" })
    })
}

fn values(depth: u32, size: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!(null)), Just(json!("a"))];
    leaf.prop_recursive(depth, size, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// N5: no schema makes checking a value panic, overflow the stack, or take more than the budget.
    #[test]
    fn hostile_schemas_and_hostile_values_are_checked_in_bounded_work(
        schema in hostile_schemas(),
        value in values(60, 200),
    ) {
        on_a_small_stack(|| {
            let Ok(schema) = Schema::compile(&schema) else { return };
            let arrays = nested(126, |inner| json!([inner, 1]));
            let objects = nested(126, |inner| json!({ "a": inner, "b": [1] }));
            for value in [value, arrays, objects] {
                let start = std::time::Instant::now();
                let _ = schema.check(&value);
                // Generous: unoptimised builds take a second for the whole budget.
                assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", schema.document.root());
            }
        });
    }

    /// Values read through the meter fit the schemas they fit without it.
    #[test]
    fn the_meter_changes_no_verdict(schema in hostile_schemas(), value in values(3, 12)) {
        let Ok(schema) = Schema::compile(&schema) else { return Ok(()) };
        let plain = options::<jsonschema::json::SerdeJson>(schema.document.dialect).build(schema.document.root()).expect("compiled before");
        match schema.check(&value) {
            Err(Misfit::TooMuchWork) => {}
            Ok(()) => prop_assert!(plain.is_valid(&value)),
            Err(Misfit::Problems(why)) => prop_assert!(!plain.is_valid(&value) && !why.is_empty()),
        }
    }
}
