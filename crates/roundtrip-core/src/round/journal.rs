//! What a flow remembers: answers, results of steps, and what is still open.
//!
//! The journal is kept much as it is sealed: what is text stands together, and beside it is noted where each entry
//! lies. Reading one is a single pass over those notes; writing one copies what is still alive, in as few pieces as
//! there are. So a round costs what its journal weighs, and no more.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;

use super::answer::{Settled, Unusable};
use super::notes::{Reader, note};
use super::pin::{Pin, PinKey};
use super::question::Question;
use super::responses::read_responses;
use crate::wire::ErrorObject;

/// The version of the bytes: rounds and the secret of the pins follow, then for each entry its kind, its pin if it has
/// one, and the lengths of its key and its value; then a zero, and the text of all keys and values in turn.
const FORMAT: u8 = 2;

/// Ends the entries.
const END: u8 = 0;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A question that was asked and has no answer yet.
    Open = 1,
    /// An answer that nobody has looked at yet.
    Given = 2,
    /// An answer that was accepted and fits its question, as [`Settled`] says. It is never replaced.
    Settled = 3,
    /// The result of a step that succeeded, as JSON.
    Step = 4,
    /// The message of a step that failed, where failures are remembered.
    Failed = 5,
    /// A place that has been passed.
    Passed = 6,
    /// State of the author's own, as JSON. Its key is empty.
    State = 7,
    /// A refusal, which is an answer, and never replaced either.
    Declined = 8,
    /// A question that was dismissed, which is an answer too.
    Cancelled = 9,
    /// A step that has begun and has no result: its idempotency key.
    Begun = 10,
}

impl Kind {
    pub(super) const fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            1 => Self::Open,
            2 => Self::Given,
            3 => Self::Settled,
            4 => Self::Step,
            5 => Self::Failed,
            6 => Self::Passed,
            7 => Self::State,
            8 => Self::Declined,
            9 => Self::Cancelled,
            10 => Self::Begun,
            _ => return None,
        })
    }

    /// Whether it is looked up by its key.
    const fn is_keyed(self) -> bool {
        !matches!(self, Self::Open | Self::State)
    }

    /// Whether it is about a question, and pinned to it.
    pub(super) const fn is_pinned(self) -> bool {
        matches!(self, Self::Open | Self::Given | Self::Settled | Self::Declined | Self::Cancelled)
    }
}

/// One entry: where it lies in the text, and how it has been used.
#[derive(Debug, Clone)]
struct Slot {
    kind: Kind,
    key: Range<usize>,
    pin: Pin,
    value: Range<usize>,
    /// It is no longer part of the journal.
    dead: bool,
    /// This run of the handler has come by here.
    used: bool,
}

/// An entry as it was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it is.
    pub kind: Kind,
    /// The question it is pinned to; zeros for what is not an answer.
    pub pin: Pin,
    /// Its value.
    pub value: &'a str,
    /// Whether this run of the handler has used the key before.
    pub used: bool,
    /// Where it was found.
    pub place: Place,
}

/// Does not show the value: it is an answer, or what a step came to.
impl fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("kind", &self.kind)
            .field("value", &format_args!("{} bytes", self.value.len()))
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

/// Where an entry is, until the journal is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(usize);

/// Entries by key. In a box, as few journals have one.
#[derive(Clone, Default)]
struct Index(HashMap<Box<str>, usize>);

/// Bytes that are not a journal of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a journal that this release reads")]
pub struct MalformedJournal;

/// What a flow remembers.
#[derive(Clone)]
pub struct Journal {
    text: String,
    slots: Vec<Slot>,
    /// Where the next look-up is likely to hit: a replay comes by its entries in the order they were made.
    next: usize,
    /// The number of entries up to the last one that is about a question: no answer lies beyond.
    answers: usize,
    /// Where each key was entered last, once there are many.
    index: Option<Box<Index>>,
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

/// The number of `inputResponses` up to which going through them is quicker than a map.
const FEW_RESPONSES: usize = 16;

/// The number of entries up to which going through them is quicker than an index. A handler may take a step for every
/// entry of a list that a client sent.
const MANY_ENTRIES: usize = 64;

/// Room for what one round adds, more often than not.
const ROOM: usize = 192;

/// What an entry takes, or less.
const USUAL_ENTRY: usize = 32;

/// What the note of an entry takes, unless its value is large.
const USUAL_NOTE: usize = 1 + Pin::LEN + 3;

/// The pin of what needs none.
const UNPINNED: Pin = Pin::from_bytes([0; Pin::LEN]);

impl Journal {
    /// The journal of a flow that begins.
    pub const fn new(pins: PinKey) -> Self {
        Self { text: String::new(), slots: Vec::new(), next: 0, answers: 0, index: None, rounds: 0, pins }
    }

