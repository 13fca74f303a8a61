//! What a flow remembers: answers, results of steps, and what is still open.
//!
//! The journal is kept much as it is sealed: what is text stands together, and beside it is noted where each entry
//! lies. Reading one is a single pass over those notes; writing one copies what is still alive, in as few pieces as
//! there are. So a round costs what its journal weighs, and no more.

mod encoding;
mod entry;
mod kind;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;

use super::answer::{Settled, Unusable};
use super::pin::{Pin, PinKey};
use super::question::Question;
use super::responses::read_responses;
use crate::wire::ErrorObject;
use entry::{Slot, UNPINNED};

pub use encoding::MalformedJournal;
pub use entry::{Found, Place};
pub use kind::Kind;

/// What a flow remembers.
#[derive(Clone)]
pub struct Journal {
    text: String,
    slots: Vec<Slot>,
    /// Where the next look-up is likely to hit: a replay comes by its entries in the order they were made.
    next: usize,
    /// How many rounds have asked.
    rounds: u8,
    /// The secret of its pins.
    pins: PinKey,
}

/// Shows what there is, by kind and key, and nothing of what it says: the seal is there to hide that.
impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.slots.iter().filter(|slot| !slot.dead);
        let entries = entries.map(|slot| (slot.kind, self.text.get(slot.key.clone()).unwrap_or_default()));
        f.debug_struct("Journal")
            .field("rounds", &self.rounds)
            .field("entries", &entries.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// The journal of a flow that begins.
    pub const fn new(pins: PinKey) -> Self {
        Self { text: String::new(), slots: Vec::new(), next: 0, rounds: 0, pins }
    }

    fn text(&self, range: &Range<usize>) -> &str {
        // Between whole characters, as was checked when it was read.
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn is_at(&self, index: usize, key: &str) -> bool {
        let slot = &self.slots[index];
        let keyed = !matches!(slot.kind, Kind::Open | Kind::State);
        !slot.dead && keyed && self.text.as_bytes().get(slot.key.clone()) == Some(key.as_bytes())
    }

    fn position(&self, key: &str) -> Option<usize> {
        (self.next..self.slots.len()).chain(0..self.next).find(|index| self.is_at(*index, key))
    }

    /// Where the pins of a question come from.
    pub fn pin(&self, question: &Question) -> Pin {
        question.pin(&self.pins)
    }

    fn state_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| !slot.dead && slot.kind == Kind::State)
    }

    /// What is remembered under a key. Looking marks it as used.
    pub fn find(&mut self, key: &str) -> Option<Found<'_>> {
        let index = self.position(key)?;
        self.next = index + 1;
        let used = std::mem::replace(&mut self.slots[index].used, true);
        Some(Found { used, ..self.found(index) })
    }

    /// What is remembered under a key, without a mark.
    pub fn peek(&self, key: &str) -> Option<Found<'_>> {
        self.position(key).map(|index| self.found(index))
    }

    fn found(&self, index: usize) -> Found<'_> {
        let Slot { kind, pin, value, used, .. } = &self.slots[index];
        let value = self.text(value);
        Found { kind: *kind, pin: *pin, value, used: *used, place: Place(index) }
    }

    /// The answers that have been settled, each with its key, its kind and its value.
    pub fn settled(&self) -> impl Iterator<Item = (&str, Kind, &str)> {
        let settled = |slot: &&Slot| {
            !slot.dead && matches!(slot.kind, Kind::Settled | Kind::Declined | Kind::Cancelled)
        };
        self.slots
            .iter()
            .filter(settled)
            .map(|slot| (self.text(&slot.key), slot.kind, self.text(&slot.value)))
    }

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.dead)
    }

    /// Counts a round that asks, and says how many there have been.
    pub fn count_round(&mut self) -> u32 {
        self.rounds = self.rounds.saturating_add(1);
        self.rounds.into()
    }

    /// The answer that was found in a place, if it is one to a question with that pin. Where nobody has looked at it yet it is held against
    /// the question, and settled if it fits; from then on it is only read.
    ///
    /// Leaves no mark, and forgets nothing.
    ///
    /// # Errors
    /// When the answer does not fit.
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
            (slot.kind, slot.value) = (kind, start..self.text.len());
        }
        let slot = &self.slots[index];
        Ok(Settled::from_kind(slot.kind, self.text(&slot.value)))
    }

    /// Forgets what is remembered under a key: an answer that does not fit, or fits another question.
    pub fn forget(&mut self, key: &str) {
        if let Some(index) = self.position(key) {
            self.slots[index].dead = true;
        }
    }

    /// Remembers something under a key.
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
        self.slots.push(Slot { kind, key: start..middle, pin, value: middle..end, dead: false, used });
    }

    /// Takes an answer to the question with this pin, for the handler to look at.
    pub fn give(&mut self, key: &str, pin: Pin, answer: &str) {
        self.enter(Kind::Given, key, Some(pin), answer, false);
    }

    /// Replaces the state of the author's own.
    pub fn set_state(&mut self, json: &str) {
        if let Some(index) = self.state_slot() {
            self.slots[index].dead = true;
        }
        self.remember(Kind::State, "", None, json);
    }

    /// The state of the author's own.
    pub fn state(&self) -> Option<&str> {
        self.state_slot().map(|index| self.text(&self.slots[index].value))
    }

    /// The entry that takes the most room, for whoever has to make it smaller.
    pub fn largest(&self) -> Option<(&str, usize)> {
        let alive = self.slots.iter().filter(|slot| !slot.dead);
        alive.map(|slot| (self.text(&slot.key), slot.value.len())).max_by_key(|(_, size)| *size)
    }

    /// Takes in the client's answers. Those to questions that are not open are passed over (M10, M18); questions that
    /// stay unanswered are no longer open: the handler asks them again, if it still wants to know.
    ///
    /// # Errors
    /// -32602 for what is not a map of results (M11).
    pub fn merge(&mut self, responses: Option<&RawValue>) -> Result<(), ErrorObject> {
        let responses = responses.map(read_responses).transpose()?.unwrap_or_default();
        self.take_in(&responses);
        Ok(())
    }

    /// The same for answers that [`read_responses`] has read.
    pub fn take_in(&mut self, responses: &[(Cow<'_, str>, &RawValue)]) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.kind != Kind::Open || slot.dead {
                continue;
            }
            slot.dead = true;
            let (key, pin) = (self.text(&self.slots[index].key), self.slots[index].pin);
            if let Some((key, answer)) = responses.iter().find(|(name, _)| name == key) {
                self.give(key, pin, answer.get());
            }
        }
    }
}
