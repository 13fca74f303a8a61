//! [`Moment`]: a point in time by two clocks.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A point in time, by the wall clock and by the monotonic clock. The monotonic one may stand still while a machine is suspended,
/// the wall clock may be set back: the time that has passed is the larger of both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    wall: SystemTime,
    steady: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { wall: SystemTime::now(), steady: Instant::now() }
    }

    /// Returns the time that has passed since.
    pub(crate) fn elapsed(&self) -> Duration {
        self.wall.elapsed().unwrap_or_default().max(self.steady.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M6: a suspended machine has lost its leases though its monotonic clock stood still, and a wall clock that is set back
    /// makes none longer.
    #[tokio::test(start_paused = true)]
    async fn the_clock_that_saw_more_time_counts() {
        let hour = Duration::from_secs(3_600);
        let now = Moment::now();
        assert!(now.elapsed() < hour);
        let suspended = Moment { wall: now.wall - hour, ..now };
        assert!(suspended.elapsed() >= hour);
        let set_back = Moment { wall: now.wall + hour, ..now };
        assert_eq!(set_back.elapsed(), Duration::ZERO);
        tokio::time::advance(hour).await;
        assert!(now.elapsed() >= hour && set_back.elapsed() >= hour);
    }
}
