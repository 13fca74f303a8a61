//! Headers that mirror arguments: how values are written, and which annotations are allowed.

use std::time::{Duration, Instant};

use roundtrip_core::wire::*;
use serde_json::{Map, Value, json};

#[track_caller]
fn round_trip(value: &str, header: &str) {
    assert_eq!(encode_header_value(value), header);
    assert_eq!(decode_header_value(header).unwrap(), value);
}

#[test]
fn plain_values_stand_as_they_are() {
    for value in ["", "us-west1", "a b\tc", "~!", "=?base64?", "?=", "=?BASE64?YQ==?="] {
        round_trip(value, value);
    }
}

#[test]
fn what_a_header_cannot_carry_is_base64() {
    round_trip("grün", "=?base64?Z3LDvG4=?=");
    round_trip(" a", "=?base64?IGE=?=");
    round_trip("a\t", "=?base64?YQk=?=");
    round_trip("a\r\nb", "=?base64?YQ0KYg==?=");
    round_trip("\u{7f}", "=?base64?fw==?=");
}

#[test]
fn a_value_that_looks_encoded_is_encoded() {
    round_trip("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?=");
    assert_ne!(encode_header_value("=?base64?="), "=?base64?=", "the two markers may overlap");
}

#[test]
fn values_that_cannot_be_read_are_refused() {
    for value in ["=?base64?YQ?=", "=?base64?YQ=?=", "=?base64?YR==?=", "=?base64?Y Q?=", "=?base64?-_-_?="] {
        assert_eq!(decode_header_value(value), Err(HeaderValueError::Base64), "{value}");
    }
    assert_eq!(decode_header_value("=?base64?/w==?="), Err(HeaderValueError::Utf8));
    for value in ["grün", "a\nb", "a\u{0}", "\u{7f}"] {
        assert_eq!(decode_header_value(value), Err(HeaderValueError::Characters), "{value:?}");
    }
    assert_eq!(decode_header_value("=?base64??=").unwrap(), "");
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn refusal(schema: &Value) -> HeaderParamError {
    HeaderParams::from_schema(schema).unwrap_err()
}

#[test]
fn annotations_are_found_at_any_depth_of_properties() {
    let schema = object(&json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "query": { "type": "string" },
        "page": object(&json!({ "size": { "type": "integer", "x-mcp-header": "Page-Size" } })),
        "x-mcp-header": { "type": "boolean", "x-mcp-header": "Odd" },
        "data": { "type": "object", "default": { "x-mcp-header": 5 }, "enum": [{ "x-mcp-header": "" }] }
    }));
    let params = HeaderParams::from_schema(&schema).unwrap();
    let found: Vec<_> = params.iter().map(|param| (param.header.as_str(), param.path.join("."))).collect();
    assert_eq!(
        found,
        [
            ("Mcp-Param-Region", "region".to_owned()),
            ("Mcp-Param-Page-Size", "page.size".to_owned()),
            ("Mcp-Param-Odd", "x-mcp-header".to_owned())
        ]
    );
    assert!(HeaderParams::from_schema(&json!({ "type": "object" })).unwrap().is_empty());
}

#[test]
fn names_must_be_tokens_and_unique() {
    let named = |name: Value| refusal(&object(&json!({ "a": { "type": "string", "x-mcp-header": name } })));
    let place = || "/properties/a".to_owned();
    assert_eq!(named(json!("")), HeaderParamError::Empty { place: place() });
    assert_eq!(named(json!(5)), HeaderParamError::NotAString { place: place() });
    for name in ["a b", "a:b", "a\r\nb", "ä", "a(b)"] {
        assert_eq!(named(json!(name)), HeaderParamError::NotAToken { place: place(), name: name.into() });
    }
    let twice = object(&json!({
        "a": { "type": "string", "x-mcp-header": "Id" }, "b": { "type": "integer", "x-mcp-header": "iD" }
    }));
    let error = refusal(&twice);
    assert_eq!(error, HeaderParamError::Duplicate { place: "/properties/b".into(), name: "iD".into() });
    assert!(error.to_string().contains("`/properties/b`"), "{error}");
}

#[test]
fn types_must_be_string_integer_or_boolean() {
    for kind in [json!("number"), json!("object"), json!("array"), json!("null"), json!(["string", "null"])] {
        let schema = object(&json!({ "a": { "type": kind, "x-mcp-header": "A" } }));
        assert!(matches!(refusal(&schema), HeaderParamError::NotPrimitive { .. }), "{kind}");
    }
    let schema = object(&json!({ "a": { "x-mcp-header": "A" } }));
    assert!(matches!(refusal(&schema), HeaderParamError::NotPrimitive { .. }));
}

