//! Journal entries: as they lie in the journal, and as they are found.

use std::fmt;
use std::ops::Range;

use super::Kind;
use crate::round::Pin;

/// The pin of what needs none.
pub(super) const UNPINNED: Pin = Pin::from_bytes([0; Pin::LEN]);

/// One entry: where it lies in the text, and how it has been used.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) key: Range<usize>,
    pub(super) pin: Pin,
    pub(super) value: Range<usize>,
    /// It is no longer part of the journal.
    pub(super) dead: bool,
    /// This run of the handler has come by here.
    pub(super) used: bool,
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
pub struct Place(pub(super) usize);
