//! Checking of answers against the flat subset of JSON Schema that forms use.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

use super::{Problems, format};
use crate::wire::{
    ElicitSchema, JsonObject, NumberSchema, PrimitiveSchemaDefinition, StringSchema, TitledValue, number,
};

/// Greatest number of values that an error lists.
const LISTED: usize = 10;

/// Checks an answer's content and drops properties the form does not have.
///
/// Properties the form does not have are dropped. A null counts as left out. A whole number is one by value:
/// `1.0` is, `"1"` is not. A required property that is not in the form cannot be
/// filled in, so it is not missed.
///
/// # Errors
/// Fails if the content breaks the schema, with everything that is wrong.
pub fn check(schema: &ElicitSchema, content: &JsonObject) -> Result<JsonObject, Problems> {
    validate(schema, content)?;
    let asked = schema.properties.iter();
    Ok(asked.filter_map(|(name, _)| Some((name.clone(), answer(content, name)?.clone()))).collect())
}

/// Fills in the form's defaults where a field was left out.
pub fn fill_defaults(schema: &ElicitSchema, content: &mut JsonObject) {
    for (name, property) in &schema.properties {
        if answer(content, name).is_none()
            && let Some(default) = default_of(property)
        {
            content.insert(name.clone(), default);
        }
    }
}

/// Returns the value of a property, unless it was left out or null.
pub(super) fn answer<'a>(content: &'a JsonObject, name: &str) -> Option<&'a Value> {
    content.get(name).filter(|value| !value.is_null())
}

/// Returns the default of a field.
pub(super) fn default_of(property: &PrimitiveSchemaDefinition) -> Option<Value> {
    use PrimitiveSchemaDefinition as Property;
    let text = |text: &Option<String>| text.clone().map(Value::from);
    match property {
        Property::String(schema) => text(&schema.default),
        Property::Number(schema) | Property::Integer(schema) => schema.default.map(json_number),
        Property::Boolean(schema) => schema.default.map(Value::from),
        Property::UntitledSingleSelect(schema) => text(&schema.default),
        Property::TitledSingleSelect(schema) => text(&schema.default),
        Property::LegacyTitled(schema) => text(&schema.default),
        Property::UntitledMultiSelect(schema) => schema.default.clone().map(Value::from),
        Property::TitledMultiSelect(schema) => schema.default.clone().map(Value::from),
    }
}

/// Converts a number, to an integer where it has no fraction, as peers write it.
fn json_number(number: f64) -> Value {
    number::whole(number).map_or_else(|| Value::from(number), Value::from)
}

/// Collects everything that is wrong with an answer's content.
pub(super) fn validate(schema: &ElicitSchema, content: &JsonObject) -> Result<(), Problems> {
    // A set, as the schema may be a stranger's and as long as a message can be.
    let missing: HashSet<&str> =
        (schema.required.iter().map(String::as_str)).filter(|name| answer(content, name).is_none()).collect();
    let mut problems = Problems::default();
    for (name, property) in &schema.properties {
        match answer(content, name) {
            Some(value) => validate_property(property, value, &mut |message| problems.add(name, message)),
            None if missing.contains(name.as_str()) => problems.add(name, "is required".to_owned()),
            None => {}
        }
    }
    problems.into_result()
}

type Tell<'a> = &'a mut dyn FnMut(String);

fn validate_property(property: &PrimitiveSchemaDefinition, value: &Value, tell: Tell<'_>) {
    use PrimitiveSchemaDefinition as Property;
    match property {
        Property::String(schema) => validate_text(schema, value, tell),
        Property::Number(schema) => match value {
            Value::Number(number) => validate_range(schema, number, tell),
            _ => tell("must be a number".to_owned()),
        },
        Property::Integer(schema) => match value {
            Value::Number(number) if whole(number).is_some() => validate_range(schema, number, tell),
            _ => tell("must be a whole number".to_owned()),
        },
        Property::Boolean(_) if value.is_boolean() => {}
        Property::Boolean(_) => tell("must be true or false".to_owned()),
        Property::UntitledSingleSelect(schema) => validate_choice(plain(&schema.values), value, tell),
        Property::LegacyTitled(schema) => validate_choice(plain(&schema.values), value, tell),
        Property::TitledSingleSelect(schema) => validate_choice(titled(&schema.one_of), value, tell),
        Property::UntitledMultiSelect(schema) => {
            let bounds = (schema.min_items, schema.max_items);
            validate_choices(plain(&schema.items.values), bounds, value, tell);
        }
        Property::TitledMultiSelect(schema) => {
            let bounds = (schema.min_items, schema.max_items);
            validate_choices(titled(&schema.items.any_of), bounds, value, tell);
        }
    }
}

