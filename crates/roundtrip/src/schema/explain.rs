//! Explanations of misfits: paths and reasons, so that the sender can correct the value.
//!
//! The library can list every error below every branch of every `anyOf`, which is exponential in the depth of a
//! recursive value. Here the value is followed down instead: from a schema it does not fit, to those within it that it
//! does not fit, and of several branches into the closest one. Only the library decides whether a value fits.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::closest::{closeness, tags};
use super::meter::{Meter, MeteredJson, size};
use super::unfold::{Document, applies, fragment, schemas_in, step};
use super::validator::options;

/// Most problems in one explanation.
const MAX_PROBLEMS: usize = 5;
/// Most characters of a problem, and of a member's name in its path.
const MAX_REASON: usize = 300;
const MAX_NAME: usize = 64;

/// Validator of all schemas within a schema: it takes objects in which the member named by a schema's pointer must fit
/// that schema. One compilation serves them all.
#[derive(Debug)]
pub(super) struct Probes(Validator<MeteredJson>);

impl Probes {
    pub(super) fn new(document: &Document) -> Option<Self> {
        let mut root = document.root().clone();
        let Value::Object(keywords) = &mut root else { return None };
        keywords.remove("$schema");
        let dialect = document.dialect;
        let id = keywords.entry(dialect.id()).or_insert_with(|| json!("urn:roundtrip:schema"));
        let id = id.as_str()?.trim_end_matches('#').to_owned();
        let refer =
            |pointer: &String| (pointer.clone(), json!({ "$ref": format!("{id}#{}", fragment(pointer)) }));
        let properties: Map<String, Value> = document.pointers().iter().map(refer).collect();
        let probes = json!({ dialect.definitions(): { "root": root }, "properties": properties });
        options(dialect).build(&probes).ok().map(Self)
    }

    /// Returns whether a value fits the schema at a pointer; once the budget is spent, always true.
    fn fits(&self, pointer: &str, value: &Value, budget: &Meter<'_>) -> bool {
        if !budget.spend(u64::try_from(size(value)).unwrap_or(u64::MAX)) {
            return true;
        }
        let object = Value::Object(Map::from_iter([(pointer.to_owned(), value.clone())]));
        let meter = budget.lend();
        let fits = self.0.is_valid(meter.root(&object));
        budget.settle(&meter);
        fits || budget.is_spent()
    }
}

/// A value and a schema it does not fit.
struct Misfit<'a> {
    pointer: String,
    schema: &'a Value,
    value: &'a Value,
    path: String,
}

impl Misfit<'_> {
    fn problem(&self, reason: &str) -> String {
        let reason = clipped(reason, MAX_REASON);
        if self.path.is_empty() { reason } else { format!("{}: {reason}", self.path) }
    }
}

fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Explains why a value does not fit a schema. The caller knows that it does not.
pub(super) fn explain(document: &Document, probes: &Probes, value: &Value) -> String {
    let budget = Meter::weighed(value, &document.unfolded);
    let mut explanation = Explanation { document, probes, budget, problems: Vec::new() };
    let mut open =
        vec![Misfit { pointer: String::new(), schema: document.root(), value, path: String::new() }];
    while let Some(misfit) = open.pop() {
        let told = explanation.problems.len();
        let mut within = explanation.within(&misfit);
        if within.is_empty() && explanation.problems.len() == told {
            explanation.problems.push(misfit.problem("does not fit the schema"));
        }
        if explanation.problems.len() >= MAX_PROBLEMS {
            break;
        }
        within.truncate(MAX_PROBLEMS);
        within.reverse();
        open.append(&mut within);
    }
    explanation.problems.dedup();
    explanation.problems.join("; ")
}

/// Schemas a value may not fit, created lazily.
type Candidates<'m, 'a> = Box<dyn Iterator<Item = Misfit<'a>> + 'm>;

struct Explanation<'a> {
    document: &'a Document,
    probes: &'a Probes,
    budget: Meter<'a>,
    problems: Vec<String>,
}

