//! Stand-in for the validator in builds without the feature `validation`: no schema compiles.

use std::convert::Infallible;

use serde_json::Value;

use super::Misfit;

/// A compiled schema, of which there is none without the feature `validation`.
#[derive(Debug)]
pub(crate) struct Schema(Infallible);

impl Schema {
    /// Refuses a schema that was written by hand.
    pub(crate) fn compile(_schema: &Value) -> Result<Self, String> {
        Err("a schema written by hand needs the feature `validation` of `roundtrip`".into())
    }

    /// Refuses a derived schema that has a keyword which parsing does not enforce.
    pub(super) fn needed_for(keyword: &str, _schema: &Value) -> Result<Self, String> {
        Err(format!(
            "parsing does not enforce `{keyword}`: turn on the feature `validation` of `roundtrip`, or take it out"
        ))
    }

    /// Checks a value against the schema.
    pub(crate) fn check(&self, _value: &Value) -> Result<(), Misfit> {
        match self.0 {}
    }
}
