//! Graph of the schemas within a schema, and its size once references are followed.
//!
//! A schema of a few kilobytes can stand for one of any size: definitions that each refer twice to the next double at
//! every step. What is bounded is therefore the unfolded schema: for every schema, the paths over which others apply to
//! the *same* value. Recursion that goes into a member or an element, as trees and lists have it, is not unfolded: it
//! ends where the value ends, and [`Meter`](super::meter::Meter) counts it while it happens.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::percent_decoded;

/// Longest chain of schemas that apply to one value, and most paths over such chains in the whole schema.
const MAX_CHAIN: usize = 64;
const MAX_PATHS: usize = 100_000;

/// Measures of a schema whose references have been followed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Unfolded {
    /// Most schemas that apply to one value.
    pub(super) paths: usize,
    /// Longest chain of schemas that apply to one value.
    pub(super) chain: usize,
    /// Patterns that text may be matched against.
    pub(super) patterns: usize,
    /// Patterns that the name of a member may be matched against.
    pub(super) name_patterns: usize,
}

/// Values that a keyword's schemas apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    /// The value itself.
    Here,
    /// Its members or elements.
    Below,
    /// None, until a reference applies them.
    WhereReferredTo,
}

/// Returns the values that the schemas of a keyword apply to; `None` for keywords that hold no schemas.
pub(super) fn applies(keyword: &str) -> Option<Applies> {
    Some(match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
        | "dependencies" => Applies::Here,
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedProperties"
        | "items"
        | "prefixItems"
        | "additionalItems"
        | "contains"
        | "unevaluatedItems"
        | "contentSchema" => Applies::Below,
        "$defs" | "definitions" => Applies::WhereReferredTo,
        _ => return None,
    })
}

/// Returns whether a keyword's value is a map of schemas by name, and not a schema itself.
fn is_map(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions"
    )
}

/// A schema document, with the schemas within it and their anchors.
#[derive(Debug, Clone)]
pub(super) struct Document {
    root: Value,
    /// Pointers to the schemas that have an `$anchor`.
    anchors: HashMap<String, String>,
    /// Pointers to all schemas in the document.
    pointers: Vec<String>,
    pub(super) unfolded: Unfolded,
    pub(super) dialect: Dialect,
}

impl Document {
    /// Follows every reference, and refuses a schema that unfolds too far.
    pub(super) fn new(root: &Value) -> Result<Self, String> {
        let dialect = Dialect::of(root)?;
        let graph = Graph::of(root, dialect)?;
        let unfolded = graph.unfold()?;
        let Graph { anchors, schemas, .. } = graph;
        let pointers = schemas.into_iter().map(|schema| schema.pointer).collect();
        Ok(Self { root: root.clone(), anchors, pointers, unfolded, dialect })
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    pub(super) fn pointers(&self) -> &[String] {
        &self.pointers
    }

    /// Returns the schema a reference points to, with its pointer.
    pub(super) fn resolve(&self, reference: &str) -> Option<(String, &Value)> {
        let pointer = pointer_of(&self.root, self.dialect, &self.anchors, reference).ok()?;
        let schema = self.root.pointer(&pointer)?;
        Some((pointer, schema))
    }
}

/// Appends a token to a JSON pointer.
pub(super) fn step(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Returns the pointer a reference stands for. References to other documents, and below an `$id` of their own, are not
/// supported: nothing is ever fetched (N5).
fn pointer_of(
    root: &Value,
    dialect: Dialect,
    anchors: &HashMap<String, String>,
    reference: &str,
) -> Result<String, String> {
    let own = root.get(dialect.id()).and_then(Value::as_str).unwrap_or_default();
    let own = own.strip_suffix('#').unwrap_or(own);
    let fragment = match reference.strip_prefix(own).unwrap_or(reference) {
        "" => "",
        rest => rest
            .strip_prefix('#')
            .ok_or_else(|| format!("the reference `{reference}` is not to a place in the schema itself"))?,
    };
    let fragment =
        percent_decoded(fragment).ok_or_else(|| format!("the reference `{reference}` is not valid"))?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return Ok(fragment);
    }
    let anchored = anchors.get(&fragment).cloned();
    anchored.ok_or_else(|| format!("the reference `{reference}` points to nothing in the schema"))
}

/// Encodes a pointer as the fragment of a reference.
pub(super) fn fragment(pointer: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    pointer.bytes().fold(String::with_capacity(pointer.len()), |mut text, byte| {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
        text
    })
}

/// One schema in the graph.
struct Schema<'a> {
    pointer: String,
    value: &'a Value,
    /// Schemas that apply to the same value.
    here: Vec<usize>,
}

/// All schemas that can apply, with edges between those that apply to the same value.
struct Graph<'a> {
    schemas: Vec<Schema<'a>>,
    /// Indexes of the schemas, by address.
    found: HashMap<usize, usize>,
    anchors: HashMap<String, String>,
    references: Vec<(usize, &'a str)>,
    /// Patterns for text, and for names of members.
    patterns: usize,
    name_patterns: usize,
    /// True if names of members are checked as text is (`propertyNames`).
    names_are_text: bool,
    dialect: Dialect,
}