fn validate_text(schema: &StringSchema, value: &Value, tell: Tell<'_>) {
    let Value::String(text) = value else { return tell("must be text".to_owned()) };
    let length = text.chars().count() as u64;
    validate_count(length, (schema.min_length, schema.max_length), "character", tell);
    if let Some(format) = &schema.format
        && !format::fits(format.as_bytes(), text)
    {
        tell(format!("must be {}", format::describe(format)));
    }
}

fn validate_range(schema: &NumberSchema, number: &Number, tell: Tell<'_>) {
    if let Some(minimum) = schema.minimum
        && compare(number, minimum) == Some(Ordering::Less)
    {
        tell(format!("must be at least {minimum}"));
    }
    if let Some(maximum) = schema.maximum
        && compare(number, maximum) == Some(Ordering::Greater)
    {
        tell(format!("must be at most {maximum}"));
    }
}

/// Compares a number with a bound, exactly where the number is whole, even beyond what a double holds.
fn compare(number: &Number, bound: f64) -> Option<Ordering> {
    match number.as_i128() {
        Some(whole) if whole < bound.ceil() as i128 => Some(Ordering::Less),
        Some(whole) if whole > bound.floor() as i128 => Some(Ordering::Greater),
        Some(_) => Some(Ordering::Equal),
        None => number.as_f64()?.partial_cmp(&bound),
    }
}

/// Returns a number as an integer if it has no fraction, however it is written.
pub(super) fn whole(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let double = number.as_f64().filter(|double| double.fract() == 0.0)?;
        Some(double as i128)
    })
}

fn plain(values: &[String]) -> impl Iterator<Item = &str> + Clone {
    values.iter().map(String::as_str)
}

fn titled(values: &[TitledValue]) -> impl Iterator<Item = &str> + Clone {
    values.iter().map(|titled| titled.value.as_str())
}

fn validate_choice<'a>(values: impl Iterator<Item = &'a str> + Clone, value: &Value, tell: Tell<'_>) {
    if !value.as_str().is_some_and(|value| values.clone().any(|offered| offered == value)) {
        tell(format!("must be one of {}", list(values)));
    }
}

fn validate_choices<'a>(
    values: impl Iterator<Item = &'a str> + Clone,
    bounds: (Option<u64>, Option<u64>),
    value: &Value,
    tell: Tell<'_>,
) {
    let Value::Array(items) = value else { return tell("must be a list".to_owned()) };
    validate_count(items.len() as u64, bounds, "choice", tell);
    let offered: HashSet<&str> = values.clone().collect();
    if !items.iter().all(|item| item.as_str().is_some_and(|item| offered.contains(item))) {
        tell(format!("each choice must be one of {}", list(values)));
    }
}

fn validate_count(count: u64, (least, most): (Option<u64>, Option<u64>), of: &str, tell: Tell<'_>) {
    let plural = |number: u64| if number == 1 { "" } else { "s" };
    if let Some(least) = least.filter(|least| count < *least) {
        tell(format!("must have at least {least} {of}{}", plural(least)));
    }
    if let Some(most) = most.filter(|most| count > *most) {
        tell(format!("must have at most {most} {of}{}", plural(most)));
    }
}

/// Lists values as in `"window", "aisle"`.
fn list<'a>(values: impl Iterator<Item = &'a str> + Clone) -> String {
    let listed: Vec<String> = values.clone().take(LISTED).map(|value| format!("\"{value}\"")).collect();
    match values.count() - listed.len() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}