    /// Reads a journal from a state that was opened.
    ///
    /// # Errors
    /// When the bytes are not a journal of this format.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedJournal> {
        let mut reader = Reader(bytes);
        if reader.byte()? != FORMAT {
            return Err(MalformedJournal);
        }
        let rounds = reader.byte()?;
        let pins = PinKey::new(reader.chunk()?);
        let mut slots = Vec::with_capacity(bytes.len() / USUAL_ENTRY + 1);
        let (mut at, mut answers): (usize, usize) = (0, 0);
        loop {
            let (kind, pin, key, value) = match reader.short() {
                Some(short) => short,
                None => {
                    let tag = reader.byte()?;
                    if tag == END {
                        break;
                    }
                    let kind = Kind::from_tag(tag).ok_or(MalformedJournal)?;
                    let pin = if kind.is_pinned() { Pin::from_bytes(reader.chunk()?) } else { UNPINNED };
                    (kind, pin, reader.size()?, reader.size()?)
                }
            };
            let middle = at.checked_add(key).ok_or(MalformedJournal)?;
            let end = middle.checked_add(value).ok_or(MalformedJournal)?;
            slots.push(Slot { kind, key: at..middle, pin, value: middle..end, dead: false, used: false });
            if kind.is_pinned() {
                answers = slots.len();
            }
            at = end;
        }
        let read = std::str::from_utf8(reader.0).map_err(|_| MalformedJournal)?;
        let whole =
            |slot: &Slot| read.is_char_boundary(slot.key.end) && read.is_char_boundary(slot.value.end);
        if at != read.len() || !(read.is_ascii() || slots.iter().all(whole)) {
            return Err(MalformedJournal);
        }
        // What the client answers now goes to the end.
        let mut text = String::with_capacity(read.len() + ROOM);
        text.push_str(read);
        Ok(Self { text, slots, next: 0, answers, index: None, rounds, pins })
    }

    /// The journal as it is to be sealed, with the questions that are open now.
    pub fn encode<'a, O>(&self, open: O) -> Vec<u8>
    where
        O: IntoIterator<Item = (&'a str, Pin), IntoIter: Clone>,
    {
        let open = open.into_iter();
        let alive = || self.slots.iter().filter(|slot| !slot.dead);
        let mut out = Vec::with_capacity(self.text.len() + (self.slots.len() + 1) * USUAL_NOTE + ROOM);
        out.extend_from_slice(&[FORMAT, self.rounds]);
        out.extend_from_slice(self.pins.as_bytes());
        for slot in alive() {
            note(&mut out, slot.kind, slot.pin, [slot.key.len(), slot.value.len()]);
        }
        for (key, pin) in open.clone() {
            note(&mut out, Kind::Open, pin, [key.len(), 0]);
        }
        out.push(END);
        // Pieces that lie side by side are copied as one.
        let mut piece = 0..0;
        for range in alive().flat_map(|slot| [&slot.key, &slot.value]) {
            if range.start != piece.end {
                out.extend_from_slice(self.text(&piece).as_bytes());
                piece.start = range.start;
            }
            piece.end = range.end;
        }
        out.extend_from_slice(self.text(&piece).as_bytes());
        open.for_each(|(key, _)| out.extend_from_slice(key.as_bytes()));
        out
    }

    fn text(&self, range: &Range<usize>) -> &str {
        // Between whole characters, as was checked when it was read.
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
        self.slots[..self.answers]
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
        if kind.is_pinned() {
            self.answers = self.slots.len();
        }
        if self.slots.len() > MANY_ENTRIES {
            self.index_last();
        }
    }

    /// Notes where the last entry is, and where all others are if that was not needed before.
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
        // A client may send as many as fit into a message: then they are looked up, and not gone through for each question.
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
                self.give(key, pin, answer.get());
            }
        }
    }
}
