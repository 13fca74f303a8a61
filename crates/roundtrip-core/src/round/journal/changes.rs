//! A journal in pieces: each piece has what has changed since the one before it, so that a step costs its own bytes and not those
//! of the whole journal.

use std::collections::HashMap;

use super::encoding::{FORMAT, write_size};
use super::entry::Slot;
use super::{Journal, Kind};
use crate::round::decode::{MalformedJournal, Reader};
use crate::round::{Pin, PinKey};

/// First byte of a piece. The keys of entries that were removed follow, each behind its length, a byte that says whether the round
/// has ended, and a journal of the entries that are new. A whole journal is a piece, too.
const PIECE: u8 = 0x80;

/// Number of pieces after which a journal is written as a whole again.
const MOST_PIECES: usize = 256;

/// Bytes of pieces up to which nobody looks how many of them are still needed.
const SLACK: usize = 64 * 1024;

/// Bytes of pieces from which a round ends with the journal as a whole, so that its size is known.
const LARGE: usize = 2 * 1024 * 1024;

/// Changes of a journal since they were last taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Positions of entries that are new or settled.
    pub(super) entries: Vec<usize>,
    /// Keys of entries that were removed.
    pub(super) removed: Vec<Box<str>>,
    /// True if questions were open when the round began, or are since.
    pub(super) was_open: bool,
    /// Number of the pieces so far, and their bytes.
    stored: (usize, usize),
}

/// Last piece of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastPiece {
    /// Nothing has changed, and nothing is or was open.
    None,
    /// A piece, to be stored behind the others.
    Next(Vec<u8>),
    /// The whole journal, to be stored in place of all pieces: most of what they hold is not needed any more.
    Whole(Vec<u8>),
}

impl Journal {
    /// Creates the empty journal of a new flow that is kept in pieces.
    pub fn in_pieces(pins: PinKey) -> Self {
        Self { changes: Some(Box::default()), ..Self::new(pins) }
    }

    /// Encodes the whole journal as its first piece, and notes changes from here on.
    pub fn first_piece(&mut self) -> Vec<u8> {
        let whole = self.encode(std::iter::empty());
        self.changes = Some(Box::new(Changes { stored: (1, whole.len()), ..Changes::default() }));
        whole
    }

    /// Encodes what has changed since the last piece, with questions that are open from now on though the round continues. `None` if
    /// there is nothing new.
    pub fn next_piece<'a>(&mut self, open: impl Iterator<Item = (&'a str, Pin)> + Clone) -> Option<Vec<u8>> {
        let own = self.changes.as_mut()?;
        let changes = own.take();
        let opens = open.clone().next().is_some();
        own.was_open |= opens;
        if changes.is_none() && !opens {
            return None;
        }
        let piece = self.piece(&changes.unwrap_or_default(), false, open);
        self.count_piece(&piece);
        Some(piece)
    }

    /// Encodes what has changed since the last piece at the end of a round, with the questions that are open now.
    pub fn last_piece<'a>(&mut self, open: impl Iterator<Item = (&'a str, Pin)> + Clone) -> LastPiece {
        let Some(own) = self.changes.as_mut() else { return LastPiece::None };
        let (changes, was_open) = (own.take(), own.was_open);
        let is_many = own.stored.0 > MOST_PIECES;
        if changes.is_none() && !was_open && !is_many && open.clone().next().is_none() {
            return LastPiece::None;
        }
        let piece = self.piece(&changes.unwrap_or_default(), true, open.clone());
        let (number, bytes) = self.count_piece(&piece);
        let is_much = number > MOST_PIECES || bytes > LARGE;
        if is_much || bytes > SLACK {
            let whole = self.encode(open);
            if is_much || bytes - SLACK > 2 * whole.len() {
                self.changes = Some(Box::new(Changes { stored: (1, whole.len()), ..Changes::default() }));
                return LastPiece::Whole(whole);
            }
        }
        LastPiece::Next(piece)
    }

    /// Returns the bytes of the journal as a whole.
    pub fn size(&self) -> usize {
        self.encode(std::iter::empty()).len()
    }

    /// Counts a piece, and returns the number of all and their bytes.
    fn count_piece(&mut self, piece: &[u8]) -> (usize, usize) {
        self.changes.as_mut().map_or((0, 0), |changes| {
            let (number, bytes) = &mut changes.stored;
            (*number, *bytes) = (*number + 1, *bytes + piece.len());
            changes.stored
        })
    }

    fn piece<'a>(
        &self,
        changes: &Taken,
        ends: bool,
        open: impl Iterator<Item = (&'a str, Pin)> + Clone,
    ) -> Vec<u8> {
        let mut out = vec![PIECE];
        // An entry that was replaced is found under its key.
        for key in changes.removed.iter().filter(|key| self.position(key).is_none()) {
            write_size(&mut out, key.len() + 1);
            out.extend_from_slice(key.as_bytes());
        }
        out.extend_from_slice(&[0, u8::from(ends)]);
        let mut entries = changes.entries.clone();
        entries.sort_unstable();
        entries.dedup();
        let entries = entries.iter().map(|index| &self.slots[*index]).filter(|slot| !slot.dead);
        self.encode_entries(entries, open, &mut out);
        out
    }

    /// Decodes a journal from its pieces, and notes changes from here on. `None` if there are none.
    ///
    /// # Errors
    /// Fails if a piece is not of this format.
    pub fn from_pieces<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Self>, MalformedJournal> {
        let mut pieces = pieces.into_iter();
        let Some(first) = pieces.next() else { return Ok(None) };
        let (_, _, journal) = decode_piece(first)?;
        let mut joined = Joined { open: open_entries(&journal), journal };
        let mut stored = (1, first.len());
        for piece in pieces {
            let (removed, ends, part) = decode_piece(piece)?;
            joined.add(&removed, ends, &part);
            stored = (stored.0 + 1, stored.1 + piece.len());
        }
        joined.journal.changes = Some(Box::new(Changes { stored, ..Changes::default() }));
        Ok(Some(joined.journal))
    }
}

