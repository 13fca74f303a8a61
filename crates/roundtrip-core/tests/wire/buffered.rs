//! Lists that serde buffers on its way to a type, past the check by name: they are noted.

use std::collections::BTreeMap;

use roundtrip_core::wire::json;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Point {
    x: i64,
    y: i64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Pair(i64, Point);

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
enum Shape {
    Line(Point, Point),
}

/// Reads a value, and returns whether a list was noted. Then it is not read where there may be none.
fn noted<T: for<'a> Deserialize<'a>>(value: &Value) -> bool {
    let lists = json::Lists::default();
    T::deserialize(json::ByName::noting(value, &lists)).expect("it fits");
    assert_eq!(json::from_str_unbuffered::<T>(&value.to_string()).is_err(), lists.any(), "{value}");
    lists.any()
}

#[test]
fn lists_that_serde_buffers_are_noted() {
    #[derive(Deserialize)]
    struct Flat {
        #[serde(flatten)]
        _inner: BTreeMap<String, Pair>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        At { _at: Point },
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "it is only read")]
    enum Untagged {
        At(Point),
    }
    #[derive(Deserialize)]
    #[serde(tag = "kind", content = "of")]
    #[expect(dead_code, reason = "it is only read")]
    enum Adjacent {
        At(Point),
    }
    let point = || json!({ "x": 1, "y": 2 });
    assert!(noted::<Flat>(&json!({ "a": [1, point()] })));
    assert!(noted::<Tagged>(&json!({ "kind": "At", "_at": [1, 2] })));
    assert!(noted::<Untagged>(&json!([1, 2])) && noted::<Vec<Untagged>>(&json!([[1, 2]])));
    assert!(noted::<Adjacent>(&json!({ "of": [1, 2], "kind": "At" })), "the content is ahead of its tag");
    assert!(noted::<Value>(&json!({ "a": [] })));
    assert!(!noted::<Tagged>(&json!({ "kind": "At", "_at": point() })));
    assert!(!noted::<Vec<Untagged>>(&json!([point()])), "a list of a known type");
    assert!(!noted::<(i64, Vec<Shape>)>(&json!([1, [{ "Line": [point(), point()] }]])));
}
