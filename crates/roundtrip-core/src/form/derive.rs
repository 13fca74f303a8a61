//! What derived code calls. No part of the API: it changes with the derive macros.

use serde_json::Value;

use super::check::{answer, default_of, validate, whole};
use super::{Alternative, Definition, Problems, format};
pub use crate::wire::{BooleanSchema, JsonObject, NumberSchema, PrimitiveSchemaDefinition, StringSchema};
use crate::wire::{
    ElicitSchema, TitledItems, TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema, TitledValue,
    UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
};

/// A form's fields in their order, and which of them must be filled.
pub fn define(fields: Vec<(&str, bool, PrimitiveSchemaDefinition)>) -> Definition {
    let mut schema = ElicitSchema::default();
    for (name, required, property) in fields {
        if required {
            schema.required.push(name.to_owned());
        }
        schema.properties.push((name.to_owned(), property));
    }
    Definition::new(schema)
}

/// What is set for a field of one choice.
#[derive(Debug)]
pub struct Single {
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<String>,
}

/// What is set for a field of several choices.
#[derive(Debug)]
pub struct Multiple {
    pub title: Option<String>,
    pub description: Option<String>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub default: Option<Vec<String>>,
}

/// A field for one of several values.
pub fn single(alternatives: &[Alternative], settings: Single) -> PrimitiveSchemaDefinition {
    let Single { title, description, default } = settings;
    match titled(alternatives) {
        Some(one_of) => PrimitiveSchemaDefinition::TitledSingleSelect(TitledSingleSelectEnumSchema {
            title,
            description,
            one_of,
            default,
        }),
        None => PrimitiveSchemaDefinition::UntitledSingleSelect(UntitledSingleSelectEnumSchema {
            title,
            description,
            values: values(alternatives),
            default,
        }),
    }
}

/// A field for some of several values.
pub fn multiple(alternatives: &[Alternative], settings: Multiple) -> PrimitiveSchemaDefinition {
    let Multiple { title, description, min_items, max_items, default } = settings;
    match titled(alternatives) {
        Some(any_of) => PrimitiveSchemaDefinition::TitledMultiSelect(TitledMultiSelectEnumSchema {
            title,
            description,
            min_items,
            max_items,
            items: TitledItems { any_of },
            default,
        }),
        None => PrimitiveSchemaDefinition::UntitledMultiSelect(UntitledMultiSelectEnumSchema {
            title,
            description,
            min_items,
            max_items,
            items: UntitledItems { values: values(alternatives), ..UntitledItems::default() },
            default,
        }),
    }
}

/// Whether a default is among the values. An enum without any has failed to derive, and said so.
pub const fn offers(alternatives: &[Alternative], value: &str) -> bool {
    let mut rest = alternatives;
    while let [alternative, others @ ..] = rest {
        if same(alternative.value.as_bytes(), value.as_bytes()) {
            return true;
        }
        rest = others;
    }
    alternatives.is_empty()
}

fn values(alternatives: &[Alternative]) -> Vec<String> {
    alternatives.iter().map(|alternative| alternative.value.to_owned()).collect()
}

/// Titles for all, as soon as one has one.
fn titled(alternatives: &[Alternative]) -> Option<Vec<TitledValue>> {
    let title = |alternative: &Alternative| TitledValue {
        value: alternative.value.to_owned(),
        title: alternative.title.unwrap_or(alternative.value).to_owned(),
    };
    let any = alternatives.iter().any(|alternative| alternative.title.is_some());
    any.then(|| alternatives.iter().map(title).collect())
}

const fn same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// Whether a default has the format of its field.
pub const fn has_format(format: &str, text: &str) -> bool {
    format::fits(format.as_bytes(), text)
}

/// An answer that fits its form.
#[derive(Debug)]
pub struct Answer<'a> {
    schema: &'a ElicitSchema,
    content: &'a JsonObject,
}

/// How one field is read.
type Read<T> = fn(&Value) -> Result<T, String>;

impl<'a> Answer<'a> {
    /// Checks what was filled in.
    pub fn new(definition: &'a Definition, content: &'a JsonObject) -> Result<Self, Problems> {
        let schema = definition.schema();
        validate(schema, content)?;
        Ok(Self { schema, content })
    }

    /// A field that is required or has a default.
    pub fn required<T>(&self, name: &str, read: Read<T>) -> Result<T, Problems> {
        let value = match answer(self.content, name) {
            Some(value) => Some(read(value)),
            None => self.schema.property(name).and_then(default_of).map(|default| read(&default)),
        };
        value.unwrap_or_else(|| Err("is required".to_owned())).map_err(|message| Problems::one(name, message))
    }

    /// A field that may be left out.
    pub fn optional<T>(&self, name: &str, read: Read<T>) -> Result<Option<T>, Problems> {
        let value = answer(self.content, name).map(read).transpose();
        value.map_err(|message| Problems::one(name, message))
    }
}

/// Reads text.
pub fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "must be text".to_owned())
}

/// Reads yes or no.
pub fn boolean(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}

/// Reads a whole number. The schema cannot say the bounds of the largest types, for they are not doubles.
pub fn integer<T: TryFrom<i128>>(value: &Value) -> Result<T, String> {
    let number = value.as_number().and_then(whole).ok_or_else(|| "must be a whole number".to_owned())?;
    T::try_from(number).map_err(|_| "must be a whole number closer to zero".to_owned())
}

/// Reads a number.
pub fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| "must be a number".to_owned())
}

/// Reads a number of single precision.
pub fn short_number(value: &Value) -> Result<f32, String> {
    let number = number(value)? as f32;
    if number.is_finite() { Ok(number) } else { Err("must be a number closer to zero".to_owned()) }
}

/// Reads a choice.
pub fn choice<T>(value: &Value, from_value: fn(&str) -> Option<T>) -> Result<T, String> {
    value.as_str().and_then(from_value).ok_or_else(|| "must be one of the choices".to_owned())
}

/// Reads a list of choices.
pub fn choices<T>(value: &Value, from_value: fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let items = value.as_array().ok_or_else(|| "must be a list".to_owned())?;
    items.iter().map(|item| choice(item, from_value)).collect()
}