/// Changes that a piece is made of.
#[derive(Debug, Default)]
struct Taken {
    entries: Vec<usize>,
    removed: Vec<Box<str>>,
}

impl Changes {
    /// Takes the changes, if there are any.
    fn take(&mut self) -> Option<Taken> {
        let (entries, removed) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.removed));
        let is_empty = entries.is_empty() && removed.is_empty();
        (!is_empty).then_some(Taken { entries, removed })
    }
}

/// A journal to which pieces are added.
struct Joined {
    journal: Journal,
    /// Positions of the open questions, by key.
    open: HashMap<Box<str>, usize>,
}

impl Joined {
    fn add(&mut self, removed: &[&str], ends: bool, part: &Journal) {
        if ends {
            self.open.drain().for_each(|(_, index)| self.journal.slots[index].dead = true);
        }
        for key in removed {
            self.journal.forget(key);
        }
        for slot in &part.slots {
            self.enter(slot.kind, part.text(&slot.key), slot.pin, part.text(&slot.value));
        }
        let journal = &mut self.journal;
        (journal.rounds, journal.stalled) = (part.rounds, part.stalled);
        journal.sent = part.sent.clone();
        journal.trace = part.trace.clone();
    }

    fn enter(&mut self, kind: Kind, key: &str, pin: Pin, value: &str) {
        let journal = &mut self.journal;
        match kind {
            Kind::State => {
                if let Some(index) = journal.state_slot() {
                    journal.slots[index].dead = true;
                }
            }
            // A question that is asked again takes the place of the first.
            Kind::Open => {
                if let Some(index) = self.open.insert(key.into(), journal.slots.len()) {
                    journal.slots[index].dead = true;
                }
            }
            _ => {
                journal.forget(key);
                // A question that has an answer is not open any more.
                if let Some(index) = self.open.remove(key) {
                    journal.slots[index].dead = true;
                }
            }
        }
        journal.enter(kind, key, Some(pin), value, false);
        if let Some(Slot { fresh, .. }) = journal.slots.last_mut() {
            *fresh = false;
        }
    }
}

fn open_entries(journal: &Journal) -> HashMap<Box<str>, usize> {
    let open = journal.slots.iter().enumerate().filter(|(_, slot)| slot.kind == Kind::Open);
    open.map(|(index, slot)| (journal.text(&slot.key).into(), index)).collect()
}

/// Decodes a piece: the keys that it removes, whether its round has ended, and its entries.
fn decode_piece(piece: &[u8]) -> Result<(Vec<&str>, bool, Journal), MalformedJournal> {
    if piece.first() == Some(&FORMAT) {
        return Ok((Vec::new(), true, Journal::decode(piece)?));
    }
    let mut reader = Reader(piece);
    if reader.byte()? != PIECE {
        return Err(MalformedJournal);
    }
    let mut removed = Vec::new();
    while let Some(length) = reader.size()?.checked_sub(1) {
        let (key, rest) = reader.0.split_at_checked(length).ok_or(MalformedJournal)?;
        removed.push(std::str::from_utf8(key).map_err(|_| MalformedJournal)?);
        reader.0 = rest;
    }
    let ends = reader.byte()? != 0;
    Ok((removed, ends, Journal::decode(reader.0)?))
}
