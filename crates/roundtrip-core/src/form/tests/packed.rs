use proptest::prelude::*;
use serde_json::json;

use super::object;
use crate::form::{Definition, check};

fn form() -> Definition {
    // As text, for the order of its fields.
    let schema = r#"{ "type": "object", "properties": {
        "text": { "type": "string" }, "yes": { "type": "boolean" }, "whole": { "type": "integer" },
        "number": { "type": "number" }, "some": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }
    } }"#;
    Definition::new(serde_json::from_str(schema).unwrap())
}

#[test]
fn packed_values_have_no_names_and_little_around_them() {
    let packed = |content| form().pack(&object(&content));
    let all =
        json!({ "text": "Grüße: 7", "yes": true, "whole": 12, "number": -0.5, "some": ["a"], "other": 1 });
    assert_eq!(packed(all), "s10:Grüße: 7tj2:12j4:-0.5j5:[\"a\"]");
    assert_eq!(packed(json!({})), "-----");
    assert_eq!(packed(json!({ "yes": false, "text": null, "whole": 1.0 })), "-fj3:1.0--");
}

#[test]
fn what_was_not_packed_reads_as_left_out() {
    for odd in ["", "é", "x", "s", "s:", "s3:ab", "s1:é", "s+1:a", "s99999999999999999999:a", "j1:{"] {
        assert_eq!(form().unpack(odd), object(&json!({})), "{odd}");
    }
}

proptest! {
    /// M24: an answer that fits is the same after it was remembered.
    #[test]
    fn what_is_packed_is_unpacked(
        text in proptest::option::of(".{0,40}"),
        yes in proptest::option::of(any::<bool>()),
        whole in proptest::option::of(any::<i64>()),
        number in proptest::option::of(-1_000_000_000_i32..1_000_000_000),
        some in proptest::option::of(proptest::sample::subsequence(vec!["a", "b"], 0..=2)),
    ) {
        let number = number.map(|number| f64::from(number) / 64.0);
        let content = object(&json!({
            "text": text, "yes": yes, "whole": whole, "number": number, "some": some, "stranger": text,
        }));
        let checked = check(form().schema(), &content).unwrap();
        prop_assert_eq!(form().unpack(&form().pack(&content)), checked);
    }

    /// Z2: whatever is in its place, reading it ends.
    #[test]
    fn any_text_is_unpacked(text in "([-tfsj]|[0-9]{1,3}:|.){0,30}") {
        let _ = form().unpack(&text);
    }
}
