//! [`RateStore`]: the contract of stores that count for several instances.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::seal::{BoxFuture, Digest};

/// Store of buckets that instances share. The crate `roundtrip-store` has them for PostgreSQL and Redis;
/// [`testing::stores`](crate::testing::stores) checks one of your own.
///
/// A bucket is one moment: that at which it will be full again. A request moves it on by [`Bucket::interval`], from the present
/// if it has passed; the request is refused, and the moment stays, if it would be more than [`Bucket::room`] from the present.
/// A moment that has passed need not be kept. Use the clock of the store: those of instances differ.
pub trait RateStore: Send + Sync {
    /// Takes a request out of a bucket. Two requests at once must not both get the last place.
    ///
    /// The future is dropped after half a second, or when the caller goes away.
    fn take<'a>(&'a self, bucket: &'a Bucket) -> BoxFuture<'a, Result<Taken, RateStoreError>>;
}

impl<S: RateStore + ?Sized> RateStore for Arc<S> {
    fn take<'a>(&'a self, bucket: &'a Bucket) -> BoxFuture<'a, Result<Taken, RateStoreError>> {
        (**self).take(bucket)
    }
}

/// Bucket of one principal under one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    id: Digest,
    interval: Duration,
    burst: u32,
}

impl Bucket {
    /// Creates a bucket that holds `burst` requests, one of which comes back after each interval.
    pub fn new(id: Digest, interval: Duration, burst: u32) -> Self {
        Self { id, interval: interval.max(Duration::from_nanos(1)), burst: burst.max(1) }
    }

    /// Returns the id, which is the same on every instance. It is a digest, and tells nothing of the principal.
    pub fn id(&self) -> &Digest {
        &self.id
    }

    /// Returns the time after which one more request is let through.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the time after which an empty bucket is full: the longest time that it has to be kept.
    pub fn room(&self) -> Duration {
        self.interval.saturating_mul(self.burst)
    }

    /// Takes a request out of a bucket that is full at a moment. Returns the moment at which it is full then, or the time to
    /// wait. All times are in nanoseconds.
    pub(super) fn take_at(&self, full_at: u64, now: u64) -> Result<u64, u64> {
        let next = full_at.max(now).saturating_add(nanos(self.interval));
        match (next - now).checked_sub(nanos(self.room())) {
            None | Some(0) => Ok(next),
            Some(wait) => Err(wait),
        }
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Result of taking a request out of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The request is let through.
    Passed,
    /// The bucket is empty. The request has cost nothing.
    Refused {
        /// Time after which a request would be let through, if none came before it.
        retry_after: Duration,
    },
}

/// Failure of a store: it is logged, and the call let through, unless the limit is strict.
#[derive(Debug, thiserror::Error)]
#[error("the store of rate limits failed")]
pub struct RateStoreError(#[source] Box<dyn Error + Send + Sync>);

impl RateStoreError {
    /// Wraps the error of a database.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
