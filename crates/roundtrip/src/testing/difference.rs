//! First difference between two JSON values, for error texts.

use serde_json::Value;

/// Characters that are shown of a value, and those of them before the difference.
const SHOWN: usize = 72;
const BEFORE: usize = 24;

/// First place at which two values differ, as a JSON pointer, and the values there in short.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) place: String,
    pub(super) first: String,
    pub(super) then: String,
}

impl Difference {
    /// Compares two values.
    pub(super) fn between(first: &Value, then: &Value) -> Option<Self> {
        let mut place = String::new();
        let (first, then) = descend(Some(first), Some(then), &mut place)?;
        let (first, then) = match (first, then) {
            (Some(Value::String(first)), Some(Value::String(then))) => {
                let same = first.chars().zip(then.chars()).take_while(|(a, b)| a == b).count();
                (around(first, same), around(then, same))
            }
            (first, then) => (short(first), short(then)),
        };
        Some(Self { place, first, then })
    }
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// Finds the innermost values that differ, and writes the path to them. `None` stands for a missing member.
fn descend<'a>(first: Option<&'a Value>, then: Option<&'a Value>, place: &mut String) -> Option<Pair<'a>> {
    if first == then {
        return None;
    }
    let members: Vec<(String, Pair<'a>)> = match (first, then) {
        (Some(Value::Object(first)), Some(Value::Object(then))) => {
            let added = then.keys().filter(|name| !first.contains_key(*name));
            let names = first.keys().chain(added);
            names.map(|name| (name.clone(), (first.get(name), then.get(name)))).collect()
        }
        (Some(Value::Array(first)), Some(Value::Array(then))) => {
            let indices = 0..first.len().max(then.len());
            indices.map(|at| (at.to_string(), (first.get(at), then.get(at)))).collect()
        }
        _ => return Some((first, then)),
    };
    let (name, (first, then)) = members.into_iter().find(|(_, (first, then))| first != then)?;
    place.push('/');
    place.push_str(&name.replace('~', "~0").replace('/', "~1"));
    descend(first, then, place)
}

/// Quotes a text around the character at which it differs.
fn around(text: &str, difference: usize) -> String {
    let start = if text.chars().count() > SHOWN { difference.saturating_sub(BEFORE) } else { 0 };
    let shown: String = text.chars().skip(start).take(SHOWN).collect();
    let cut = start + SHOWN < text.chars().count();
    format!("{}{shown:?}{}", if start > 0 { "…" } else { "" }, if cut { "…" } else { "" })
}

/// Writes a value in short.
pub(super) fn short(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => around(text, 0),
        Some(value) => roundtrip_core::wire::clip_to(&value.to_string(), SHOWN).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn between(first: &Value, then: &Value) -> Option<(String, String, String)> {
        Difference::between(first, then).map(|found| (found.place, found.first, found.then))
    }

    fn found(place: &str, first: &str, then: &str) -> Option<(String, String, String)> {
        Some((place.to_owned(), first.to_owned(), then.to_owned()))
    }

    #[test]
    fn the_first_difference_is_found_with_its_path() {
        let first = json!({ "a": [1, { "b/c": true }], "d": 1 });
        assert_eq!(between(&first, &first), None);
        let then = json!({ "a": [1, { "b/c": false }], "d": 2 });
        assert_eq!(between(&first, &then), found("/a/1/b~1c", "true", "false"));
        assert_eq!(
            between(&json!({ "a": [1] }), &json!({ "a": [1, "x"] })),
            found("/a/1", "nothing", "\"x\"")
        );
        assert_eq!(between(&json!({}), &json!({ "e": {} })), found("/e", "nothing", "{}"));
        assert_eq!(between(&json!(1), &json!("1")), found("", "1", "\"1\""));
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let text = |number: u8| json!(format!("{}{number}{}", "é".repeat(200), "z".repeat(200)));
        let Some((_, first, then)) = between(&text(1), &text(2)) else { panic!("they differ") };
        assert_eq!(first, format!("…\"{}1{}\"…", "é".repeat(BEFORE), "z".repeat(SHOWN - BEFORE - 1)));
        assert_eq!(then, first.replace('1', "2"));
    }
}
