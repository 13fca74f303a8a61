//! Kinds of journal entries.

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

    /// Whether it is about a question, and pinned to it.
    pub(super) const fn is_pinned(self) -> bool {
        matches!(self, Self::Open | Self::Given | Self::Settled | Self::Declined | Self::Cancelled)
    }
}
