//! Tool arguments mirrored in HTTP headers (transports, "Custom Headers from Tool Parameters").

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{clip, decode_header_value, encode_header_value, json};

/// The keyword that marks a property to be mirrored.
pub const HEADER_KEYWORD: &str = "x-mcp-header";
/// Prefix of the name of a mirroring header.
pub const HEADER_PREFIX: &str = "Mcp-Param-";

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 64;
/// Most annotations in one schema. Each becomes a header of the request.
const MAX_PARAMS: usize = 1_000;
/// Most bytes of all header names and paths in one schema. A property's name counts for every annotation below it.
const MAX_BYTES: usize = 256 * 1024;
/// The largest integer that JavaScript holds exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// One argument that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header's whole name.
    pub header: String,
    /// The path to the argument: property names from the root.
    pub path: Vec<String>,
}

impl HeaderParam {
    /// Finds the argument; `None` where it is absent or null, and then there is no header.
    pub fn find<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let found = self.path.iter().try_fold(arguments, |value, name| value.as_object()?.get(name))?;
        (!found.is_null()).then_some(found)
    }
}

/// The arguments of a tool that are mirrored in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderParams(Vec<HeaderParam>);

impl HeaderParams {
    /// Collects them from a tool's input schema.
    ///
    /// # Errors
    /// Fails if an annotation breaks a rule, which makes the whole tool invalid.
    pub fn from_schema(schema: &Value) -> Result<Self, HeaderParamError> {
        let mut walk = Walk {
            found: Vec::new(),
            names: HashSet::new(),
            depth: 0,
            place: Vec::new(),
            path: Vec::new(),
            reachable: true,
            bytes: MAX_BYTES,
        };
        walk.schema(schema)?;
        Ok(Self(walk.found))
    }

    /// Iterates over the mirrored arguments.
    pub fn iter(&self) -> impl Iterator<Item = &HeaderParam> {
        self.0.iter()
    }

    /// Returns whether there are none, as in most tools.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the headers of a call, values encoded. A value that has no form in a header (a list, a fraction, an
    /// integer beyond what JavaScript holds) gets none: the server will refuse the call for it.
    pub fn values(&self, arguments: &Value) -> Vec<(String, String)> {
        let value = |param: &HeaderParam| {
            let text = match param.find(arguments)? {
                Value::String(text) => encode_header_value(text).into_owned(),
                Value::Bool(yes) => yes.to_string(),
                Value::Number(number) => safe_integer(number)?.to_string(),
                _ => return None,
            };
            Some((param.header.clone(), text))
        };
        self.0.iter().filter_map(value).collect()
    }

    /// Returns whether a header value equals the body's. Integers are compared as numbers.
    pub fn matches(header_value: &str, body: &Value) -> bool {
        let Ok(header) = decode_header_value(header_value) else { return false };
        match body {
            Value::String(text) => header == text.as_str(),
            Value::Bool(yes) => *header == *yes.to_string(),
            Value::Number(number) => {
                let header = if header.trim() == header { json::from_str(&header).ok() } else { None };
                let header = header.as_ref().and_then(safe_integer);
                header.is_some() && header == safe_integer(number)
            }
            _ => false,
        }
    }
}

/// Returns the integer value of a JSON number, however it is written, where JavaScript holds it exactly.
fn safe_integer(number: &Number) -> Option<i64> {
    let integer = number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        // A cast from a float saturates, and the ends lie outside the safe range.
        Some(float as i64)
    })?;
    (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&integer).then_some(integer)
}

/// An `x-mcp-header` annotation that breaks a rule. `place` is the path to it from the schema's root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderParamError {
    /// The annotation is not a string.
    #[error("`x-mcp-header` at `{place}` must be a string")]
    NotAString {
        /// Its place.
        place: String,
    },
    /// The annotation is empty.
    #[error("`x-mcp-header` at `{place}` must not be empty")]
    Empty {
        /// Its place.
        place: String,
    },
    /// The annotation cannot be part of a header's name.
    #[error(
        "`x-mcp-header` at `{place}` must be made of letters, digits and !#$%&'*+-.^_`|~ only, unlike {name:?}"
    )]
    NotAToken {
        /// Its place.
        place: String,
        /// The name.
        name: String,
    },
    /// Another annotation has the same name, ignoring case.
    #[error("`x-mcp-header` at `{place}` names `{name}`, which is named twice")]
    Duplicate {
        /// Its place.
        place: String,
        /// The name.
        name: String,
    },
    /// The property is not of a type that fits a header.
    #[error("`x-mcp-header` at `{place}` needs the type string, integer or boolean, not {found}")]
    NotPrimitive {
        /// Its place.
        place: String,
        /// The property's type.
        found: String,
    },
    /// The property cannot be found by following `properties` alone.
    #[error("`x-mcp-header` at `{place}` must be reached through `properties` alone")]
    NotReachable {
        /// Its place.
        place: String,
    },
    /// The schema is nested too deep.
    #[error("the schema is nested too deep at `{place}`")]
    TooDeep {
        /// The place.
        place: String,
    },
    /// There are too many annotations, or the names of the properties that lead to them are too long.
    #[error("the schema has too many `x-mcp-header`, or names too long for them, at `{place}`")]
    TooMany {
        /// The place.
        place: String,
    },
}

