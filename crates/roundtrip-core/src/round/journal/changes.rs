//! A journal in pieces: each piece has what has changed since the one before it, so that a step costs its own bytes and not those
//! of the whole journal.

use std::collections::HashMap;

use super::encoding::{FORMAT, write_size};
use super::entry::Slot;
use super::{Journal, Kind};
use crate::round::Pin;
use crate::round::decode::{MalformedJournal, Reader};

/// First byte of a piece. The keys of entries that were removed follow, each behind its length, a byte that says whether the round
/// has ended, and a journal of the entries that are new. A whole journal is a piece, too.
const PIECE: u8 = 0x80;

/// Changes of a journal since they were last taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Positions of entries that are new or settled.
    pub(super) entries: Vec<usize>,
    /// Keys of entries that were removed.
    pub(super) removed: Vec<Box<str>>,
}

impl Journal {
    /// Encodes the whole journal as its first piece, and notes changes from here on.
    pub fn first_piece(&mut self) -> Vec<u8> {
        self.changes = Some(Box::default());
        self.encode(std::iter::empty())
    }

    /// Encodes what has changed since the last piece. `None` if nothing has.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        let changes = self.changes.as_mut().map(std::mem::take)?;
        let changed = !changes.entries.is_empty() || !changes.removed.is_empty();
        changed.then(|| self.piece(&changes, false, std::iter::empty()))
    }

    /// Encodes what has changed since the last piece at the end of a round, with the questions that are open now.
    pub fn last_piece<'a>(&mut self, open: impl Iterator<Item = (&'a str, Pin)> + Clone) -> Vec<u8> {
        let changes = self.changes.as_mut().map(std::mem::take).unwrap_or_default();
        self.piece(&changes, true, open)
    }

    fn piece<'a>(
        &self,
        changes: &Changes,
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
        for piece in pieces {
            let (removed, ends, part) = decode_piece(piece)?;
            joined.add(&removed, ends, &part);
        }
        joined.journal.changes = Some(Box::default());
        Ok(Some(joined.journal))
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
            Kind::Open => drop(self.open.insert(key.into(), journal.slots.len())),
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
