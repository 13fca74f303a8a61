//! Closeness of a value to alternatives it does not fit, by tags and members, so that the closest can be explained.

use serde_json::{Map, Value};

use super::unfold::Document;

/// Most schemas looked at for one alternative.
const MAX_SCHEMAS: usize = 32;

/// Closeness of a value to a schema it does not fit; greater is closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Closeness {
    /// The value is of the schema's type.
    type_fits: bool,
    /// The value has no tag of another alternative.
    tags_fit: bool,
    /// The value has a tag of this alternative.
    tagged: bool,
    /// The value has every required member.
    complete: bool,
    /// Number of the value's members that the schema knows.
    members: usize,
}

impl Closeness {
    /// Returns whether explaining this misfit says more than that no alternative fits.
    pub(super) fn is_close(self) -> bool {
        self.type_fits && self.tags_fit && (self.tagged || self.complete || self.members > 0)
    }
}

/// Compares a value with a schema, without validating anything.
pub(super) fn closeness(document: &Document, schema: &Value, value: &Value) -> Closeness {
    let mut closeness =
        Closeness { type_fits: true, tags_fit: true, tagged: false, complete: true, members: 0 };
    let mut open = vec![schema];
    let mut looked_at = 0;
    while let Some(schema) = open.pop() {
        let Value::Object(keywords) = schema else {
            closeness.type_fits &= schema != &Value::Bool(false);
            continue;
        };
        looked_at += 1;
        if looked_at > MAX_SCHEMAS {
            break;
        }
        closeness.look_at(keywords, value);
        let reference = keywords.get("$ref").and_then(Value::as_str);
        open.extend(reference.and_then(|reference| document.resolve(reference)).map(|(_, schema)| schema));
        open.extend(keywords.get("allOf").and_then(Value::as_array).into_iter().flatten());
    }
    closeness
}

/// Finds the tag that tells several alternatives apart: a member's name, and its value in each of them. There is no
/// name where the alternatives are constants themselves.
pub(super) fn tags<'a>(
    document: &'a Document,
    alternatives: &[(String, &'a Value)],
    value: &Value,
) -> Option<(Option<&'a str>, Vec<&'a Value>)> {
    let resolved = |schema: &'a Value| match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.resolve(reference).map_or(schema, |(_, schema)| schema),
        None => schema,
    };
    let schemas: Vec<&Value> = alternatives.iter().map(|(_, schema)| resolved(schema)).collect();
    let constants: Option<Vec<&Value>> = schemas.iter().map(|schema| schema.get("const")).collect();
    if let Some(constants) = constants {
        return Some((None, constants));
    }
    let mut names = schemas.first()?.get("properties")?.as_object()?.keys();
    names.find_map(|name| {
        value.get(name)?;
        let tag = |schema: &&'a Value| schema.get("properties")?.get(name)?.get("const");
        Some((Some(name.as_str()), schemas.iter().map(tag).collect::<Option<_>>()?))
    })
}

impl Closeness {
    fn look_at(&mut self, keywords: &Map<String, Value>, value: &Value) {
        self.type_fits &= keywords.get("type").is_none_or(|types| is_of_type(types, value));
        self.tags_fit &= allows(keywords, value);
        let Value::Object(members) = value else { return };
        let required = keywords.get("required").and_then(Value::as_array);
        let mut required = required.into_iter().flatten().filter_map(Value::as_str);
        self.complete &= required.all(|name| members.contains_key(name));
        let Some(properties) = keywords.get("properties").and_then(Value::as_object) else { return };
        for (schema, member) in
            properties.iter().filter_map(|(name, schema)| Some((schema, members.get(name)?)))
        {
            self.members += 1;
            if let Some(tag) = schema.get("const") {
                self.tagged |= tag == member;
                self.tags_fit &= tag == member;
            }
        }
    }
}

/// Returns whether the value equals the schema's constant, if there is one.
fn allows(keywords: &Map<String, Value>, value: &Value) -> bool {
    keywords.get("const").is_none_or(|only| only == value)
}

fn is_of_type(types: &Value, value: &Value) -> bool {
    match types {
        Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
        Value::String(name) => match name.as_str() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => value.is_number(),
        },
        _ => true,
    }
}
