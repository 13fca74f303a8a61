//! Schemas derived from types, as clients get to see them.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

/// Values of `format` that JSON Schema 2020-12 defines (validation, "Defined Formats").
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Deepest chain of references and alternatives that [`name_object`] follows.
const MAX_CHAIN: usize = 16;

/// Removes formats that JSON Schema does not define, such as `uint32` and `double`: strict clients refuse them, and bounds say
/// the same. Call it after the schema's check was made, which tells the bounds of a type by its format.
pub(super) fn standard_formats(derived: Value) -> Value {
    let Ok(mut schema) = Schema::try_from(derived.clone()) else { return derived };
    StandardFormats.transform(&mut schema);
    schema.into()
}

struct StandardFormats;

impl Transform for StandardFormats {
    fn transform(&mut self, schema: &mut Schema) {
        let format = schema.get("format").and_then(Value::as_str);
        if format.is_some_and(|format| !FORMATS.contains(&format))
            && let Some(keywords) = schema.as_object_mut()
        {
            keywords.shift_remove("format");
        }
        transform_subschemas(self, schema);
    }
}

/// Adds `"type": "object"`, which MCP requires of input schemas, where all alternatives of an enum are objects.
pub(super) fn name_object(derived: &mut Value) {
    if derived.get("type").is_none() && is_object(derived, derived, 0) {
        derived["type"] = "object".into();
    }
}

/// Returns whether a schema allows objects alone.
fn is_object(schema: &Value, root: &Value, chain: usize) -> bool {
    let is_object = |schema: &Value| chain < MAX_CHAIN && is_object(schema, root, chain + 1);
    let alternatives = || ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    let definition = || root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?);
    schema.get("type").is_some_and(|kind| kind == "object")
        || definition().is_some_and(is_object)
        || alternatives().is_some_and(|all| !all.is_empty() && all.iter().all(is_object))
}
