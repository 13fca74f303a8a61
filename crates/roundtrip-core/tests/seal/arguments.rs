//! The digest of arguments: one for all spellings of a value, another for every other value.

use proptest::prelude::*;
use roundtrip_core::seal::*;
use serde_json::{Map, Value, json};

#[track_caller]
fn digest(text: &str) -> Digest {
    digest_arguments(Some(text)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// S4: a client that writes its arguments anew for the retry still matches.
#[test]
fn spellings_of_one_value_are_equal() {
    for (one, other) in [
        (r#"{"a":1,"b":[true,null]}"#, " {\n\t\"b\" : [ true , null ] ,\r \"a\" : 1 } "),
        (r#"{"a":{"c":1,"b":2},"":{}}"#, r#"{"":{},"a":{"b":2,"c":1}}"#),
        (r#"{"gr\u00fcn":"\u2713 \ud83e\udd80 \/ \n"}"#, "{\"gr\u{fc}n\":\"\u{2713} \u{1f980} / \\u000A\"}"),
    ] {
        assert_eq!(digest(one), digest(other), "{one} {other}");
    }
    assert_eq!(digest("{}"), digest_arguments(None).unwrap());
}

/// S4: tokens outlive a release, so the digest of a value never changes.
#[test]
fn digests_are_what_they_have_always_been() {
    for text in [
        r#"{"z":{"y":1,"x":[{"b":true,"a":null}]},"a":"s"}"#,
        r#"{"a":"s","z":{"x":[{"a":null,"b":true}],"y":1}}"#,
    ] {
        assert_eq!(format!("{:?}", digest(text)), "e576833e08b6930cd54bbc1477fa18e7");
    }
}

/// S4: numbers are compared by value, exactly.
#[test]
fn numbers_are_compared_as_decimals() {
    for same in [
        ["0", "-0", "0.0", "0e5", "-0.00E-99999999999999999999"].as_slice(),
        &["10", "10.0", "1e1", "1E+1", "100e-1", "0.1e2", "0.001e4"],
        &["-12.5", "-12.50", "-125e-1", "-1.25e1", "-0.125E2"],
        &["18446744073709551617", "18446744073709551617.0", "1.8446744073709551617e19"],
        &["1e400", "10e399", "0.1e401"],
    ] {
        for text in same {
            assert_eq!(digest(text), digest(same[0]), "{text}");
        }
    }
    let different = [
        "0",
        "1",
        "-1",
        "10",
        "100",
        "101",
        "0.1",
        "0.01",
        "1.1",
        "11",
        "1e400",
        "1e-400",
        "1e399",
        "18446744073709551616",
        "18446744073709551617",
        "9007199254740993",
        "9007199254740992",
    ];
    for (index, one) in different.iter().enumerate() {
        for other in &different[..index] {
            assert_ne!(digest(one), digest(other), "{one} {other}");
        }
    }
}

/// S4: kinds and structure count.
#[test]
fn different_values_have_different_digests() {
    let texts = [
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "0",
        "\"\"",
        "\"0\"",
        "\"null\"",
        "[[]]",
        "[[],[]]",
        "[[[]]]",
        "[{}]",
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"{"b":1}"#,
        r#"{"A":1}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{},"b":1}"#,
        "[1,2]",
        "[2,1]",
        "[12]",
        r#"["a","b"]"#,
        r#"["ab"]"#,
        r#"["a\",\"b"]"#,
        r#"{"a":null}"#,
        "[null]",
        "[null,null]",
        "\" \"",
        "\"\\u0000\"",
    ];
    for (index, one) in texts.iter().enumerate() {
        for other in &texts[..index] {
            assert_ne!(digest(one), digest(other), "{one} {other}");
        }
    }
}

/// S4: a text that two readers could take for two calls has no digest.
#[test]
fn duplicate_names_are_refused() {
    for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"b":2,"a":3}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
        assert_eq!(digest_arguments(Some(text)), Err(ArgumentsError::DuplicateName), "{text}");
    }
    digest(r#"{"a":{"a":1},"b":{"a":1}}"#);
}

#[test]
fn what_is_not_json_has_no_digest() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[",
        "[1,]",
        "[,1]",
        "[1 2]",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{a:1}"#,
        "nul",
        "truee",
        "01",
        "-",
        "-01",
        "1.",
        ".1",
        "1e",
        "1e+",
        "+1",
        "1.e1",
        "0x1",
        "NaN",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\n\"",
        "\"\\\u{e9}\"",
        "{} {}",
        "\u{a0}{}",
        "\u{feff}{}",
        "1e99999999999999999999",
    ] {
        assert_eq!(digest_arguments(Some(text)), Err(ArgumentsError::Malformed), "{text:?}");
    }
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    digest(&nested(128));
    assert_eq!(digest_arguments(Some(&nested(129))), Err(ArgumentsError::TooDeep));
    assert_eq!(digest_arguments(Some(&"[{\"a\":".repeat(50_000))), Err(ArgumentsError::TooDeep));
}

/// S4: a prompt's arguments, which come parsed, match the JSON they came from.
#[test]
fn text_arguments_digest_like_their_json() {
    let pairs = [("z", "1"), ("a", "\u{fc}"), ("", "")];
    assert_eq!(digest_text_arguments(pairs).unwrap(), digest(r#"{"":"","z":"1","a":"\u00fc"}"#));
    assert_eq!(digest_text_arguments([]).unwrap(), digest_arguments(None).unwrap());
    assert_eq!(digest_text_arguments([("a", "1"), ("a", "2")]), Err(ArgumentsError::DuplicateName));
}

/// JSON with few names and few values, so that equal and nearly equal values come up often.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..3_u64).prop_map(Value::from),
        "[a\"\\\\ \u{fc}\u{1f980}\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab\u{fc}\n]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value in one of its spellings.
fn spell(value: &Value, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    let mut blank = |out: &mut String| {
        let choice = choices.next().unwrap_or_default();
        out.push_str(["", "", " ", "\n\t", "\r"][usize::from(choice) % 5]);
        choice
    };
    let choice = blank(out);
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                spell(item, choices, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            if !entries.is_empty() {
                let middle = usize::from(choice) % entries.len();
                entries.rotate_left(middle);
            }
            if choice % 2 == 1 {
                entries.reverse();
            }
            out.push('{');
            for (index, (name, value)) in entries.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                spell(&json!(name), choices, out);
                out.push(':');
                spell(value, choices, out);
            }
            out.push('}');
        }
        Value::String(text) if choice % 2 == 1 => {
            out.push('"');
            text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            out.push('"');
        }
        Value::Number(number) => {
            out.push_str(&format!("{number}{}", ["", ".0", "e0", ".00E+0"][usize::from(choice) % 4]));
        }
        other => out.push_str(&other.to_string()),
    }
    let choice = choices.next().unwrap_or_default();
    out.push_str(["", " "][usize::from(choice) % 2]);
}

proptest! {
    /// S4: the digest does not depend on white space, order, escapes or the spelling of numbers.
    #[test]
    fn digests_do_not_depend_on_spelling(
        value in any_json(), choices in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut text = String::new();
        spell(&value, &mut choices.into_iter(), &mut text);
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        prop_assert_eq!(digest(&text), digest(&value.to_string()), "{}", text);
    }

    /// S4: two values have one digest only if they are equal.
    #[test]
    fn digests_are_equal_only_when_values_are(one in any_json(), other in any_json()) {
        prop_assert_eq!(digest(&one.to_string()) == digest(&other.to_string()), one == other);
    }

    /// M4: what `serde_json` reads has a digest, what it does not read has none, and nothing panics.
    #[test]
    fn agrees_with_serde_json_on_what_json_is(text in "[\\[\\]{}\",:0-2.eE+\\-\\\\u truefalsn]{0,12}") {
        let ours = digest_arguments(Some(&text));
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        if theirs.is_err() {
            prop_assert_eq!(ours, Err(ArgumentsError::Malformed));
        } else {
            // `RawValue` takes lone surrogates and endless exponents, which nothing can hold.
            prop_assert!(ours.is_ok() || serde_json::from_str::<Value>(&text).is_err()
                || ours == Err(ArgumentsError::DuplicateName), "{:?}", ours);
        }
    }
}
