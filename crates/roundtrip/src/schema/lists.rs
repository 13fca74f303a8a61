//! Lists in place of objects, in values that serde has buffered: it reads structs inside of flattened fields and of tagged
//! and untagged enums by position too. The schema that is derived from the type says where a list may be.
//!
//! This needs no validator, and runs only for values with a list in what was buffered.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use roundtrip_core::wire::clip;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{Misfit, percent_decoded};
use crate::lock::{read, write};

/// Work that is always allowed, in schemas that are applied to a value.
const WORK: usize = 100_000;
/// Work allowed on top of it for each value within the value that is checked.
const WORK_PER_VALUE: usize = 16;
/// Longest chain of schemas that apply to one value.
const LONGEST_CHAIN: usize = 32;

/// Schemas of the types that had to be checked.
static DERIVED: LazyLock<RwLock<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(RwLock::default);

/// Refuses a value with a list where the schema derived from its type has an object.
///
/// # Errors
/// Says where the list is.
pub(crate) fn refuse_misplaced<T: JsonSchema + 'static>(value: &Value) -> Result<(), Misfit> {
    let known = read(&DERIVED).get(&TypeId::of::<T>()).cloned();
    let schema = known.unwrap_or_else(|| {
        let schema = Arc::new(schemars::schema_for!(T).into());
        write(&DERIVED).insert(TypeId::of::<T>(), Arc::clone(&schema));
        schema
    });
    misplaced(&schema, value)
}

