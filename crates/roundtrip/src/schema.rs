//! Argument and output schemas: bounded, compiled once, and checked the cheapest way that is still exact.

mod closest;
mod explain;
mod meter;
#[cfg(test)]
mod tests;
mod unfold;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::json::Json;
use jsonschema::{Draft, PatternOptions, Retrieve, ValidationOptions, Validator};
use serde_json::Value;

use explain::{Probes, explain};
use meter::{Meter, MeteredJson};
use unfold::Document;

/// Limits of a schema: its depth, its values, and the total length of the paths to them (N5).
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 20_000;
const MAX_PATH_BYTES: usize = 8 * 1024 * 1024;
/// Most bytes of a compiled pattern.
const MAX_PATTERN: usize = 64 * 1024;

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
        if enforced_by_type(schema) { Ok(Self::ByType) } else { Self::written(schema) }
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

/// A compiled schema. Checking a value takes a bounded amount of work, for any schema and any value.
pub(crate) struct Schema {
    validator: Validator<MeteredJson>,
    document: Document,
    /// Compiled for the first value that does not fit.
    probes: OnceLock<Option<Probes>>,
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

impl Schema {
    /// Compiles a schema. References to the network or to files are errors: nothing is ever fetched (N5).
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        bounded(schema)?;
        let document = Document::new(schema)?;
        let validator = options()
            .build(schema)
            .map_err(|error| format!("not a usable JSON Schema: {}{}", error.masked(), advice(&error)))?;
        Ok(Self { validator, document, probes: OnceLock::new() })
    }

    /// Checks a value against the schema.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Misfit> {
        let meter = Meter::new(value, &self.document.unfolded);
        let fits = self.validator.is_valid(meter.root(value));
        if meter.is_spent() {
            return Err(Misfit::TooMuchWork);
        }
        if fits {
            return Ok(());
        }
        let probes = self.probes.get_or_init(|| Probes::new(&self.document));
        Err(Misfit::Problems(match probes {
            Some(probes) => explain(&self.document, probes, value),
            None => "does not fit the schema".to_owned(),
        }))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("unfolded", &self.document.unfolded).finish_non_exhaustive()
    }
}

/// Options of every validator: the dialect of the specification, and patterns in linear time.
fn options<'i, F: Json>() -> ValidationOptions<'i, Arc<dyn Retrieve>, F> {
    jsonschema::options_for::<F>()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN))
}

/// Returns advice on a schema that does not compile, where the error alone is not clear.
fn advice(error: &jsonschema::ValidationError<'_>) -> &'static str {
    if error.schema_path().as_str().ends_with("/format") || error.to_string().contains("regex") {
        " (patterns must do without look-around and back-references, which cannot be matched in linear time)"
    } else {
        ""
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

/// Returns whether serde, parsing into the type this schema was derived from, accepts nothing the schema refuses.
/// In doubt it returns false, which costs a validation and never a wrong acceptance.
fn enforced_by_type(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return schema == &Value::Bool(true) };
    schema.iter().all(|(keyword, value)| match keyword.as_str() {
        "$schema" | "$ref" | "title" | "description" | "default" | "examples" | "deprecated" | "type"
        | "required" | "format" | "enum" | "const" => true,
        "minimum" | "maximum" => natural_bound(schema.get("format"), keyword, value),
        "properties" | "$defs" => value.as_object().is_some_and(|all| all.values().all(enforced_by_type)),
        "items" => enforced_by_type(value),
        "additionalProperties" => value != &Value::Bool(false) && enforced_by_type(value),
        "anyOf" => value.as_array().is_some_and(|any| {
            any.len() == 2 && any.iter().any(|one| one["type"] == "null") && any.iter().all(enforced_by_type)
        }),
        "oneOf" => value.as_array().is_some_and(|any| any.iter().all(|one| one.get("const").is_some())),
        annotation => annotation.starts_with("x-"),
    })
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
