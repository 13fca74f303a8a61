//! Journal entries: as stored, and as returned by a look-up.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::Kind;
use crate::round::Pin;

/// Pin of an entry that is not about a question.
pub(super) const UNPINNED: Pin = Pin::from_bytes([0; Pin::LEN]);

/// A stored entry: its ranges in the text, and its use in this run.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) key: Range<usize>,
    pub(super) pin: Pin,
    pub(super) value: Range<usize>,
    /// Removed from the journal.
    pub(super) dead: bool,
    /// Looked up in this run of the handler.
    pub(super) used: bool,
    /// Made or settled in this round.
    pub(super) fresh: bool,
}

/// Positions of entries by key.
#[derive(Clone, Default)]
pub(super) struct Index(pub(super) HashMap<Box<str>, usize>);

/// A journal entry, as a look-up returns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The pin of its question; zeros for other entries.
    pub pin: Pin,
    /// Its value.
    pub value: &'a str,
    /// True if this run of the handler has used the key before.
    pub used: bool,
    /// Its position.
    pub place: Place,
}

impl Found<'_> {
    /// Returns whether it is an answer to a question.
    pub fn is_answer(&self) -> bool {
        matches!(self.kind, Kind::Given | Kind::Settled | Kind::Declined | Kind::Cancelled)
    }
}

/// Hides the value, which is an answer or the result of a step.
impl fmt::Debug for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("kind", &self.kind)
            .field("value", &format_args!("{} bytes", self.value.len()))
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

/// Position of an entry, valid until the journal is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(pub(super) usize);
