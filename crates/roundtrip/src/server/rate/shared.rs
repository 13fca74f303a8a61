//! [`SharedStore`]: a store of the author's, asked within a bound, and left alone for a while when it fails.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roundtrip_core::error::BUSY;
use roundtrip_core::wire::ErrorObject;
use tokio::time::{Instant, timeout};

use super::store::{Bucket, RateStore, Taken, nanos};

/// Time for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time for which a store that failed is not asked: calls do not wait for it one after the other.
const REST: Duration = Duration::from_secs(1);
/// Time between two warnings.
const QUIET: Duration = Duration::from_secs(30);

/// Store that instances share.
pub(super) struct SharedStore {
    store: Box<dyn RateStore>,
    begun: Instant,
    /// Moments, in nanoseconds since the beginning, until which the store is not asked, and no warning is logged.
    rests_until: AtomicU64,
    quiet_until: AtomicU64,
}

impl SharedStore {
    pub(super) fn new(store: impl RateStore + 'static) -> Self {
        let (rests_until, quiet_until) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { store: Box::new(store), begun: Instant::now(), rests_until, quiet_until }
    }

    /// Takes a request out of a bucket. `None` if the store cannot tell.
    pub(super) async fn take(&self, bucket: &Bucket) -> Option<Taken> {
        if self.now() < self.rests_until.load(Ordering::Relaxed) {
            return None;
        }
        match timeout(PATIENCE, self.store.take(bucket)).await {
            Ok(Ok(taken)) => return Some(taken),
            Ok(Err(error)) => self.failed(error.source().unwrap_or(&error)),
            Err(late) => self.failed(&late),
        }
        None
    }

    fn failed(&self, why: &dyn Error) {
        let now = self.now();
        self.rests_until.store(now.saturating_add(nanos(REST)), Ordering::Relaxed);
        let next = now.saturating_add(nanos(QUIET));
        // Of calls that fail at once, one warns.
        let warns = |until: u64| (now >= until).then_some(next);
        if self.quiet_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, warns).is_ok() {
            let cause = why.source().map(ToString::to_string);
            tracing::warn!(error = %why, cause, "rate limits cannot be checked: their store fails");
        }
    }

    fn now(&self) -> u64 {
        nanos(self.begun.elapsed())
    }
}

/// Returns the error of a call that a strict limit refuses because its store fails.
pub(super) fn cannot_tell() -> ErrorObject {
    ErrorObject::new(BUSY, "the server is busy: rate limits cannot be checked; try again later")
        .retrying_after(REST)
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedStore")
    }
}
