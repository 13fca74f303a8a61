//! Argument and output schemas: bounded, compiled once, and checked the cheapest way that is still exact.

#[cfg(feature = "validation")]
mod closest;
mod dialect;
mod enforced;
#[cfg(feature = "validation")]
mod explain;
mod lists;
#[cfg(feature = "validation")]
mod meter;
#[cfg(test)]
#[cfg(feature = "validation")]
mod tests;
#[cfg(feature = "validation")]
mod unfold;
#[cfg(feature = "validation")]
mod validator;
#[cfg(not(feature = "validation"))]
#[path = "schema/no_validator.rs"]
mod validator;

use std::fmt;

use serde_json::Value;

use dialect::Dialect;

pub(crate) use lists::refuse_misplaced;
pub(crate) use validator::Schema;

/// Limits of a schema: its depth, its values, and the total length of the paths to them (N5).
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 20_000;
const MAX_PATH_BYTES: usize = 8 * 1024 * 1024;

/// Method of checking values against a schema.
pub(crate) enum Check {
    /// The schema was derived from the type the values are parsed into, and says nothing that parsing does not
    /// enforce already.
    ByType,
    /// No arguments are allowed.
    Nothing,
    /// A compiled schema.
    Compiled(Box<Schema>),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByType => "ByType",
            Self::Nothing => "Nothing",
            Self::Compiled(_) => "Compiled",
        })
    }
}

impl Check {
    /// Creates the check for a schema derived from the type itself.
    pub(crate) fn derived(schema: &Value) -> Result<Self, String> {
        bounded(schema)?;
        // Types say what 2020-12 has; another dialect is for the validator.
        let other = (Dialect::of(schema)? != Dialect::Draft202012).then_some("$schema");
        match other.or_else(|| enforced::unenforced(schema)) {
            None => Ok(Self::ByType),
            Some(keyword) => {
                Schema::needed_for(keyword, schema).map(|schema| Self::Compiled(Box::new(schema)))
            }
        }
    }

    /// Creates the check for a schema written by hand.
    pub(crate) fn written(schema: &Value) -> Result<Self, String> {
        Schema::compile(schema).map(|schema| Self::Compiled(Box::new(schema)))
    }

    /// Describes what is wrong with a value, so that the sender can correct it.
    pub(crate) fn problems(&self, value: &Value) -> Option<String> {
        let Self::Compiled(schema) = self else { return None };
        schema.check(value).err().map(|misfit| misfit.to_string())
    }
}

/// Reason why a value is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The value does not fit the schema: paths and reasons.
    Problems(String),
    /// Checking the value takes more work than is allowed.
    TooMuchWork,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems(problems) => f.write_str(problems),
            Self::TooMuchWork => f.write_str(
                "too large or too deep to be checked against the schema: send less, or nest it less deeply",
            ),
        }
    }
}

/// Refuses schemas that are cheap to send and expensive to compile.
fn bounded(schema: &Value) -> Result<(), String> {
    bounded_at(schema, 0, 0, &mut { MAX_VALUES }, &mut { MAX_PATH_BYTES })
}

fn bounded_at(
    value: &Value,
    depth: usize,
    path: usize,
    values: &mut usize,
    bytes: &mut usize,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("the schema nests deeper than {MAX_DEPTH}"));
    }
    *values = values.checked_sub(1).ok_or_else(|| format!("the schema has more than {MAX_VALUES} values"))?;
    *bytes = bytes.checked_sub(path).ok_or("the names in the schema are too long")?;
    match value {
        Value::Array(items) => {
            items.iter().try_for_each(|item| bounded_at(item, depth + 1, path + 4, values, bytes))
        }
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            bounded_at(member, depth + 1, path + 1 + name.len(), values, bytes)
        }),
        _ => Ok(()),
    }
}

/// Decodes the escapes of a reference.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(bytes.next())? * 16 + digit(bytes.next())?;
            decoded.push(u8::try_from(value).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}
