//! Argument and output schemas: bounded, compiled once, and checked the cheapest way that is still exact.

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// How deep a schema may nest, and how many values it may hold (N5).
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 20_000;

/// How values are held against a schema.
pub(crate) enum Check {
    /// The schema was derived from the type the values are parsed into, and says nothing that parsing does not
    /// enforce already.
    ByType,
    /// There must be no arguments at all.
    Nothing,
    /// A compiled validator.
    Compiled(Box<Validator>),
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ByType => "ByType",
            Self::Nothing => "Nothing",
            Self::Compiled(_) => "Compiled",
        })
    }
}

impl Check {
    /// For a schema derived from the type itself.
    pub(crate) fn derived(schema: &Value) -> Result<Self, String> {
        bounded(schema)?;
        if enforced_by_type(schema) { Ok(Self::ByType) } else { compile(schema) }
    }

    /// For a schema written by hand.
    pub(crate) fn written(schema: &Value) -> Result<Self, String> {
        bounded(schema)?;
        compile(schema)
    }

    /// What is wrong with a value, for somebody who can mend it.
    pub(crate) fn problems(&self, value: &Value) -> Option<String> {
        let Self::Compiled(validator) = self else { return None };
        problems(validator, value)
    }
}

/// Every complaint of a validator about a value (the first five), each with its path.
pub(crate) fn problems(validator: &Validator, value: &Value) -> Option<String> {
    let mut found = validator.iter_errors(value).map(|error| {
        let path = error.instance_path().to_string();
        if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
    });
    let first = found.next()?;
    Some(found.take(4).fold(first, |all, next| all + "; " + &next))
}

/// Compiles a schema. References to the network or to files are errors: nothing is ever fetched (N5).
pub(crate) fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .build(schema)
        .map_err(|error| format!("not a usable JSON Schema: {error}"))
}

fn compile(schema: &Value) -> Result<Check, String> {
    validator(schema).map(|validator| Check::Compiled(Box::new(validator)))
}

/// Refuses schemas that are cheap to send and dear to compile.
pub(crate) fn bounded(schema: &Value) -> Result<(), String> {
    fn count(value: &Value, depth: usize, left: &mut usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the schema nests deeper than {MAX_DEPTH}"));
        }
        *left = left.checked_sub(1).ok_or_else(|| format!("the schema has more than {MAX_VALUES} values"))?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| count(item, depth + 1, left)),
            Value::Object(members) => members.values().try_for_each(|member| count(member, depth + 1, left)),
            _ => Ok(()),
        }
    }
    count(schema, 0, &mut { MAX_VALUES })
}

/// Whether serde, parsing into the type this schema was derived from, accepts nothing the schema refuses.
/// When in doubt the answer is no, which costs a validation and never a wrong acceptance.
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

/// Whether a bound is the one the integer type has anyway.
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

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::{JsonSchema, schema_for};
    use serde_json::json;

    fn derived<T: JsonSchema>() -> Check {
        Check::derived(&schema_for!(T).into()).expect("a usable schema")
    }

    #[test]
    fn a_plain_struct_is_checked_by_its_type_and_a_constrained_one_by_its_schema() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Plain {
            a: u8,
            b: Option<Vec<String>>,
            c: f64,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Constrained {
            #[schemars(range(min = 1, max = 12))]
            people: u8,
        }
        assert!(matches!(derived::<Plain>(), Check::ByType));
        let check = derived::<Constrained>();
        assert!(
            check
                .problems(&json!({ "people": 13 }))
                .expect("a problem")
                .starts_with("/people: 13 is greater")
        );
        assert_eq!(check.problems(&json!({ "people": 12 })), None);
    }

    /// N5: network and file references are never fetched; a schema that needs one is refused.
    #[test]
    fn external_references_are_refused() {
        for reference in ["http://127.0.0.1:9/x.json", "https://example.com/x.json", "file:///etc/passwd"] {
            let refused =
                Check::written(&json!({ "type": "object", "properties": { "a": { "$ref": reference } } }));
            assert!(refused.is_err(), "{reference}");
        }
        assert!(Check::written(&json!({ "$defs": { "a": {} }, "$ref": "#/$defs/a" })).is_ok());
    }

    /// N5: schema depth and size are bounded.
    #[test]
    fn deep_and_huge_schemas_are_refused() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(Check::written(&deep).is_err_and(|why| why.contains("deeper")));
        let huge = json!({ "enum": vec![0; 30_000] });
        assert!(Check::written(&huge).is_err_and(|why| why.contains("more than")));
    }
}