impl<'a> Explanation<'a> {
    /// Reports the assertions that the value breaks, and returns the schemas within that it does not fit.
    fn within(&mut self, misfit: &Misfit<'a>) -> Vec<Misfit<'a>> {
        let Value::Object(keywords) = misfit.schema else {
            self.problems.push(misfit.problem("nothing is allowed here"));
            return Vec::new();
        };
        let alone = self.document.dialect.ref_stands_alone() && keywords.contains_key("$ref");
        if !alone {
            self.tell_assertions(misfit, keywords);
        }
        let mut within = Vec::new();
        for (keyword, held) in keywords.iter().filter(|(keyword, _)| !alone || *keyword == "$ref") {
            let candidates: Candidates<'_, 'a> = match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => Box::new(self.referred(misfit, held).into_iter()),
                "anyOf" | "oneOf" => Box::new(self.alternatives(misfit, keyword, held).into_iter()),
                "if" => Box::new(self.conditional(misfit, keywords).into_iter()),
                "not" => {
                    self.tell_not(misfit);
                    continue;
                }
                _ => misfit.members(keyword, held, keywords),
            };
            let misfits = candidates.filter(|inner| !self.fits(&inner.pointer, inner.value));
            within.extend(misfits.take(MAX_PROBLEMS));
        }
        within
    }

    fn tell_not(&mut self, misfit: &Misfit<'a>) {
        if self.fits(&misfit.at("not"), misfit.value) && !self.budget.is_spent() {
            self.problems.push(misfit.problem("fits a schema that it must not fit (`not`)"));
        }
    }

    fn fits(&self, pointer: &str, value: &Value) -> bool {
        self.probes.fits(pointer, value, &self.budget)
    }

    fn referred(&self, misfit: &Misfit<'a>, reference: &Value) -> Option<Misfit<'a>> {
        let (pointer, schema) = self.document.resolve(reference.as_str()?)?;
        Some(Misfit { pointer, schema, value: misfit.value, path: misfit.path.clone() })
    }

    fn conditional(&self, misfit: &Misfit<'a>, keywords: &'a Map<String, Value>) -> Option<Misfit<'a>> {
        let branch = if self.fits(&misfit.at("if"), misfit.value) { "then" } else { "else" };
        keywords.get(branch).map(|schema| misfit.here(misfit.at(branch), schema))
    }

    /// Returns the closest of several alternatives, if the value fits none.
    fn alternatives(&mut self, misfit: &Misfit<'a>, keyword: &str, held: &'a Value) -> Option<Misfit<'a>> {
        let branches = schemas_in(&misfit.at(keyword), keyword, held);
        let fitting = branches.iter().filter(|(pointer, _)| self.fits(pointer, misfit.value)).count();
        if self.budget.is_spent() {
            return None;
        }
        if fitting > 0 {
            if keyword == "oneOf" && fitting > 1 {
                self.problems.push(misfit.problem(&format!("fits {fitting} of the alternatives, not one")));
            }
            return None;
        }
        let none = none_of(self.document, &branches, misfit.value);
        let close = |schema: &Value| closeness(self.document, schema, misfit.value);
        let ranked = branches.into_iter().map(|(pointer, schema)| (close(schema), pointer, schema));
        // Of equals, the first.
        match ranked.reduce(|best, next| if next.0 > best.0 { next } else { best }) {
            Some((closeness, pointer, schema)) if closeness.is_close() => Some(misfit.here(pointer, schema)),
            _ => {
                self.problems.push(misfit.problem(&none));
                None
            }
        }
    }

    /// Reports the assertions of a schema that a value breaks, as the library words them, without the schemas within it.
    fn tell_assertions(&mut self, misfit: &Misfit<'a>, keywords: &Map<String, Value>) {
        let shallow = shallow(keywords);
        let work = shallow.values().map(size).sum::<usize>() + 1;
        if shallow.is_empty() || !self.budget.spend(u64::try_from(work).unwrap_or(u64::MAX)) {
            return;
        }
        let options = options::<jsonschema::json::SerdeJson>(self.document.dialect);
        let Ok(validator) = options.build(&Value::Object(shallow)) else {
            return;
        };
        for error in validator.iter_errors(misfit.value) {
            let short = match misfit.value {
                Value::Array(_) | Value::Object(_) => false,
                Value::String(text) => text.len() <= MAX_NAME,
                _ => true,
            };
            let reason = if short { error.to_string() } else { error.masked_with("the value").to_string() };
            self.problems.push(misfit.problem(&reason));
        }
    }
}

