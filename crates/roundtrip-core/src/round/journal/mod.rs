//! The journal of a flow: answers, results of steps, and open questions.
//!
//! In memory a journal is much like its encoding: one text with all keys and values, and a list of the entries'
//! ranges in it. Decoding is a single pass over the headers; encoding copies the live entries, adjacent ones as one
//! piece. So the cost of a round is proportional to the size of its journal.

mod changes;
mod encoding;
mod entry;
mod kind;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde_json::value::RawValue;

use super::answer::{Settled, Unusable};
use super::pin::{Pin, PinKey};
use super::question::Question;
use super::sent::SentNotifications;
use changes::Changes;
use entry::{Index, Slot, UNPINNED};

pub use changes::LastPiece;
pub use entry::{Found, Place};
pub use kind::Kind;

/// Number of `inputResponses` up to which a search through them is quicker than a map.
const FEW_RESPONSES: usize = 16;

/// Number of entries up to which a search through them is quicker than an index. A handler may take a step for every
/// entry of a list that a client sent.
const MANY_ENTRIES: usize = 64;

/// Rounds of a flow that were no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stalled {
    /// Their number.
    pub rounds: u32,
    /// Longest lifetime of the tokens that stand for one round, in whole seconds.
    pub longest: Duration,
}

impl Stalled {
    /// No such rounds.
    pub const NONE: Self = Self { rounds: 0, longest: Duration::ZERO };
}

/// Trace context of a round, as W3C Trace Context has it: trace id, span id, flags.
pub type TraceContext = [u8; 25];

/// The memory of a flow between rounds.
#[derive(Clone)]
pub struct Journal {
    text: String,
    slots: Vec<Slot>,
    /// Position where the next look-up is likely to hit: a replay reads entries in the order they were made.
    next: usize,
    /// Number of entries up to the last one that is about a question: no answer lies beyond.
    answers: usize,
    /// Last position of each key, once there are many. In a box, as few journals have one.
    index: Option<Box<Index>>,
    /// Number of rounds that have asked.
    rounds: u8,
    /// The key of its pins.
    pins: PinKey,
    /// Rounds that were no progress.
    stalled: Stalled,
    /// Notifications that the rounds so far have sent. In a box, as few journals have them.
    sent: Option<Box<SentNotifications>>,
    /// Trace context of the last round that had one. In a box, as few journals have it.
    trace: Option<Box<TraceContext>>,
    /// Changes since they were last taken. Only journals that are kept in pieces have them.
    changes: Option<Box<Changes>>,
}

