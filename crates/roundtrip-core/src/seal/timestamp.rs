//! Points in time, passed in by the caller: this crate has no clock.

use std::time::{Duration, SystemTime};

/// A point in time, in whole seconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates a timestamp from seconds since the beginning of 1970.
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Returns the seconds since the beginning of 1970.
    pub const fn as_unix(self) -> u64 {
        self.0
    }

    /// Returns the timestamp this much later, rounded up to a whole second and saturating at the greatest.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use roundtrip_core::seal::Timestamp;
    ///
    /// let later = Timestamp::from_unix(10).plus(Duration::from_millis(1_001));
    /// assert_eq!(later, Timestamp::from_unix(12));
    /// ```
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        let begun = (duration.subsec_nanos() > 0) as u64;
        Self(self.0.saturating_add(duration.as_secs()).saturating_add(begun))
    }
}

impl From<SystemTime> for Timestamp {
    /// Converts a time; one before 1970 becomes 1970.
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }
}
