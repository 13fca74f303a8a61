//! Metered JSON values: the validator reads them, and each access is paid for from a budget.
//!
//! A validator's work is the product of a schema and a value, and with recursive schemas it can be exponential in the
//! value's depth. The library has no limit of its own, but it reads values through a trait. [`Metered`] implements it
//! for [`Value`] and counts: once the budget is spent, objects and arrays look empty, every loop ends, and the verdict,
//! which means nothing any more, is thrown away.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Map, Number, Value};

use super::unfold::Unfolded;

/// Work that is always allowed, in accesses to a value.
const WORK: u64 = 1_000_000;
/// Work allowed on top of it for each value within the value that is checked.
const WORK_PER_VALUE: u64 = 64;
/// Most work, however large the value is.
const MAX_WORK: u64 = 20_000_000;
/// Price of a byte of text that is matched against a pattern, and of 64 bytes that are only read.
const MATCHED_BYTE: u64 = 16;
/// Most steps on the stack: a step is a schema applied to a value, and each level of the value takes as many as the
/// longest chain of schemas in the schema. Unoptimised builds use less than 300 bytes for one.
const MAX_STEPS: usize = 2_560;
/// Schemas that may be applied to one value for the price of one access.
const PATHS_PER_ACCESS: usize = 32;

/// The representation of JSON that [`Metered`] nodes belong to.
pub(super) struct MeteredJson;

/// Budget of one validation.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    work: Cell<u64>,
    /// The value that is checked, until its size has been added to the budget.
    unweighed: Cell<Option<&'a Value>>,
    spent: Cell<bool>,
    max_depth: usize,
    /// Price of going to a member or an element.
    descent: u64,
    /// Price of 64 bytes of text.
    text: u64,
    /// Price of a byte of a member's name.
    name_byte: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(value: &'a Value, schema: &Unfolded) -> Self {
        Self {
            work: Cell::new(WORK),
            unweighed: Cell::new(Some(value)),
            spent: Cell::new(false),
            max_depth: MAX_STEPS / schema.chain.max(1),
            descent: count(1 + schema.paths / PATHS_PER_ACCESS),
            text: if schema.patterns > 0 { 64 * MATCHED_BYTE } else { 1 },
            name_byte: MATCHED_BYTE * count(schema.name_patterns),
        }
    }

    /// Creates a budget that counts the size of the value from the start, for work that is known to be large.
    pub(super) fn weighed(value: &'a Value, schema: &Unfolded) -> Self {
        let meter = Self::new(value, schema);
        meter.weigh(0);
        meter
    }

    /// Lends the rest of this budget to one validation; [`settle`](Self::settle) takes back what is left.
    pub(super) fn lend<'b>(&self) -> Meter<'b> {
        Meter {
            work: self.work.clone(),
            unweighed: Cell::new(None),
            spent: self.spent.clone(),
            max_depth: self.max_depth + 1,
            ..*self
        }
    }

    pub(super) fn settle(&self, lent: &Meter<'_>) {
        self.work.set(lent.work.get());
        self.spent.set(lent.spent.get());
    }

    /// Wraps the value this budget is for, as the validator reads it.
    pub(super) fn root(&'a self, value: &'a Value) -> Metered<'a> {
        Metered { value, meter: Some(self), depth: 0 }
    }

    /// Returns whether the budget was exceeded, so that the verdict cannot be trusted.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    /// Takes from the budget; returns `false` once there is nothing left.
    #[inline]
    pub(super) fn spend(&self, work: u64) -> bool {
        match self.work.get().checked_sub(work) {
            Some(left) => {
                self.work.set(left);
                true
            }
            None => self.weigh(work),
        }
    }

    /// Adds the work that the size of the value allows. Small values never get here, so that they are not counted.
    #[cold]
    fn weigh(&self, work: u64) -> bool {
        let allowed = match self.unweighed.take() {
            Some(value) => (WORK_PER_VALUE * count(weight(value))).min(MAX_WORK - WORK),
            None => 0,
        };
        match (self.work.get() + allowed).checked_sub(work) {
            Some(left) if !self.spent.get() => {
                self.work.set(left);
                true
            }
            _ => self.end(),
        }
    }

    fn end(&self) -> bool {
        self.work.set(0);
        self.unweighed.set(None);
        self.spent.set(true);
        false
    }

    /// Takes the price of reading text.
    fn spend_text(&self, text: &str) -> bool {
        self.spend(1 + (count(text.len()) * self.text) / 64)
    }
}

fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// Counts the values in a value, itself included.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Returns the work that a value is worth: its size, with its text.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 4,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, value)| name.len() / 4 + weight(value)).sum::<usize>()
        }
        _ => 1,
    }
}

/// A value within the one that is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metered<'a> {
    value: &'a Value,
    /// Names of members are checked as values of their own, and were paid for with their members.
    meter: Option<&'a Meter<'a>>,
    depth: usize,
}

impl<'a> Metered<'a> {
    #[inline]
    fn spend(&self, work: u64) -> bool {
        self.meter.is_none_or(|meter| meter.spend(work))
    }

    /// Returns whether the budget allows access to this value's members or elements.
    #[inline]
    fn enter(&self) -> bool {
        let Some(meter) = self.meter else { return true };
        if self.depth < meter.max_depth { meter.spend(1) } else { meter.end() }
    }

    /// Wraps a member or an element of this value.
    #[inline]
    fn below(&self, value: &'a Value) -> Option<Self> {
        let paid = self.meter.is_none_or(|meter| meter.spend(meter.descent));
        paid.then_some(Self { value, meter: self.meter, depth: self.depth + 1 })
    }
}

impl Json for MeteredJson {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    // As the library has it for `serde_json`.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Metered<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Metered { value: buffer, meter: None, depth: 0 })
    }
}

impl<'a> Node<'a, MeteredJson> for Metered<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        match self.value {
            Value::Object(members) if self.enter() => Some(Members { of: *self, members }),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        match self.value {
            Value::Array(items) if self.enter() => Some(Elements { of: *self, items }),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self.value {
            Value::String(text) if self.meter.is_none_or(|meter| meter.spend_text(text)) => {
                Some(Cow::Borrowed(text))
            }
            _ => None,
        }
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self.value {
            Value::Number(number) if self.spend(1) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) if self.spend(1) => Some(*value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.spend(1);
        match self.value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        match self.value {
            Value::String(text) if self.spend(1 + count(text.len()) / 64) => {
                Some(count(text.chars().count()))
            }
            _ => None,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.spend(count(size(expected))) && cmp::equal(self.value, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.spend(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.value).addr()))
    }
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    of: Metered<'a>,
    members: &'a Map<String, Value>,
}

impl<'a> Object<'a, MeteredJson> for Members<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        self.of.spend(1).then(|| self.members.get(key))?.and_then(|value| self.of.below(value))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { of: self.of, members: self.members.iter() }
    }
}

pub(super) struct MembersIter<'a> {
    of: Metered<'a>,
    members: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let price = |meter: &Meter<'_>| meter.name_byte.saturating_mul(count(name.len()));
        self.of
            .meter
            .is_none_or(|meter| meter.spend(price(meter)))
            .then(|| self.of.below(value))?
            .map(|value| (name.as_str(), value))
    }
}

/// The elements of an array.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    of: Metered<'a>,
    items: &'a [Value],
}

impl<'a> Array<'a, MeteredJson> for Elements<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter { of: self.of, items: self.items.iter() }
    }

    fn is_unique(&self) -> bool {
        let size = self.items.iter().map(size).sum();
        self.of.spend(count(size)) && unique::is_unique(self.items)
    }
}

pub(super) struct ElementsIter<'a> {
    of: Metered<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Metered<'a>> {
        self.items.next().and_then(|value| self.of.below(value))
    }
}
