//! [`Held`]: the state of a task that this process works on.

use std::time::Duration;

use roundtrip_core::round::LastPiece;
use roundtrip_core::wire::{CallTool, ErrorObject, Method as _, Raw};

use crate::server::delivery::pause_after;
use crate::server::outcome::given_up;
use crate::task::{Chunk, Due, Ended, Millis, Record};

/// Largest journal, in bytes.
const LARGEST_JOURNAL: usize = 4 * 1024 * 1024;
/// Number of times as large that its pieces may be within one run.
const MOST_PIECES: usize = 4;

/// Reason why a worker stops before its handler has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another worker has the task, or it is gone: nothing may be written any more.
    Lost,
    /// A client has cancelled it.
    Cancelled,
    /// It has been given back, for another worker to continue.
    Released,
    /// Its time to live is over.
    Expired,
    /// Its handler cannot read what another version has stored.
    Misfit,
}

/// The task as it was last read or written.
pub(super) struct Held {
    pub(super) version: u64,
    pub(super) record: Record,
    /// Pieces of the journal that are not stored yet.
    pub(super) journal: Vec<Chunk>,
    /// Number of the next piece.
    next: u32,
    /// Bytes of its pieces.
    pub(super) bytes: usize,
    /// True if the pieces that are not stored yet take the place of all others.
    pub(super) replaces: bool,
    /// Pieces of the result that are not stored yet.
    pub(super) parts: Vec<Chunk>,
}

impl Held {
    /// Creates the state of a task whose journal has these pieces.
    pub(super) fn new(version: u64, record: Record, journal: impl ExactSizeIterator<Item = usize>) -> Self {
        let next = u32::try_from(journal.len()).unwrap_or(u32::MAX);
        let (bytes, parts) = (journal.sum(), Vec::new());
        Self { version, record, journal: Vec::new(), next, bytes, replaces: false, parts }
    }

    pub(super) fn add_piece(&mut self, piece: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(piece.len());
        self.journal.push(Chunk { number: self.next, bytes: piece.into() });
        self.next = self.next.saturating_add(1);
    }

    /// Takes the last piece of a round.
    pub(super) fn add_last(&mut self, last: LastPiece) {
        match last {
            LastPiece::None => {}
            LastPiece::Next(piece) => self.add_piece(piece),
            LastPiece::Whole(journal) => {
                self.journal.clear();
                (self.next, self.bytes, self.replaces) = (0, 0, true);
                self.add_piece(journal);
            }
        }
    }

    /// Notes that what was not stored yet is.
    pub(super) fn is_stored(&mut self) {
        self.journal.clear();
        self.parts.clear();
        self.replaces = false;
    }

    /// Returns the error of a task that remembers too much. Its pieces may hold more than it remembers: `whole` is its size as a
    /// whole.
    pub(super) fn overflow(&self, whole: impl FnOnce() -> usize) -> Option<ErrorObject> {
        let is_large = self.bytes > LARGEST_JOURNAL;
        let size = if is_large { whole() } else { self.bytes };
        (size > LARGEST_JOURNAL || self.bytes > MOST_PIECES * LARGEST_JOURNAL).then(|| {
            ErrorObject::internal(format!(
                "the task has to remember {size} bytes, and may remember {LARGEST_JOURNAL}: keep large values elsewhere"
            ))
        })
    }
}

/// Owner of a task, once it has been changed.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// This worker keeps it.
    Held,
    /// None has it, and it can be taken at once: its handler was stopped in the middle. A cancelled task is kept, and ended here.
    GivenBack,
    /// None has it, and it can be taken if there is something to do: after a pause if it waits for something outside.
    Released,
}

impl Next {
    /// Returns the time at which the task is due for a worker.
    pub(super) fn due(self, record: &Record) -> Due {
        match self {
            Self::GivenBack if !record.is_cancelled() => Due::After(Duration::ZERO),
            Self::Held | Self::GivenBack => Due::AsBefore,
            Self::Released if record.is_runnable() => Due::After(pause_after(record.waits())),
            Self::Released => Due::Never,
        }
    }

    /// Returns the reason why the worker stops once the record is stored, if it does.
    pub(super) fn stop(self, record: &Record) -> Option<Stop> {
        match self {
            _ if record.has_ended() => Some(Stop::Lost),
            _ if record.is_cancelled() => Some(Stop::Cancelled),
            Self::Held => None,
            Self::GivenBack | Self::Released => Some(Stop::Released),
        }
    }
}

/// Ends a task that does not come to an end by itself (M21).
pub(super) fn give_up(record: &mut Record, most: u32, now: Millis) {
    let Some(why) = record.diverges(most).filter(|_| !record.has_ended()) else { return };
    let how = match given_up(CallTool::NAME, why) {
        Ok(result) => Raw::of(&result).map(Ended::Completed).ok(),
        Err(error) => Some(Ended::Failed(error)),
    };
    if let Some(how) = how {
        record.end(&how, now);
    }
}
