//! What a flow remembers: answers, results of steps, and what is still open.
//!
//! The journal is kept in the form it is sealed in. Reading one is a single pass that notes where each entry lies;
//! writing one is a copy of what is still alive. So a round costs what its journal weighs, and no more.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::seal::Digest;
use crate::wire::ErrorObject;

/// The version of the bytes.
const FORMAT: u8 = 1;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A question that was asked and has no answer yet.
    Open = 1,
    /// An answer that nobody has looked at yet.
    Given = 2,
    /// An answer that fits its question. It is never replaced.
    Settled = 3,
    /// The result of a step that succeeded, as JSON.
    Step = 4,
    /// The message of a step that failed, where failures are remembered.
    Failed = 5,
    /// A place that has been passed.
    Passed = 6,
    /// State of the author's own, as JSON. Its key is empty.
    State = 7,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Open, Self::Given, Self::Settled, Self::Step, Self::Failed, Self::Passed, Self::State];
}

/// One entry: where it lies in the bytes, and how it has been used.
#[derive(Debug, Clone)]
struct Slot {
    kind: Kind,
    key: Range<usize>,
    pin: Digest,
    value: Range<usize>,
    /// It is no longer part of the journal.
    dead: bool,
    /// This run of the handler has come by here.
    used: bool,
}

/// An entry as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it is.
    pub kind: Kind,
    /// The question it is pinned to; zeros for what is not an answer.
    pub pin: Digest,
    /// Its value.
    pub value: &'a str,
    /// Whether this run of the handler has used the key before.
    pub used: bool,
}

/// Bytes that are not a journal of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a journal that this release reads")]
pub struct MalformedJournal;

/// What a flow remembers.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Where the next look-up is likely to hit: a replay comes by its entries in the order they were made.
    next: usize,
    /// How many rounds have asked.
    rounds: u8,
}

/// The pin of what needs none.
const UNPINNED: Digest = Digest::from_bytes([0; Digest::LEN]);

impl Journal {
    /// Reads a journal from a state that was opened.
    ///
    /// # Errors
    /// When the bytes are not a journal of this format.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, MalformedJournal> {
        let mut reader = Reader { bytes: &bytes, at: 0 };
        if reader.byte()? != FORMAT {
            return Err(MalformedJournal);
        }
        let rounds = reader.byte()?;
        let mut slots = Vec::new();
        while reader.at < bytes.len() {
            let tag = reader.byte()?;
            let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == tag).ok_or(MalformedJournal)?;
            let pin = Digest::from_bytes(reader.take(Digest::LEN)?.try_into().map_err(|_| MalformedJournal)?);
            let key = reader.text()?;
            let value = reader.text()?;
            slots.push(Slot { kind, key, pin, value, dead: false, used: false });
        }
        Ok(Self { bytes, slots, next: 0, rounds })
    }

    /// The journal as it is to be sealed, with the questions that are open now.
    pub fn encode<'a>(&self, open: impl IntoIterator<Item = (&'a str, Digest)>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 64);
        out.extend_from_slice(&[FORMAT, self.rounds]);
        for slot in self.slots.iter().filter(|slot| !slot.dead) {
            let (key, value) = (&self.bytes[slot.key.clone()], &self.bytes[slot.value.clone()]);
            write(&mut out, slot.kind, slot.pin, key, value);
        }
        for (key, pin) in open {
            write(&mut out, Kind::Open, pin, key.as_bytes(), b"");
        }
        out
    }

    fn text(&self, range: &Range<usize>) -> &str {
        // Checked when it was read, or made from text.
        std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default()
    }

    fn position(&self, key: &str) -> Option<usize> {
        let hit = |index: &usize| {
            let slot = &self.slots[*index];
            let keyed = !matches!(slot.kind, Kind::Open | Kind::State);
            !slot.dead && keyed && &self.bytes[slot.key.clone()] == key.as_bytes()
        };
        (self.next..self.slots.len()).chain(0..self.next).find(hit)
    }

    fn state_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| !slot.dead && slot.kind == Kind::State)
    }

    /// What is remembered under a key. Looking marks it as used.
    pub fn find(&mut self, key: &str) -> Option<Found<'_>> {
        let index = self.position(key)?;
        self.next = (index + 1) % self.slots.len();
        let slot = &mut self.slots[index];
        let used = std::mem::replace(&mut slot.used, true);
        let slot = &self.slots[index];
        Some(Found { kind: slot.kind, pin: slot.pin, value: self.text(&slot.value), used })
    }

    /// What is remembered under a key, without a mark.
    pub fn peek(&self, key: &str) -> Option<Found<'_>> {
        let slot = &self.slots[self.position(key)?];
        Some(Found { kind: slot.kind, pin: slot.pin, value: self.text(&slot.value), used: slot.used })
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

    /// An answer has been looked at and fits.
    pub fn settle(&mut self, key: &str) {
        if let Some(index) = self.position(key) {
            self.slots[index].kind = Kind::Settled;
        }
    }

    /// Forgets what is remembered under a key: an answer that does not fit, or fits another question.
    pub fn forget(&mut self, key: &str) {
        if let Some(index) = self.position(key) {
            self.slots[index].dead = true;
        }
    }

    /// Remembers something under a key.
    pub fn remember(&mut self, kind: Kind, key: &str, pin: Option<Digest>, value: &str) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key.as_bytes());
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value.as_bytes());
        let end = self.bytes.len();
        let pin = pin.unwrap_or(UNPINNED);
        self.slots.push(Slot { kind, key: start..middle, pin, value: middle..end, dead: false, used: true });
    }

    /// Takes an answer to the question with this pin, for the handler to look at.
    pub fn give(&mut self, key: &str, pin: Digest, answer: &str) {
        self.remember(Kind::Given, key, Some(pin), answer);
        if let Some(slot) = self.slots.last_mut() {
            slot.used = false;
        }
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
        let responses = match responses {
            Some(raw) => read_responses(raw)?,
            None => Vec::new(),
        };
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.kind != Kind::Open || slot.dead {
                continue;
            }
            slot.dead = true;
            let (key, pin) = (self.text(&self.slots[index].key).to_owned(), self.slots[index].pin);
            if let Some((_, answer)) = responses.iter().find(|(name, _)| *name == key) {
                self.give(&key, pin, answer.get());
            }
        }
        Ok(())
    }
}

