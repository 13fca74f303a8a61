//! Schemas compiled by `jsonschema`, with bounds on what they may cost.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::json::Json;
use jsonschema::{PatternOptions, Retrieve, ValidationOptions, Validator};
use serde_json::Value;

use super::Misfit;
use super::dialect::Dialect;
use super::explain::{Probes, explain};
use super::meter::{Meter, MeteredJson};
use super::unfold::Document;

/// Most bytes of a compiled pattern.
const MAX_PATTERN: usize = 64 * 1024;

/// A compiled schema. Checking a value takes a bounded amount of work, for any schema and any value.
pub(crate) struct Schema {
    validator: Validator<MeteredJson>,
    pub(super) document: Document,
    /// Compiled for the first value that does not fit.
    probes: OnceLock<Option<Probes>>,
}

impl Schema {
    /// Compiles a schema. References to the network or to files are errors: nothing is ever fetched (N5).
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        super::bounded(schema)?;
        let document = Document::new(schema)?;
        let validator = options(document.dialect)
            .build(schema)
            .map_err(|error| format!("not a usable JSON Schema: {}{}", error.masked(), advice(&error)))?;
        Ok(Self { validator, document, probes: OnceLock::new() })
    }

    /// Compiles a derived schema that has a keyword which parsing does not enforce.
    pub(super) fn needed_for(_keyword: &str, schema: &Value) -> Result<Self, String> {
        Self::compile(schema)
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

/// Options of every validator: the dialect of the schema, and patterns in linear time.
pub(super) fn options<'i, F: Json>(dialect: Dialect) -> ValidationOptions<'i, Arc<dyn Retrieve>, F> {
    jsonschema::options_for::<F>()
        .with_draft(dialect.draft())
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