/// Describes a value that fits none of several alternatives, and lists their tags if they have any.
fn none_of<'a>(document: &'a Document, alternatives: &[(String, &'a Value)], value: &Value) -> String {
    let Some((name, tags)) = tags(document, alternatives, value) else {
        return format!("fits none of the {} alternatives", alternatives.len());
    };
    let tags: Vec<String> = tags.into_iter().map(Value::to_string).collect();
    let what = name.map(|name| format!("`{}` ", clipped(name, MAX_NAME))).unwrap_or_default();
    format!("{what}must be one of {}", tags.join(", "))
}

/// Returns the assertions of a schema, with every schema within it replaced by `{}`, except for those that allow nothing.
fn shallow(keywords: &Map<String, Value>) -> Map<String, Value> {
    let anything = |held: &Value| match held {
        Value::Object(members) => members.keys().map(|name| (name.clone(), json!({}))).collect(),
        _ => json!({}),
    };
    let mut shallow = Map::new();
    for (keyword, held) in keywords {
        let kept = match keyword.as_str() {
            "additionalProperties" | "items" if held == &Value::Bool(false) => held.clone(),
            "properties" | "patternProperties" => anything(held),
            "prefixItems" => json!(vec![true; held.as_array().map_or(0, Vec::len)]),
            "type" | "enum" | "const" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "multipleOf" | "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems"
            | "uniqueItems" | "required" | "dependentRequired" | "minProperties" | "maxProperties" => {
                held.clone()
            }
            _ => continue,
        };
        shallow.insert(keyword.clone(), kept);
    }
    // With nothing to assert, names of members are of no use.
    let asserts = |keyword: &String| applies(keyword).is_none() || shallow[keyword] == Value::Bool(false);
    if shallow.keys().any(asserts) { shallow } else { Map::new() }
}

impl<'a> Misfit<'a> {
    fn at(&self, keyword: &str) -> String {
        step(&self.pointer, keyword)
    }

    fn here(&self, pointer: String, schema: &'a Value) -> Self {
        Self { pointer, schema, value: self.value, path: self.path.clone() }
    }

    fn below(&self, pointer: String, schema: &'a Value, name: &str, value: &'a Value) -> Self {
        Self { pointer, schema, value, path: step(&self.path, &clipped(name, MAX_NAME)) }
    }

    /// Returns the schemas of a keyword that must all be fitted, each with the value that must fit it.
    fn members<'m>(
        &'m self,
        keyword: &str,
        held: &'a Value,
        siblings: &'a Map<String, Value>,
    ) -> Candidates<'m, 'a> {
        let pointer = self.at(keyword);
        match (keyword, self.value, held) {
            ("allOf", _, _) => {
                let all = schemas_in(&pointer, keyword, held).into_iter();
                Box::new(all.map(|(pointer, schema)| self.here(pointer, schema)))
            }
            ("dependentSchemas", Value::Object(members), Value::Object(schemas)) => {
                let present = schemas.iter().filter(|(name, _)| members.contains_key(*name));
                Box::new(present.map(move |(name, schema)| self.here(step(&pointer, name), schema)))
            }
            ("properties", Value::Object(members), Value::Object(schemas)) => {
                let both =
                    schemas.iter().filter_map(|(name, schema)| Some((name, schema, members.get(name)?)));
                Box::new(
                    both.map(move |(name, schema, value)| {
                        self.below(step(&pointer, name), schema, name, value)
                    }),
                )
            }
            ("additionalProperties", Value::Object(members), schema)
                if !siblings.contains_key("patternProperties") && schema != &Value::Bool(false) =>
            {
                let known = siblings.get("properties").and_then(Value::as_object);
                let unknown = move |name: &String| known.is_none_or(|known| !known.contains_key(name));
                let others = members.iter().filter(move |(name, _)| unknown(name));
                Box::new(others.map(move |(name, value)| self.below(pointer.clone(), schema, name, value)))
            }
            ("prefixItems" | "items", Value::Array(items), Value::Array(schemas)) => {
                let both = items.iter().zip(schemas).enumerate();
                Box::new(both.map(move |(index, (value, schema))| {
                    self.below(format!("{pointer}/{index}"), schema, &index.to_string(), value)
                }))
            }
            ("items", Value::Array(items), schema) if schema != &Value::Bool(false) => {
                let first = siblings.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                let rest = items.iter().enumerate().skip(first);
                Box::new(rest.map(move |(index, value)| {
                    self.below(pointer.clone(), schema, &index.to_string(), value)
                }))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}