/// Reads a request's answers, without more of a look at what is in them than any result stands.
///
/// # Errors
/// -32602 for what is not a map of results (M11).
pub fn read_responses(raw: &RawValue) -> Result<Vec<(Cow<'_, str>, &RawValue)>, ErrorObject> {
    let wrong =
        |why: &dyn std::fmt::Display| ErrorObject::invalid_params(format!("params.inputResponses: {why}"));
    let map: indexed::Members<'_> = serde_json::from_str(raw.get()).map_err(|error| wrong(&error))?;
    for (key, value) in &map.0 {
        if !value.get().starts_with('{') {
            return Err(wrong(&format!("`{key}` must be a result, which is an object")));
        }
        check_action(key, value)?;
    }
    Ok(map.0)
}

/// Refuses an action that no revision has; everything else about an answer is for its question to say.
fn check_action(key: &str, answer: &RawValue) -> Result<(), ErrorObject> {
    #[derive(Deserialize)]
    struct Peek<'a> {
        #[serde(borrow, default)]
        action: Option<&'a RawValue>,
    }
    let peek: Peek<'_> = serde_json::from_str(answer.get())
        .map_err(|error| ErrorObject::invalid_params(format!("params.inputResponses.{key}: {error}")))?;
    match peek.action.map(RawValue::get) {
        None | Some(r#""accept""# | r#""decline""# | r#""cancel""#) => Ok(()),
        Some(other) => Err(ErrorObject::invalid_params(format!(
            "params.inputResponses.{key}.action: {other} is not accept, decline or cancel"
        ))),
    }
}

/// A JSON object as its members, values unread.
mod indexed {
    use std::borrow::Cow;
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde_json::value::RawValue;

    pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct MembersVisitor;
            impl<'de> Visitor<'de> for MembersVisitor {
                type Value = Members<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a map of results by key")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                    let mut members = Vec::new();
                    while let Some(crate::wire::BorrowedStr(key)) = map.next_key()? {
                        members.push((key, map.next_value()?));
                    }
                    Ok(Members(members))
                }
            }
            deserializer.deserialize_map(MembersVisitor)
        }
    }
}

fn write(out: &mut Vec<u8>, kind: Kind, pin: Digest, key: &[u8], value: &[u8]) {
    out.push(kind as u8);
    out.extend_from_slice(pin.as_bytes());
    for part in [key, value] {
        let mut size = part.len();
        while size >= 0x80 {
            out.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        out.push(size as u8);
        out.extend_from_slice(part);
    }
}

/// Reads entries off the bytes, never past their end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], MalformedJournal> {
        let end = self.at.checked_add(size).ok_or(MalformedJournal)?;
        let taken = self.bytes.get(self.at..end).ok_or(MalformedJournal)?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, MalformedJournal> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn size(&mut self) -> Result<usize, MalformedJournal> {
        let mut size = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            size |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
        }
        Err(MalformedJournal)
    }

    /// Where a text lies.
    fn text(&mut self) -> Result<Range<usize>, MalformedJournal> {
        let size = self.size()?;
        let start = self.at;
        std::str::from_utf8(self.take(size)?).map_err(|_| MalformedJournal)?;
        Ok(start..self.at)
    }
}
