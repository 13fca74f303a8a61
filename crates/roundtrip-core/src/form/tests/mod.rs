//! The form rules, on schemas as they come over the wire.

mod check;
mod definition;
mod format;
mod packed;

use serde_json::{Value, json};

use super::Problems;
use crate::wire::{ElicitSchema, JsonObject};

fn schema(properties: &Value, required: &[&str]) -> ElicitSchema {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    serde_json::from_value(schema).unwrap()
}

fn object(content: &Value) -> JsonObject {
    content.as_object().unwrap().clone()
}

/// Returns the problem with the value of the one field `x`; empty where it fits.
fn problem(property: &Value, value: &Value) -> String {
    let schema = schema(&json!({ "x": property }), &["x"]);
    let checked = super::check(&schema, &object(&json!({ "x": value })));
    checked.err().as_ref().map(Problems::to_string).unwrap_or_default()
}