fn misplaced(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let work = Cell::new(WORK.saturating_add(WORK_PER_VALUE.saturating_mul(count(value))));
    let walk = Walk { schema, work };
    let verdict = walk.check(schema, value, 0);
    match verdict.list {
        _ if walk.work.get() == 0 => Err(Misfit::TooMuchWork),
        Some(path) => {
            let place = if path.is_empty() { String::new() } else { format!("{}: ", clip(&path)) };
            Err(Misfit::Problems(format!("{place}a list, where an object is expected")))
        }
        None => Ok(()),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Result of comparing a value with a schema.
struct Verdict {
    /// True if serde may read the value so, with lists in place of objects.
    fits: bool,
    /// Path of a list that is in place of an object.
    list: Option<String>,
}

impl Verdict {
    fn fits(fits: bool) -> Self {
        Self { fits, list: None }
    }

    /// Adds the verdict of a schema that has to fit too.
    fn and(&mut self, other: Self) {
        self.fits &= other.fits;
        self.list = self.list.take().or(other.list);
    }

    /// Returns this verdict on a value, as part of the verdict on what holds it under a name.
    fn below(mut self, name: impl std::fmt::Display) -> Self {
        self.list = self.list.map(|path| format!("/{name}{path}"));
        self
    }
}

/// Comparison of a value with the schema of its type.
struct Walk<'s> {
    schema: &'s Value,
    /// Work that is left. Without any, no verdict counts.
    work: Cell<usize>,
}

impl Walk<'_> {
    fn check(&self, schema: &Value, value: &Value, chain: usize) -> Verdict {
        let left = if chain > LONGEST_CHAIN { 0 } else { self.work.get().saturating_sub(1) };
        self.work.set(left);
        let Value::Object(keywords) = schema else { return Verdict::fits(schema != &Value::Bool(false)) };
        if left == 0 {
            return Verdict::fits(false);
        }
        let mut verdict = Verdict::fits(true);
        for (keyword, held) in keywords {
            match keyword.as_str() {
                "$ref" => {
                    let pointer = held.as_str().and_then(|held| percent_decoded(held.strip_prefix('#')?));
                    let target = pointer.and_then(|pointer| self.schema.pointer(&pointer));
                    verdict.and(
                        target.map_or(Verdict::fits(true), |target| self.check(target, value, chain + 1)),
                    );
                }
                "allOf" => {
                    let all = held.as_array().into_iter().flatten();
                    all.for_each(|one| verdict.and(self.check(one, value, chain + 1)));
                }
                "anyOf" => verdict.and(self.first_of(held, value, is_variant, chain + 1)),
                "oneOf" => verdict.and(self.first_of(held, value, |_| false, chain + 1)),
                "const" => verdict.fits &= held == value,
                "enum" => verdict.fits &= held.as_array().is_none_or(|held| held.contains(value)),
                "minimum" => verdict.fits &= compare(held, value, |bound, number| number >= bound),
                "maximum" => verdict.fits &= compare(held, value, |bound, number| number <= bound),
                _ => {}
            }
        }
        match value {
            Value::Array(items) if !may_be_list(keywords) => verdict.and(self.by_position(keywords, items)),
            Value::Array(items) => self.items(keywords, items, &mut verdict),
            Value::Object(members) => self.members(keywords, members, &mut verdict),
            _ => {}
        }
        verdict.fits &= value.is_array() || has_type(keywords, value);
        verdict
    }

    /// Checks the alternatives as serde tries them: the first that can be read is taken, though it be from a list.
    /// `is_object` says which are never read from one.
    fn first_of(
        &self,
        alternatives: &Value,
        value: &Value,
        is_object: fn(&Value) -> bool,
        chain: usize,
    ) -> Verdict {
        let mut none = Verdict::fits(false);
        for alternative in alternatives.as_array().into_iter().flatten() {
            // What is inside has to be looked at once, and not once for each variant at every level.
            if has_other_tag(alternative, value) {
                continue;
            }
            let verdict = self.check(alternative, value, chain);
            if verdict.fits && !(value.is_array() && is_object(alternative)) {
                return verdict;
            }
            none.and(verdict);
        }
        none
    }

    /// Checks a list where the schema has no list. It is read by position if its items fit the properties in their
    /// order; the tag of an enum is ahead of the others then.
    fn by_position(&self, keywords: &Map<String, Value>, items: &[Value]) -> Verdict {
        if !names_type(keywords, "object") && !keywords.contains_key("properties") {
            return Verdict::fits(false);
        }
        let in_order = |order: &[(&String, &Value)]| {
            items.len() <= order.len()
                && !order[items.len()..].iter().any(|(name, _)| is_required(keywords, name))
                && order.iter().zip(items).all(|((_, schema), item)| self.check(schema, item, 0).fits)
        };
        let fits = match keywords.get("properties").and_then(Value::as_object) {
            Some(properties) => {
                let mut order: Vec<_> = properties.iter().collect();
                in_order(&order) || {
                    order.sort_by_key(|(_, schema)| schema.get("const").is_none());
                    in_order(&order)
                }
            }
            // A map has a schema for all that is in it, and is never read from a list.
            None => items.is_empty() && !keywords.contains_key("additionalProperties"),
        };
        Verdict { fits, list: Some(String::new()) }
    }

    fn items(&self, keywords: &Map<String, Value>, items: &[Value], verdict: &mut Verdict) {
        let first = keywords.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = keywords.get("items");
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or(rest) {
                verdict.and(self.check(schema, item, 0).below(at));
            }
        }
        verdict.fits &= items.len() >= first.len();
    }

    fn members(&self, keywords: &Map<String, Value>, members: &Map<String, Value>, verdict: &mut Verdict) {
        let properties = keywords.get("properties");
        let others = keywords.get("additionalProperties");
        for (name, member) in members {
            let schema = properties.and_then(|properties| properties.get(name)).or(others);
            if let Some(schema) = schema {
                verdict.and(self.check(schema, member, 0).below(name));
            }
        }
        let mut required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
        verdict.fits &= required.all(|name| name.as_str().is_none_or(|name| members.contains_key(name)));
    }
}

/// Returns whether a schema says nothing against a list.
fn may_be_list(keywords: &Map<String, Value>) -> bool {
    match keywords.get("type") {
        Some(_) => names_type(keywords, "array"),
        None => !keywords.contains_key("properties"),
    }
}

/// Returns whether an object has the tag of another variant.
fn has_other_tag(alternative: &Value, value: &Value) -> bool {
    let mut properties = alternative.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.any(|(name, schema)| {
        schema.get("const").zip(value.get(name)).is_some_and(|(expected, tag)| tag != expected)
    })
}

/// Returns whether an alternative is a variant with named fields, of an untagged enum: serde has these from maps only. A struct in
/// a variant is referred to.
fn is_variant(alternative: &Value) -> bool {
    alternative.get("properties").is_some()
}

/// Returns whether the schema names a type.
fn names_type(keywords: &Map<String, Value>, wanted: &str) -> bool {
    match keywords.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == wanted),
        Some(one) => one == wanted,
        None => false,
    }
}

/// Returns whether a value is of a type that the schema names, or the schema names none.
fn has_type(keywords: &Map<String, Value>, value: &Value) -> bool {
    let is = |name| names_type(keywords, name);
    !keywords.contains_key("type")
        || match value {
            Value::Null => is("null"),
            Value::Bool(_) => is("boolean"),
            Value::Number(number) => is("number") || is("integer") && !number.is_f64(),
            Value::String(_) => is("string"),
            Value::Array(_) => is("array"),
            Value::Object(_) => is("object"),
        }
}

