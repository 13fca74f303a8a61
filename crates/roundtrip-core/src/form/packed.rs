//! The packed format of an answer in the journal: its values in the order of the form's fields, without names, as
//! text.
//!
//! A value is `-` where the field was left out, `t` or `f`, text as `s5:Hello`, and anything else as JSON, `j2:12`,
//! each with its length in bytes before it. So a replay reads it without parsing, and a flow carries little of it.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::check::answer;
use crate::wire::{ElicitSchema, JsonObject, json};

/// One value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    /// A boolean.
    Bool(bool),
    /// Text.
    Text(&'a str),
    /// Anything else: a number, or a list of choices.
    Json(Cow<'a, Value>),
}

impl<'a> From<&'a Value> for Item<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::String(text) => Self::Text(text),
            other => Self::Json(Cow::Borrowed(other)),
        }
    }
}

impl From<Item<'_>> for Value {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Bool(value) => Self::Bool(value),
            Item::Text(text) => Self::from(text),
            Item::Json(value) => value.into_owned(),
        }
    }
}

/// Packs content that fits a form.
pub(super) fn pack(schema: &ElicitSchema, content: &JsonObject) -> String {
    let mut out = String::with_capacity(64);
    for (name, _) in &schema.properties {
        match answer(content, name) {
            None => out.push('-'),
            Some(Value::Bool(true)) => out.push('t'),
            Some(Value::Bool(false)) => out.push('f'),
            Some(Value::String(text)) => sized(&mut out, 's', text),
            Some(other) => sized(&mut out, 'j', &other.to_string()),
        }
    }
    out
}

fn sized(out: &mut String, tag: char, text: &str) {
    // Writing to a string does not fail.
    let _ = write!(out, "{tag}{}:", text.len());
    out.push_str(text);
}

/// Reader of a packed answer's values in order. Text that [`pack`] did not write reads as left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed<'a>(pub(super) &'a str);

impl<'a> Packed<'a> {
    /// Returns the value of the next field, unless it was left out.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Item<'a>> {
        let tag = *self.0.as_bytes().first()?;
        self.0 = self.0.get(1..)?;
        match tag {
            b't' => Some(Item::Bool(true)),
            b'f' => Some(Item::Bool(false)),
            b's' => self.sized().map(Item::Text),
            b'j' => self.sized().and_then(|json| json::from_str(json).ok()).map(Item::Json),
            _ => None,
        }
    }

    fn sized(&mut self) -> Option<&'a str> {
        let mut size: usize = 0;
        for (at, byte) in self.0.bytes().enumerate() {
            match byte {
                b'0'..=b'9' => size = size.checked_mul(10)?.checked_add((byte - b'0').into())?,
                b':' if at > 0 => {
                    let (text, rest) = self.0.get(at + 1..)?.split_at_checked(size)?;
                    self.0 = rest;
                    return Some(text);
                }
                _ => break,
            }
        }
        None
    }
}

/// Unpacks the content of an answer.
pub(super) fn unpack(schema: &ElicitSchema, packed: &str) -> JsonObject {
    let mut values = Packed(packed);
    let fields = schema.properties.iter();
    fields.filter_map(|(name, _)| Some((name.clone(), values.next()?.into()))).collect()
}
