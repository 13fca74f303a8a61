//! [`Validity`]: the time for which a lease holds, and [`Poke`], by which it is renewed early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

/// Time by which a store may let a lease end early.
const ROUNDING: Duration = Duration::from_millis(2);

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

    /// Returns whether the lease holds now. Stores round to milliseconds.
    pub(crate) fn holds(self) -> bool {
        self.sent.passed() + ROUNDING < self.length
    }
}

/// Handle that has the leases of a process renewed before their time, and knows whether the process is taking tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Poke(Arc<Poked>);

#[derive(Debug, Default)]
struct Poked {
    notify: Notify,
    /// Number of requests for tasks whose answers have not been looked through.
    taking: AtomicUsize,
    /// True if a lease waits for that.
    doubted: AtomicBool,
}

impl Poke {
    pub(super) fn poke(&self) {
        self.0.notify.notify_one();
    }

    /// Waits until somebody wants the leases renewed.
    pub(super) async fn poked(&self) {
        self.0.notify.notified().await;
    }

    /// Notes that this process takes tasks, until the guard is dropped: one of them may be its own.
    pub(super) fn taking(&self) -> Taking {
        self.0.taking.fetch_add(1, Ordering::SeqCst);
        Taking(self.clone())
    }

    /// Returns whether a lease that was not renewed may be this process's own under its next fence. The leases are renewed again
    /// once that is known.
    pub(super) fn is_doubtful(&self) -> bool {
        self.0.doubted.store(true, Ordering::SeqCst);
        let is_doubtful = self.0.taking.load(Ordering::SeqCst) > 0;
        if !is_doubtful {
            self.0.doubted.store(false, Ordering::SeqCst);
        }
        is_doubtful
    }
}

/// Guard of a request for tasks.
#[derive(Debug)]
pub(super) struct Taking(Poke);

impl Drop for Taking {
    fn drop(&mut self) {
        self.0.0.taking.fetch_sub(1, Ordering::SeqCst);
        if self.0.0.doubted.swap(false, Ordering::SeqCst) {
            self.0.poke();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T15: a lease that was not renewed is in doubt for as long as this process takes tasks, and is renewed again then.
    #[tokio::test]
    async fn a_lease_is_in_doubt_while_tasks_are_taken() {
        let poke = Poke::default();
        assert!(!poke.is_doubtful());
        let (first, second) = (poke.taking(), poke.taking());
        drop(first);
        assert!(poke.is_doubtful());
        drop(second);
        poke.poked().await;
        assert!(!poke.is_doubtful());
    }

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
