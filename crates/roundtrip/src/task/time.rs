//! Points in time, to the millisecond.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A point in time, in milliseconds since 1970 (UTC). It displays as ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Returns the present time.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the time this much later, saturating at the greatest.
    #[must_use]
    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Returns the time from `earlier` to this, or zero.
    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = date(days);
        let (seconds, millis) = (rest / 1000, rest % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Returns the date that is so many days after the first of January 1970.
///
/// Years are counted from March, so that the day that some years have and others have not is the last of one; 400 years have
/// always the same number of days.
fn date(days: u64) -> (u64, u64, u64) {
    let since_march_of_year_0 = days + 719_468;
    let (era, day) = (since_march_of_year_0 / 146_097, since_march_of_year_0 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_iso_8601() {
        let shown = |millis: u64| Millis(millis).to_string();
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(shown(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(shown(1_785_196_800_000), "2026-07-28T00:00:00.000Z");
        assert_eq!(shown(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
