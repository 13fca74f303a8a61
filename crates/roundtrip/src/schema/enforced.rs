//! Keywords that parsing enforces, in schemas derived from the type that is parsed into.

use serde_json::{Map, Value};

/// Keywords of a derived schema that parsing enforces, and annotations. Those of the second part count only in shapes
/// that parsing enforces: schemas within them are looked at too.
const ENFORCED: &[&str] = &[
    "$schema",
    "$ref",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "format",
    "type",
    "required",
    "enum",
    "const",
    "$defs",
    "properties",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
];

/// Returns a keyword that serde, parsing into the type this schema was derived from, may not enforce.
/// In doubt a keyword is returned: that costs a validation, or an error at the start, and never a wrong acceptance.
pub(super) fn unenforced(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(keywords) => {
            keywords.iter().find_map(|(keyword, held)| unenforced_in(keyword, held, keywords))
        }
        Value::Bool(true) => None,
        _ => Some("false"),
    }
}

fn unenforced_in<'a>(keyword: &'a str, held: &'a Value, beside: &Map<String, Value>) -> Option<&'a str> {
    let unless = |enforced: bool| (!enforced).then_some(keyword);
    match keyword {
        "properties" | "$defs" => within(held),
        "items" => unenforced(held),
        "additionalProperties" if held != &Value::Bool(false) => unenforced(held),
        "minimum" | "maximum" => unless(natural_bound(beside.get("format"), keyword, held)),
        "anyOf" if is_option(held) => within(held),
        "oneOf" if all(held, |one| one.get("const").is_some()) => None,
        // A validator explains better than serde where an enum's alternatives are missed, so it is used where it can be.
        "additionalProperties" | "anyOf" | "oneOf" | "prefixItems" | "minItems" | "maxItems"
            if cfg!(feature = "validation") =>
        {
            Some(keyword)
        }
        "additionalProperties" => None, // `#[serde(deny_unknown_fields)]`, and the alternatives of an enum
        "anyOf" | "prefixItems" => within(held),
        "oneOf" => within(held).or(unless(all(held, is_tagged))),
        "minItems" | "maxItems" => unless(is_length_of_tuple(held, beside.get("prefixItems"))),
        other => unless(ENFORCED.contains(&other) || other.starts_with("x-")),
    }
}

/// Returns the first such keyword of several schemas, in a list or by name.
fn within(schemas: &Value) -> Option<&str> {
    match schemas {
        Value::Array(list) => list.iter().find_map(unenforced),
        Value::Object(named) => named.values().find_map(unenforced),
        _ => Some("false"),
    }
}

fn all(schemas: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    schemas.as_array().is_some_and(|schemas| schemas.iter().all(fits))
}

/// Returns whether alternatives are those of an `Option`.
fn is_option(alternatives: &Value) -> bool {
    alternatives.as_array().is_some_and(|any| any.len() == 2 && any.iter().any(|one| one["type"] == "null"))
}

/// Returns whether an alternative is one of a tagged enum, so that no value fits two of them: a name, an object of
/// one member, or an object with a constant member.
fn is_tagged(alternative: &Value) -> bool {
    if ["const", "enum"].iter().any(|name| alternative.get(name).is_some()) {
        return true;
    }
    let (properties, required) = (alternative["properties"].as_object(), alternative["required"].as_array());
    properties.zip(required).is_some_and(|(properties, required)| {
        let is_tag = |(name, schema): (&String, &Value)| {
            required.iter().any(|one| one == name) && (properties.len() == 1 || schema.get("const").is_some())
        };
        properties.iter().any(is_tag)
    })
}

fn is_length_of_tuple(length: &Value, items: Option<&Value>) -> bool {
    items.and_then(Value::as_array).is_some_and(|items| length.as_u64() == u64::try_from(items.len()).ok())
}

/// Returns whether a bound is the natural bound of the integer type.
fn natural_bound(format: Option<&Value>, keyword: &str, value: &Value) -> bool {
    let natural = match (format.and_then(Value::as_str), keyword) {
        (Some("uint8" | "uint16" | "uint32" | "uint64" | "uint" | "uint128"), "minimum") => 0,
        (Some("uint8"), _) => i64::from(u8::MAX),
        (Some("uint16"), _) => i64::from(u16::MAX),
        (Some("int8"), "minimum") => i64::from(i8::MIN),
        (Some("int8"), _) => i64::from(i8::MAX),
        (Some("int16"), "minimum") => i64::from(i16::MIN),
        (Some("int16"), _) => i64::from(i16::MAX),
        _ => return false,
    };
    value.as_i64() == Some(natural)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manual lists the keywords that need no validator.
    #[test]
    fn the_manual_lists_every_keyword() {
        let manual = include_str!("../../../../docs/manual/servers.md");
        for keyword in ENFORCED {
            assert!(manual.contains(&format!("`{keyword}`")), "{keyword}");
        }
    }
}