fn is_required(keywords: &Map<String, Value>, name: &str) -> bool {
    keywords
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|one| one == name))
}

/// Compares a number with a bound; other values have none.
fn compare(bound: &Value, value: &Value, fits: fn(f64, f64) -> bool) -> bool {
    bound.as_f64().zip(value.as_f64()).is_none_or(|(bound, number)| fits(bound, number))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "it is only read")]
    struct Point {
        x: u8,
        #[serde(default)]
        y: i64,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "it is only read")]
    enum Shape {
        Dot { at: Point },
        Box { at: (u8, i64), name: Option<String> },
        Tree { shapes: Vec<Shape> },
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "it is only read")]
    struct Flat {
        id: u8,
        #[serde(flatten)]
        shape: Shape,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    /// Returns what is said of a value that serde reads.
    fn said<T: JsonSchema + for<'a> Deserialize<'a> + 'static>(value: &Value) -> Option<String> {
        serde_json::from_value::<T>(value.clone()).expect("serde takes it");
        refuse_misplaced::<T>(value).err().map(|misfit| misfit.to_string())
    }

    #[test]
    fn the_tag_says_what_may_be_a_list() {
        let dot = || json!({ "kind": "Dot", "at": { "x": 1 } });
        for (shape, place) in [
            (dot(), None),
            (json!({ "kind": "Dot", "at": [1, 2] }), Some("/at: ")),
            (json!({ "kind": "Box", "at": [1, 2] }), None),
            (json!(["Box", [1, 2], null]), Some("")),
            (json!(["Dot", { "x": 1 }]), Some("")),
            (json!({ "kind": "Tree", "shapes": [dot(), { "kind": "Box", "at": [1, 2] }] }), None),
            (json!({ "kind": "Tree", "shapes": [dot(), ["Dot", { "x": 1 }]] }), Some("/shapes/1: ")),
            (json!({ "kind": "Tree", "shapes": [{ "kind": "Dot", "at": [1] }] }), Some("/shapes/0/at: ")),
        ] {
            let told = said::<Shape>(&shape);
            assert_eq!(told.is_some(), place.is_some(), "{shape}: {told:?}");
            assert!(told.is_none_or(|told| told.starts_with(place.unwrap_or("?"))), "{shape}");
        }
    }

    #[test]
    fn flattened_members_are_compared_too() {
        assert_eq!(said::<Flat>(&json!({ "id": 1, "kind": "Dot", "at": { "x": 1 }, "more": [[1]] })), None);
        assert_eq!(said::<Flat>(&json!({ "id": 1, "kind": "Box", "at": [1, 2], "more": [] })), None);
        let told = said::<Flat>(&json!({ "id": 1, "kind": "Dot", "at": [1, 2], "more": [[1]] }));
        assert!(told.is_some_and(|told| told.starts_with("/at: ")));
    }

    #[test]
    fn deep_values_take_no_more_work_than_they_have_values() {
        let deep = |leaf| (0..50).fold(leaf, |inner, _| json!({ "kind": "Tree", "shapes": [inner] }));
        assert_eq!(said::<Shape>(&deep(json!({ "kind": "Box", "at": [1, 2] }))), None);
        let told = said::<Shape>(&deep(json!({ "kind": "Dot", "at": [1, 2] })));
        assert!(told.is_some_and(|told| told.starts_with("/shapes/0/shapes/0/")));
    }

    #[test]
    fn the_work_is_bounded() {
        // Each level is tried with both alternatives, and the last fits neither.
        let schema = json!({ "anyOf": [{ "$ref": "#/$defs/node" }, { "$ref": "#/$defs/other" }], "$defs": {
            "node": { "type": "object", "properties": { "next": { "$ref": "#" } }, "required": ["a"] },
            "other": { "type": "object", "properties": { "next": { "$ref": "#" } }, "required": ["b"] },
        } });
        let deep = (0..60).fold(json!([1]), |inner, _| json!({ "next": inner }));
        assert_eq!(misplaced(&schema, &deep), Err(Misfit::TooMuchWork));
        let circle = json!({ "$ref": "#" });
        assert_eq!(misplaced(&circle, &json!([])), Err(Misfit::TooMuchWork));
    }
}
