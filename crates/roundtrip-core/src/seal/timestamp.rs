//! Moments, as whoever calls us says them: this crate has no clock.

use std::time::{Duration, SystemTime};

/// A moment, in whole seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment this many seconds after the beginning of 1970.
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since the beginning of 1970.
    pub const fn as_unix(self) -> u64 {
        self.0
    }

    /// The moment this much later; the end of time where that would be past it.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_secs()))
    }
}

impl From<SystemTime> for Timestamp {
    /// A clock that stands before 1970 reads as 1970.
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }
}