/// State of a walk through a schema.
struct Walk<'a> {
    found: Vec<HeaderParam>,
    /// Their names in lower case.
    names: HashSet<String>,
    /// Number of schemas around this one.
    depth: usize,
    /// Path from the root, keywords included.
    place: Vec<&'a str>,
    /// Path of the current property, as far as `properties` alone led here.
    path: Vec<&'a str>,
    /// True if `properties` alone led here.
    reachable: bool,
    /// Bytes that names and paths may still have.
    bytes: usize,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Result<(), HeaderParamError> {
        if self.depth > MAX_DEPTH && (schema.is_object() || schema.is_array()) {
            return Err(HeaderParamError::TooDeep { place: self.place() });
        }
        match schema {
            Value::Object(schema) => {
                if let Some(name) = schema.get(HEADER_KEYWORD) {
                    self.annotation(name, schema.get("type"))?;
                }
                schema.iter().try_for_each(|(keyword, value)| self.keyword(keyword, value))
            }
            Value::Array(schemas) => schemas.iter().try_for_each(|schema| self.step("[]", false, schema)),
            _ => Ok(()),
        }
    }

    fn keyword(&mut self, keyword: &'a str, value: &'a Value) -> Result<(), HeaderParamError> {
        match (keyword, value) {
            // Data, not schemas: annotations in it have no meaning.
            (HEADER_KEYWORD | "const" | "default" | "enum" | "examples", _) => Ok(()),
            ("properties", Value::Object(map)) => self.map(keyword, map, true),
            // Here the names are those of properties or definitions, not keywords.
            ("$defs" | "definitions" | "dependentSchemas" | "patternProperties", Value::Object(map)) => {
                self.map(keyword, map, false)
            }
            _ => self.step(keyword, false, value),
        }
    }

    fn map(
        &mut self,
        keyword: &'a str,
        map: &'a Map<String, Value>,
        of_properties: bool,
    ) -> Result<(), HeaderParamError> {
        self.place.push(keyword);
        for (name, schema) in map {
            self.step(name, of_properties, schema)?;
        }
        self.place.pop();
        Ok(())
    }

    fn step(&mut self, name: &'a str, is_property: bool, value: &'a Value) -> Result<(), HeaderParamError> {
        let (before, reachable) = (self.reachable, self.reachable && is_property);
        self.reachable = reachable;
        // Borrowed until an annotation is found: a long name has many properties below it in a hostile schema.
        if reachable {
            self.path.push(name);
        }
        self.place.push(name);
        self.depth += 1;
        self.schema(value)?;
        self.depth -= 1;
        self.place.pop();
        if reachable {
            self.path.pop();
        }
        self.reachable = before;
        Ok(())
    }

    fn annotation(&mut self, name: &Value, kind: Option<&Value>) -> Result<(), HeaderParamError> {
        // The root is no property, so it has no value of its own to mirror.
        if !self.reachable || self.path.is_empty() {
            return Err(HeaderParamError::NotReachable { place: self.place() });
        }
        let Value::String(name) = name else {
            return Err(HeaderParamError::NotAString { place: self.place() });
        };
        if name.is_empty() {
            return Err(HeaderParamError::Empty { place: self.place() });
        }
        let shown = || clip(name).into_owned();
        if !name.bytes().all(is_token_byte) {
            return Err(HeaderParamError::NotAToken { place: self.place(), name: shown() });
        }
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            let found = kind.map_or_else(|| "none".to_owned(), |kind| clip(&kind.to_string()).into_owned());
            return Err(HeaderParamError::NotPrimitive { place: self.place(), found });
        }
        let bytes = name.len() + self.path.iter().map(|name| name.len()).sum::<usize>();
        match self.bytes.checked_sub(bytes) {
            Some(left) if self.found.len() < MAX_PARAMS => self.bytes = left,
            _ => return Err(HeaderParamError::TooMany { place: self.place() }),
        }
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(HeaderParamError::Duplicate { place: self.place(), name: shown() });
        }
        let path = self.path.iter().map(|name| (*name).to_owned()).collect();
        self.found.push(HeaderParam { header: format!("{HEADER_PREFIX}{name}"), path });
        Ok(())
    }

    fn place(&self) -> String {
        let names: Vec<_> = self.place.iter().map(|name| clip(name)).collect();
        format!("/{}", names.join("/"))
    }
}

/// Returns whether a byte is a `tchar` of RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
