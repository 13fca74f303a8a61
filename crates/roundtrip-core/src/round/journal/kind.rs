//! Kinds of journal entries.

/// Kind of a journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A question that was asked and has no answer yet.
    Open = 1,
    /// An answer that has not been checked yet.
    Given = 2,
    /// An accepted answer that fits its question ([`Settled`](crate::round::Settled)). It is never replaced.
    Settled = 3,
    /// The result of a step that succeeded, as JSON.
    Step = 4,
    /// The message of a step that failed, for steps that remember failures.
    Failed = 5,
    /// A checkpoint that has been passed.
    Passed = 6,
    /// State of the handler's author, as JSON. Its key is empty.
    State = 7,
    /// A declined question. It counts as an answer and is never replaced.
    Declined = 8,
    /// A dismissed question. It counts as an answer too.
    Cancelled = 9,
    /// A step that has begun and has no result; the value is its idempotency key.
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

    /// Returns whether the entry is looked up by its key.
    pub(super) const fn is_keyed(self) -> bool {
        !matches!(self, Self::Open | Self::State)
    }

    /// Returns whether such an entry, where a round has made it, is progress of the flow: a settled answer, a step, or state.
    pub(super) const fn is_progress(self) -> bool {
        !matches!(self, Self::Open | Self::Given | Self::Passed)
    }

    /// Returns whether the entry is about a question, and pinned to it.
    pub(super) const fn is_pinned(self) -> bool {
        matches!(self, Self::Open | Self::Given | Self::Settled | Self::Declined | Self::Cancelled)
    }
}
