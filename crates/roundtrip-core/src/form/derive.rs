//! Functions for derived code. No part of the API: they change with the derive macros.

use serde_json::Value;

use super::check::{answer, default_of, validate, whole};
pub use super::packed::Item;
use super::packed::Packed;
use super::{Alternative, Definition, Form, Problems, Shape, format};
pub use crate::wire::{BooleanSchema, JsonObject, NumberSchema, PrimitiveSchemaDefinition, StringSchema};
use crate::wire::{
    ElicitSchema, TitledItems, TitledMultiSelectEnumSchema, TitledSingleSelectEnumSchema, TitledValue,
    UntitledItems, UntitledMultiSelectEnumSchema, UntitledSingleSelectEnumSchema,
};

/// Builds a form's definition from its fields in order: name, whether it is required, schema.
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

/// Settings of a field that is one text.
#[derive(Debug)]
pub struct Single {
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<String>,
}

/// Settings of a field of several choices.
#[derive(Debug)]
pub struct Multiple {
    pub title: Option<String>,
    pub description: Option<String>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub default: Option<Vec<String>>,
}

/// Builds the schema of a field for one text.
pub fn single(shape: Shape, settings: Single) -> PrimitiveSchemaDefinition {
    let Single { title, description, default } = settings;
    let alternatives = match shape {
        Shape::Choice(alternatives) => alternatives,
        Shape::Text { format } => {
            let format = format.map(str::to_owned);
            let schema = StringSchema { title, description, format, default, ..StringSchema::default() };
            return PrimitiveSchemaDefinition::String(schema);
        }
    };
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

/// Builds the schema of a field for some of several values.
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

/// Returns whether a default has the shape of its field.
pub const fn has_shape(shape: Shape, text: &str) -> bool {
    match shape {
        Shape::Choice(alternatives) => offers(alternatives, text),
        Shape::Text { format: Some(format) } => has_format(format, text),
        Shape::Text { format: None } => true,
    }
}

/// Returns whether a default is among the values. An enum without values has failed to derive, and reported it.
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

/// Returns values with titles if at least one has a title.
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

/// Returns whether a default has the format of its field.
pub const fn has_format(format: &str, text: &str) -> bool {
    format::fits(format.as_bytes(), text)
}

/// A form whose fields are read one by one, in order.
pub trait Fields: Form {
    /// Reads all fields.
    fn read(answer: &mut FieldValues<'_>) -> Result<Self, Problems>;
}

/// Checks an answer's content and reads it.
pub fn from_content<T: Fields>(content: &JsonObject) -> Result<T, Problems> {
    let schema = T::definition().schema();
    validate(schema, content)?;
    T::read(&mut FieldValues { schema, values: Values::Content(content) })
}

/// Reads an answer that was checked before.
pub fn recall<T: Fields>(packed: &str) -> Result<T, Problems> {
    T::read(&mut FieldValues { schema: T::definition().schema(), values: Values::Packed(Packed(packed)) })
}

/// Values of an answer that fits its form.
#[derive(Debug)]
pub struct FieldValues<'a> {
    schema: &'a ElicitSchema,
    values: Values<'a>,
}

#[derive(Debug)]
enum Values<'a> {
    Content(&'a JsonObject),
    Packed(Packed<'a>),
}

impl<'a> FieldValues<'a> {
    #[inline]
    fn next(&mut self, name: &str) -> Option<Item<'a>> {
        match &mut self.values {
            Values::Content(content) => answer(content, name).map(Item::from),
            Values::Packed(packed) => packed.next(),
        }
    }

    /// Reads a field that is required or has a default.
    #[inline]
    pub fn required<T>(
        &mut self,
        name: &str,
        read: impl Fn(&Item<'_>) -> Result<T, String>,
    ) -> Result<T, Problems> {
        let value = match self.next(name) {
            Some(value) => read(&value),
            None => match self.default(name) {
                Some(default) => read(&(&default).into()),
                None => Err("is required".to_owned()),
            },
        };
        value.map_err(|message| Problems::one(name, message))
    }

    #[cold]
    fn default(&self, name: &str) -> Option<Value> {
        self.schema.property(name).and_then(default_of)
    }

    /// Reads a field that may be left out.
    #[inline]
    pub fn optional<T>(
        &mut self,
        name: &str,
        read: impl Fn(&Item<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, Problems> {
        self.next(name).map(|value| read(&value)).transpose().map_err(|message| Problems::one(name, message))
    }
}

/// Reads text.
#[inline]
pub fn text(value: &Item<'_>) -> Result<String, String> {
    match value {
        Item::Text(text) => Ok((*text).to_owned()),
        _ => Err("must be text".to_owned()),
    }
}

/// Reads a boolean.
#[inline]
pub fn boolean(value: &Item<'_>) -> Result<bool, String> {
    match value {
        Item::Bool(value) => Ok(*value),
        _ => Err("must be true or false".to_owned()),
    }
}

/// Reads a whole number and checks the bounds of its type, which the schema cannot always express: those of the
/// largest types are not doubles.
pub fn integer<T: TryFrom<i128>>(value: &Item<'_>) -> Result<T, String> {
    let number = match value {
        Item::Json(value) => value.as_number().and_then(whole),
        _ => None,
    };
    let number = number.ok_or_else(|| "must be a whole number".to_owned())?;
    T::try_from(number).map_err(|_| "must be a whole number closer to zero".to_owned())
}

/// Reads a number.
pub fn number(value: &Item<'_>) -> Result<f64, String> {
    let number = match value {
        Item::Json(value) => value.as_f64(),
        _ => None,
    };
    number.ok_or_else(|| "must be a number".to_owned())
}

/// Reads a number of single precision.
pub fn short_number(value: &Item<'_>) -> Result<f32, String> {
    let number = number(value)? as f32;
    if number.is_finite() { Ok(number) } else { Err("must be a number closer to zero".to_owned()) }
}

/// Reads a value that is written as text.
pub fn written<T>(value: &Item<'_>, from_text: fn(&str) -> Result<T, String>) -> Result<T, String> {
    match value {
        Item::Text(text) => from_text(text),
        _ => Err("must be text".to_owned()),
    }
}

/// Reads a list of choices.
pub fn choices<T>(value: &Item<'_>, from_value: fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let items = match value {
        Item::Json(value) => value.as_array(),
        _ => None,
    };
    let items = items.ok_or_else(|| "must be a list".to_owned())?;
    let chosen = |item: &Value| item.as_str().and_then(from_value);
    items.iter().map(|item| chosen(item).ok_or_else(|| "must be one of the choices".to_owned())).collect()
}