/// Shows entries by kind and key, without values: the seal is there to hide those.
impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries().map(|(kind, key, _)| (kind, key));
        f.debug_struct("Journal")
            .field("rounds", &self.rounds)
            .field("entries", &entries.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Creates the empty journal of a new flow.
    pub const fn new(pins: PinKey) -> Self {
        Self {
            text: String::new(),
            slots: Vec::new(),
            next: 0,
            answers: 0,
            index: None,
            rounds: 0,
            pins,
            stalled: Stalled::NONE,
            sent: None,
            trace: None,
            changes: None,
        }
    }

    fn text(&self, range: &Range<usize>) -> &str {
        // On character boundaries, as checked when it was decoded.
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn is_at(&self, index: usize, key: &str) -> bool {
        let slot = &self.slots[index];
        !slot.dead
            && slot.kind.is_keyed()
            && self.text.as_bytes().get(slot.key.clone()) == Some(key.as_bytes())
    }

    fn position(&self, key: &str) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.0.get(key).copied().filter(|index| self.is_at(*index, key));
        }
        (self.next..self.slots.len()).chain(0..self.next).find(|index| self.is_at(*index, key))
    }

    /// Returns the pin of a question in this flow.
    pub fn pin(&self, question: &Question) -> Pin {
        question.pin(&self.pins)
    }

    fn state_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| !slot.dead && slot.kind == Kind::State)
    }

    /// Finds the entry under a key and marks it as used.
    pub fn find(&mut self, key: &str) -> Option<Found<'_>> {
        let index = self.position(key)?;
        self.next = index + 1;
        let used = std::mem::replace(&mut self.slots[index].used, true);
        Some(Found { used, ..self.found(index) })
    }

    /// Finds the entry under a key without marking it.
    pub fn peek(&self, key: &str) -> Option<Found<'_>> {
        self.position(key).map(|index| self.found(index))
    }

    fn found(&self, index: usize) -> Found<'_> {
        let Slot { kind, pin, value, used, .. } = &self.slots[index];
        let value = self.text(value);
        Found { kind: *kind, pin: *pin, value, used: *used, place: Place(index) }
    }

    /// Iterates over the settled answers, each with its key, its kind, its value, and whether this round has settled it.
    pub fn settled(&self) -> impl Iterator<Item = (&str, Kind, &str, bool)> {
        let settled = |slot: &&Slot| {
            !slot.dead && matches!(slot.kind, Kind::Settled | Kind::Declined | Kind::Cancelled)
        };
        self.slots[..self.answers]
            .iter()
            .filter(settled)
            .map(|slot| (self.text(&slot.key), slot.kind, self.text(&slot.value), slot.fresh))
    }

    /// Iterates over all entries: kind, key and value of each.
    pub fn entries(&self) -> impl Iterator<Item = (Kind, &str, &str)> {
        let live = self.slots.iter().filter(|slot| !slot.dead);
        live.map(|slot| (slot.kind, self.text(&slot.key), self.text(&slot.value)))
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.dead)
    }

    /// Counts a round that asks and returns the number of such rounds.
    pub fn count_round(&mut self) -> u32 {
        self.rounds = self.rounds.saturating_add(1);
        self.rounds.into()
    }

    /// Returns whether this round has settled an answer, begun a step, or changed the author's state.
    pub fn has_advanced(&self) -> bool {
        self.slots.iter().any(|slot| slot.fresh && !slot.dead && slot.kind.is_progress())
    }

    /// Counts a round that began with a token and was no progress: the token that it ends with stands for the same round as
    /// the one it began with. `longest` is the longest lifetime of such tokens.
    pub fn count_stalled(&mut self, longest: Duration) {
        self.stalled = Stalled { rounds: self.stalled.rounds.saturating_add(1), longest };
    }

    /// Returns the rounds that were no progress.
    pub const fn stalled(&self) -> Stalled {
        self.stalled
    }

    /// Takes the record of the notifications that earlier rounds have sent.
    pub fn take_sent(&mut self) -> Option<Box<SentNotifications>> {
        self.sent.take()
    }

    /// Keeps the record of the notifications that the rounds so far have sent.
    pub fn set_sent(&mut self, sent: Option<Box<SentNotifications>>) {
        self.sent = sent;
    }

    /// Returns the trace context of the last round that had one.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_deref()
    }

    /// Keeps the trace context of this round for the next.
    pub fn set_trace(&mut self, trace: TraceContext) {
        self.trace = Some(Box::new(trace));
    }

    /// Returns the answer at a position if it answers a question with that pin. An answer that has not been checked
    /// yet is checked against the question first, and settled if it fits; later look-ups only read it.
    ///
    /// Marks nothing as used, and removes nothing.
    ///
    /// # Errors
    /// Fails if the answer does not fit.
    pub fn answer(
        &mut self,
        Place(index): Place,
        question: &Question,
        pin: Pin,
    ) -> Result<Option<Settled<'_>>, Unusable> {
        let Some(slot) = self.slots.get(index).filter(|slot| !slot.dead) else { return Ok(None) };
        if !slot.kind.is_pinned() || slot.pin != pin {
            return Ok(None);
        }
        if slot.kind == Kind::Given {
            let settled = Settled::of(question, self.text(&slot.value))?;
            let (kind, value) = (settled.kind(), settled.into_value());
            let start = self.text.len();
            self.text.push_str(&value);
            let slot = &mut self.slots[index];
            (slot.kind, slot.value, slot.fresh) = (kind, start..self.text.len(), true);
            if let Some(changes) = &mut self.changes {
                changes.entries.push(index);
            }
        }
        let slot = &self.slots[index];
        Ok(Settled::from_kind(slot.kind, self.text(&slot.value)))
    }

    /// Removes the entry under a key: an answer that does not fit, or fits another question.
    pub fn forget(&mut self, key: &str) {
        if let Some(index) = self.position(key) {
            self.slots[index].dead = true;
            if let Some(changes) = &mut self.changes {
                changes.removed.push(key.into());
            }
        }
    }

    /// Adds an entry under a key.
    pub fn remember(&mut self, kind: Kind, key: &str, pin: Option<Pin>, value: &str) {
        self.enter(kind, key, pin, value, true);
    }

    fn enter(&mut self, kind: Kind, key: &str, pin: Option<Pin>, value: &str, used: bool) {
        let start = self.text.len();
        self.text.push_str(key);
        let middle = self.text.len();
        self.text.push_str(value);
        let end = self.text.len();
        let pin = pin.unwrap_or(UNPINNED);
        self.slots.push(Slot {
            kind,
            key: start..middle,
            pin,
            value: middle..end,
            dead: false,
            used,
            fresh: true,
        });
        if let Some(changes) = &mut self.changes {
            changes.entries.push(self.slots.len() - 1);
        }
        if kind.is_pinned() {
            self.answers = self.slots.len();
        }
        if self.slots.len() > MANY_ENTRIES {
            self.index_last();
        }
    }

    /// Adds the last entry to the index, and all others if there was none before.
    fn index_last(&mut self) {
        let mut index = self.index.take();
        let first = if index.is_some() { self.slots.len() - 1 } else { 0 };
        let entries = index.get_or_insert_default();
        for (at, slot) in self.slots.iter().enumerate().skip(first).filter(|(_, slot)| !slot.dead) {
            if slot.kind.is_keyed() {
                entries.0.insert(self.text(&slot.key).into(), at);
            }
        }
        self.index = index;
    }

    /// Adds an unchecked answer to the question with this pin.
    pub fn give(&mut self, key: &str, pin: Pin, answer: &str) {
        self.enter(Kind::Given, key, Some(pin), answer, false);
    }

    /// Replaces the author's state. The same state is left as it is.
    pub fn set_state(&mut self, json: &str) {
        if let Some(index) = self.state_slot() {
            if self.text(&self.slots[index].value) == json {
                return;
            }
            self.slots[index].dead = true;
        }
        self.remember(Kind::State, "", None, json);
    }

    /// Returns the author's state.
    pub fn state(&self) -> Option<&str> {
        self.state_slot().map(|index| self.text(&self.slots[index].value))
    }

    /// Returns the key and size of the largest entry, for the error about a token that is too long.
    pub fn largest(&self) -> Option<(&str, usize)> {
        let alive = self.slots.iter().filter(|slot| !slot.dead);
        alive.map(|slot| (self.text(&slot.key), slot.value.len())).max_by_key(|(_, size)| *size)
    }

    /// Merges the client's `inputResponses`, as [`read_responses`](super::read_responses) has read them. Answers to questions
    /// that are not open are ignored (M10, M18); open questions without an answer are closed: the handler asks them again if
    /// it still needs to.
    pub fn merge(&mut self, responses: &[(Cow<'_, str>, &RawValue)]) {
        // A client may send as many as fit into a message: a search through them for each question would take too long.
        let by_key = (responses.len() > FEW_RESPONSES).then(|| {
            // The first of two counts, so the last to be entered.
            responses.iter().rev().map(|(key, answer)| (&**key, *answer)).collect::<HashMap<_, _>>()
        });
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.kind != Kind::Open || slot.dead {
                continue;
            }
            slot.dead = true;
            let (key, pin) = (self.text(&self.slots[index].key), self.slots[index].pin);
            let given = match &by_key {
                Some(by_key) => by_key.get_key_value(key).map(|(key, answer)| (*key, *answer)),
                None => responses.iter().find(|(name, _)| name == key).map(|(key, answer)| (&**key, *answer)),
            };
            if let Some((key, answer)) = given {
                // A worker that was killed may have left an answer.
                if self.peek(key).is_some_and(|found| found.kind == Kind::Given) {
                    self.forget(key);
                }
                self.give(key, pin, answer.get());
            }
            if let Some(changes) = &mut self.changes {
                changes.was_open = true;
            }
        }
    }
}
