//! Dialects of JSON Schema, by `$schema` (basic, "JSON Schema Usage").

use roundtrip_core::wire::clip;
use serde_json::Value;

/// A dialect of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

impl Dialect {
    /// Returns the dialect that a schema declares; 2020-12 if it declares none.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let Some(declared) = schema.get("$schema") else { return Ok(Self::Draft202012) };
        let uri = declared.as_str().unwrap_or_default();
        let plain = uri.strip_suffix('#').unwrap_or(uri);
        let path = plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://"));
        match path.and_then(|path| path.strip_prefix("json-schema.org/")) {
            Some("draft/2020-12/schema" | "schema") => Ok(Self::Draft202012),
            Some("draft/2019-09/schema") => Ok(Self::Draft201909),
            Some("draft-07/schema") => Ok(Self::Draft7),
            Some("draft-06/schema") => Ok(Self::Draft6),
            Some("draft-04/schema") => Ok(Self::Draft4),
            _ => Err(format!(
                "the dialect {} in `$schema` is not supported: use 2020-12, 2019-09, draft-07, draft-06 or draft-04",
                clip(&declared.to_string())
            )),
        }
    }
}

#[cfg(feature = "validation")]
impl Dialect {
    /// Returns the dialect as the library names it.
    pub(super) fn draft(self) -> jsonschema::Draft {
        match self {
            Self::Draft4 => jsonschema::Draft::Draft4,
            Self::Draft6 => jsonschema::Draft::Draft6,
            Self::Draft7 => jsonschema::Draft::Draft7,
            Self::Draft201909 => jsonschema::Draft::Draft201909,
            Self::Draft202012 => jsonschema::Draft::Draft202012,
        }
    }

    /// Returns whether keywords beside a `$ref` are ignored.
    pub(super) fn ref_stands_alone(self) -> bool {
        matches!(self, Self::Draft4 | Self::Draft6 | Self::Draft7)
    }

    /// Returns the keyword that names a schema.
    pub(super) fn id(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }

    /// Returns the keyword that holds definitions.
    pub(super) fn definitions(self) -> &'static str {
        if self.ref_stands_alone() { "definitions" } else { "$defs" }
    }

    /// Returns the keywords that refer to other schemas.
    pub(super) fn references(self) -> &'static [&'static str] {
        match self {
            Self::Draft4 | Self::Draft6 | Self::Draft7 => &["$ref"],
            Self::Draft201909 => &["$ref", "$recursiveRef"],
            Self::Draft202012 => &["$ref", "$dynamicRef"],
        }
    }
}