impl<'a> Graph<'a> {
    fn of(root: &'a Value, dialect: Dialect) -> Result<Self, String> {
        let mut graph = Self {
            schemas: Vec::new(),
            found: HashMap::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
            patterns: 0,
            name_patterns: 0,
            names_are_text: false,
            dialect,
        };
        graph.add(String::new(), root)?;
        // References may lead to places no keyword leads to, where there are more.
        while !graph.references.is_empty() {
            for (from, reference) in std::mem::take(&mut graph.references) {
                let pointer = pointer_of(root, dialect, &graph.anchors, reference)?;
                let target = root
                    .pointer(&pointer)
                    .ok_or_else(|| format!("the reference `{reference}` points to nothing in the schema"))?;
                let target = graph.add(pointer, target)?;
                graph.schemas[from].here.push(target);
            }
        }
        Ok(graph)
    }

    /// Adds a schema with all schemas in it, and returns its index.
    fn add(&mut self, pointer: String, value: &'a Value) -> Result<usize, String> {
        let (added, new) = self.place(pointer, value);
        let mut open = if new { vec![added] } else { Vec::new() };
        while let Some(index) = open.pop() {
            let schema = &self.schemas[index];
            let (value, pointer) = (schema.value, schema.pointer.clone());
            let Value::Object(keywords) = value else { continue };
            self.note(index, &pointer, keywords)?;
            for (keyword, held) in keywords {
                let Some(applies) = applies(keyword) else { continue };
                for (pointer, value) in schemas_in(&step(&pointer, keyword), keyword, held) {
                    let (child, new) = self.place(pointer, value);
                    if applies == Applies::Here {
                        self.schemas[index].here.push(child);
                    }
                    if new {
                        open.push(child);
                    }
                }
            }
        }
        Ok(added)
    }

    /// Returns the index of a schema, and whether it is new.
    fn place(&mut self, pointer: String, value: &'a Value) -> (usize, bool) {
        let next = self.schemas.len();
        let index = *self.found.entry(std::ptr::from_ref(value).addr()).or_insert(next);
        if index == next {
            self.schemas.push(Schema { pointer, value, here: Vec::new() });
        }
        (index, index == next)
    }

    /// Notes the anchors, references and patterns of a schema.
    fn note(&mut self, index: usize, pointer: &str, keywords: &'a Map<String, Value>) -> Result<(), String> {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let id = self.dialect.id();
        if index != 0 && text(id).is_some() {
            return Err(format!("an `{id}` below the root of a schema is not supported: take it out"));
        }
        if index != 0 && text("$schema").is_some() {
            return Err("a `$schema` below the root of a schema is not supported: take it out".into());
        }
        for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
            self.anchors.insert(name.to_owned(), pointer.to_owned());
        }
        for reference in self.dialect.references().iter().filter_map(|keyword| text(keyword)) {
            self.references.push((index, reference));
        }
        self.patterns += usize::from(text("pattern").is_some());
        self.name_patterns +=
            keywords.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        self.names_are_text |= keywords.contains_key("propertyNames");
        Ok(())
    }

    fn unfold(&self) -> Result<Unfolded, String> {
        let mut unfolding = Unfolding { graph: self, known: vec![Known::Not; self.schemas.len()], total: 0 };
        let names = if self.names_are_text { self.patterns } else { 0 };
        let name_patterns = self.name_patterns + names;
        let mut most = Unfolded { patterns: self.patterns, name_patterns, ..Unfolded::default() };
        for index in 0..self.schemas.len() {
            let (paths, chain) = unfolding.measure(index, 0)?;
            most.paths = most.paths.max(paths);
            most.chain = most.chain.max(chain);
        }
        Ok(most)
    }
}

/// Returns the schemas a keyword holds, with their pointers.
pub(super) fn schemas_in<'a>(pointer: &str, keyword: &str, held: &'a Value) -> Vec<(String, &'a Value)> {
    match held {
        Value::Object(members) if is_map(keyword) => {
            members.iter().map(|(name, schema)| (step(pointer, name), schema)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, schema)| (format!("{pointer}/{index}"), schema)).collect()
        }
        schema => vec![(pointer.to_owned(), schema)],
    }
}

/// Measurement of a schema's paths and of its longest chain.
#[derive(Clone, Copy)]
enum Known {
    Not,
    /// It is being measured, so meeting it again means that it refers to itself.
    Measuring,
    Yes(usize, usize),
}

struct Unfolding<'a> {
    graph: &'a Graph<'a>,
    known: Vec<Known>,
    total: usize,
}

impl Unfolding<'_> {
    /// Counts the paths from a schema over schemas that apply to the same value, and measures the longest.
    fn measure(&mut self, index: usize, depth: usize) -> Result<(usize, usize), String> {
        let pointer = &self.graph.schemas[index].pointer;
        match self.known[index] {
            Known::Yes(paths, chain) => return Ok((paths, chain)),
            Known::Measuring => {
                return Err(format!(
                    "the schema at `#{pointer}` applies itself to the same value, without end"
                ));
            }
            Known::Not => self.known[index] = Known::Measuring,
        }
        let too_long = || format!("more than {MAX_CHAIN} schemas apply one another at `#{pointer}`");
        if depth >= MAX_CHAIN {
            return Err(too_long());
        }
        let (mut paths, mut chain) = (1_usize, 0);
        for &next in &self.graph.schemas[index].here {
            let (more, longer) = self.measure(next, depth + 1)?;
            paths = paths.saturating_add(more);
            chain = chain.max(longer);
        }
        chain += 1;
        self.total = self.total.saturating_add(paths);
        if chain > MAX_CHAIN {
            return Err(too_long());
        }
        if self.total > MAX_PATHS {
            return Err(format!("its references unfold to more than {MAX_PATHS} schemas"));
        }
        self.known[index] = Known::Yes(paths, chain);
        Ok((paths, chain))
    }
}