#[test]
fn annotations_must_be_reached_through_properties_alone() {
    let marked = json!({ "type": "string", "x-mcp-header": "A" });
    let inner = object(&json!({ "b": marked }));
    for keyword in ["items", "contains", "additionalProperties", "not", "if", "then", "else", "propertyNames"]
    {
        let schema = object(&json!({ "a": { keyword: inner } }));
        let place = format!("/properties/a/{keyword}/properties/b");
        assert_eq!(refusal(&schema), HeaderParamError::NotReachable { place });
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        let schema = json!({ "type": "object", keyword: [{}, inner] });
        assert!(matches!(refusal(&schema), HeaderParamError::NotReachable { .. }), "{keyword}");
    }
    for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
        let schema = json!({ "type": "object", keyword: { "x-mcp-header": marked } });
        let place = format!("/{keyword}/x-mcp-header");
        assert_eq!(refusal(&schema), HeaderParamError::NotReachable { place });
    }
    let root = json!({ "type": "object", "x-mcp-header": "A" });
    assert_eq!(refusal(&root), HeaderParamError::NotReachable { place: "/".into() });
}

#[test]
fn schemas_nested_too_deep_are_refused() {
    let nested =
        |levels| (0..levels).fold(json!({ "type": "string" }), |inner, _| object(&json!({ "a": inner })));
    assert!(HeaderParams::from_schema(&nested(64)).is_ok());
    assert!(matches!(refusal(&nested(65)), HeaderParamError::TooDeep { .. }));
}

/// A name is copied for the annotations below it alone, and those are bounded: a hostile list of tools costs its size.
#[test]
fn a_long_name_above_many_properties_is_not_copied_for_each() {
    let long = "x".repeat(4 << 20);
    let below = |schema: Value| {
        let many: Map<String, Value> =
            (0..50_000).map(|number| (number.to_string(), schema.clone())).collect();
        object(&json!({ &*long: object(&Value::Object(many)) }))
    };
    let begun = Instant::now();
    assert!(
        HeaderParams::from_schema(&below(json!({ "type": "string" }))).is_ok_and(|found| found.is_empty())
    );
    let marked = json!({ "type": "string", "x-mcp-header": "A" });
    let HeaderParamError::TooMany { place } = refusal(&below(marked)) else { panic!("too many") };
    assert!(place.len() < 500, "{place}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_schema_has_a_thousand_annotations_at_most() {
    let schema = |count: usize| {
        let marked = |number| {
            (format!("p{number}"), json!({ "type": "string", "x-mcp-header": format!("H{number}") }))
        };
        object(&Value::Object((0..count).map(marked).collect()))
    };
    assert_eq!(HeaderParams::from_schema(&schema(1_000)).unwrap().iter().count(), 1_000);
    assert!(matches!(refusal(&schema(1_001)), HeaderParamError::TooMany { .. }));
}

#[test]
fn headers_of_a_call_follow_its_arguments() {
    let schema = object(&json!({
        "s": { "type": "string", "x-mcp-header": "S" },
        "i": { "type": "integer", "x-mcp-header": "I" },
        "b": { "type": "boolean", "x-mcp-header": "B" },
        "o": object(&json!({ "n": { "type": "string", "x-mcp-header": "N" } }))
    }));
    let params = HeaderParams::from_schema(&schema).unwrap();
    let values = |arguments: Value| {
        let pairs = params.values(&arguments).into_iter();
        pairs.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
    };
    assert_eq!(
        values(json!({ "s": " x", "i": -7, "b": false, "o": { "n": "y" } })),
        ["Mcp-Param-S: =?base64?IHg=?=", "Mcp-Param-I: -7", "Mcp-Param-B: false", "Mcp-Param-N: y"]
    );
    assert_eq!(values(json!({ "s": null, "o": {} })), [""; 0]);
    assert_eq!(values(json!({ "i": 42.0 })), ["Mcp-Param-I: 42"]);
    assert_eq!(values(json!({ "i": 9_007_199_254_740_992_i64, "s": [], "o": "n" })), [""; 0]);
    assert_eq!(values(Value::Null), [""; 0]);
}

#[test]
fn headers_and_body_are_compared_by_value() {
    let matches = HeaderParams::matches;
    assert!(matches("a", &json!("a")) && matches("=?base64?YQ==?=", &json!("a")));
    assert!(!matches("A", &json!("a")) && !matches("=?base64?YQ?=", &json!("a")));
    assert!(matches("true", &json!(true)) && !matches("True", &json!(true)) && !matches("1", &json!(true)));
    assert!(matches("42", &json!(42)) && matches("42.0", &json!(42)) && matches("42", &json!(42.0)));
    assert!(matches("-9007199254740991", &json!(-9_007_199_254_740_991_i64)));
    assert!(!matches("9007199254740992", &json!(9_007_199_254_740_992_i64)), "beyond the safe range");
    for header in ["43", "+42", "042", "0x2a", "42.5", "", "=?base64?IDQy?=", "NaN", "\"42\""] {
        assert!(!matches(header, &json!(42)), "{header}");
    }
    assert!(!matches("1.5", &json!(1.5)) && !matches("null", &Value::Null) && !matches("[]", &json!([])));
}
