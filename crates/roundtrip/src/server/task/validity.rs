//! [`Validity`]: the time for which a lease holds, and [`Poke`], by which it is renewed early.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

/// Point in time, by two clocks: one may stand still while a machine sleeps, the other may be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoClocks {
    monotonic: Instant,
    wall: SystemTime,
}

impl TwoClocks {
    pub(crate) fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// Returns the time that has passed since, by the clock that shows more.
    pub(crate) fn passed(self) -> Duration {
        self.monotonic.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

/// Time for which a lease holds: its length, from before the store was asked for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    sent: TwoClocks,
    length: Duration,
}

impl Validity {
    pub(crate) fn new(sent: TwoClocks, length: Duration) -> Self {
        Self { sent, length }
    }

    /// Returns whether the lease holds now.
    pub(crate) fn holds(self) -> bool {
        self.sent.passed() < self.length
    }
}

/// Has the leases of a process renewed before their time.
#[derive(Debug, Clone, Default)]
pub(super) struct Poke(Arc<Notify>);

impl Poke {
    pub(super) fn poke(&self) {
        self.0.notify_one();
    }

    /// Waits until somebody wants the leases renewed.
    pub(super) async fn poked(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T15: a lease ends when either clock says so.
    #[test]
    fn a_lease_ends_by_either_clock() {
        let (now, hour) = (TwoClocks::now(), Duration::from_secs(3600));
        assert!(Validity::new(now, hour).holds());
        let slept = TwoClocks { wall: now.wall - hour, ..now };
        assert!(!Validity::new(slept, hour).holds(), "the machine was asleep");
        let set_back = TwoClocks { wall: now.wall + hour, ..now };
        assert!(Validity::new(set_back, hour).holds() && !Validity::new(set_back, Duration::ZERO).holds());
    }
}
