//! [`MemoryRates`]: buckets in the memory of one process.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip_core::seal::{BoxFuture, Digest};
use tokio::time::Instant;

use super::store::{Bucket, RateStore, RateStoreError, Taken, nanos};
use crate::lock::lock;

/// Parts that are locked by themselves.
const SHARDS: usize = 16;

/// Buckets of one part that are not worth a look at what can go.
const FEW: usize = 64;

/// Buckets in the memory of one process. Clones share them, so several servers of one process can.
///
/// It holds up to 400,000 buckets, in 13 MB, or as many as [`bounded`](Self::bounded) says. Buckets that are full again are
/// dropped: they are as new. If there is no room without that, the buckets that were used longest ago are dropped, at most half
/// of all, and their callers begin with full ones: to gain a burst by it, a caller needs as many principals or addresses as
/// there is room for buckets. No caller is refused for lack of room.
#[derive(Clone)]
pub struct MemoryRates(Arc<Shards>);

struct Shards {
    /// Beginning of time: moments are nanoseconds since then.
    begun: Instant,
    shards: [Mutex<Shard>; SHARDS],
}

impl MemoryRates {
    /// Creates a store without buckets.
    pub fn new() -> Self {
        Self::bounded(400_000)
    }

    /// Creates a store for this many buckets, 32 at least.
    pub fn bounded(buckets: usize) -> Self {
        let most = (buckets / SHARDS / 2).max(1);
        let shards = std::array::from_fn(|_| Mutex::new(Shard::new(most)));
        Self(Arc::new(Shards { begun: Instant::now(), shards }))
    }

    /// Returns the number of buckets it holds.
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Returns whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a request out of a bucket.
    pub(super) fn take_now(&self, bucket: &Bucket) -> Taken {
        let now = nanos(self.0.begun.elapsed());
        // Any byte of a digest will do.
        let shard = usize::from(bucket.id().as_bytes()[0]) % SHARDS;
        match lock(&self.0.shards[shard]).take(bucket, now) {
            Ok(()) => Taken::Passed,
            Err(wait) => Taken::Refused { retry_after: Duration::from_nanos(wait) },
        }
    }
}

impl Default for MemoryRates {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRates").field("len", &self.len()).finish()
    }
}

impl RateStore for MemoryRates {
    fn take<'a>(&'a self, bucket: &'a Bucket) -> BoxFuture<'a, Result<Taken, RateStoreError>> {
        Box::pin(ready(Ok(self.take_now(bucket))))
    }
}

/// Part of the buckets, in two generations: one that is used moves to the young one, and the old one is dropped as a whole. So
/// neither is ever searched.
struct Shard {
    /// Most buckets of a generation.
    most: usize,
    young: Generation,
    old: Generation,
}

#[derive(Default)]
struct Generation {
    /// Moments at which buckets are full again.
    buckets: HashMap<Digest, u64>,
    /// The last of these moments.
    full_at: u64,
}

impl Shard {
    fn new(most: usize) -> Self {
        Self { most, young: Generation::default(), old: Generation::default() }
    }

    fn len(&self) -> usize {
        self.young.buckets.len() + self.old.buckets.len()
    }

    /// Takes a request out of a bucket, or returns the time to wait. Times are in nanoseconds.
    fn take(&mut self, bucket: &Bucket, now: u64) -> Result<(), u64> {
        if let Some(full_at) = self.young.buckets.get_mut(bucket.id()) {
            *full_at = bucket.take_at(*full_at, now)?;
            self.young.full_at = self.young.full_at.max(*full_at);
            return Ok(());
        }
        let full_at = self.old.buckets.remove(bucket.id()).unwrap_or_default();
        let taken = bucket.take_at(full_at, now);
        self.make_room(now);
        self.young.add(*bucket.id(), taken.unwrap_or(full_at));
        taken.map(drop)
    }

    /// Makes the young generation the old one if there are many buckets, and those of the old one are full again or there is no
    /// room for another.
    fn make_room(&mut self, now: u64) {
        let young = self.young.buckets.len();
        if young >= self.most || (young >= FEW && now >= self.old.full_at) {
            self.old = mem::take(&mut self.young);
        }
    }
}

impl Generation {
    fn add(&mut self, id: Digest, full_at: u64) {
        self.buckets.insert(id, full_at);
        self.full_at = self.full_at.max(full_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(number: u32, interval: Duration, burst: u32) -> Bucket {
        let mut id = [0; Digest::LEN];
        // Spread over the parts as a digest would be.
        id[..4].copy_from_slice(&number.to_le_bytes());
        Bucket::new(Digest::from_bytes(id), interval, burst)
    }

    fn passes(rates: &MemoryRates, bucket: &Bucket, requests: usize) -> usize {
        (0..requests).filter(|_| rates.take_now(bucket) == Taken::Passed).count()
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Z3: a bucket holds a burst, and requests come back at the rate, never more than the burst.
    #[tokio::test(start_paused = true)]
    async fn requests_come_back_one_by_one() {
        let (rates, bucket) = (MemoryRates::new(), bucket(1, SECOND, 3));
        assert_eq!(passes(&rates, &bucket, 10), 3);
        assert_eq!(rates.take_now(&bucket), Taken::Refused { retry_after: SECOND });
        tokio::time::advance(Duration::from_millis(2_500)).await;
        assert_eq!(passes(&rates, &bucket, 10), 2);
        let half = Duration::from_millis(500);
        assert_eq!(rates.take_now(&bucket), Taken::Refused { retry_after: half });
        tokio::time::advance(half).await;
        assert_eq!(passes(&rates, &bucket, 10), 1);
        tokio::time::advance(SECOND * 1_000).await;
        assert_eq!(passes(&rates, &bucket, 10), 3);
    }

    /// Z3: a million principals take as much memory as there is room for, and each is let through.
    #[test]
    fn a_million_principals_are_bounded() {
        let rates = MemoryRates::new();
        for number in 0..1_000_000 {
            assert_eq!(rates.take_now(&bucket(number, SECOND * 3_600, 1)), Taken::Passed);
        }
        assert!((200_000..=400_000).contains(&rates.len()), "{rates:?}");
        let room: usize = rates.0.shards.iter().map(|shard| lock(shard).room()).sum();
        // A slot has the id, the moment and a byte of the table's.
        let bytes = room * 8 / 7 * (Digest::LEN + size_of::<u64>() + 1);
        assert!(bytes < 14_000_000, "{bytes}");
        // The last ones are remembered.
        assert_eq!(passes(&rates, &bucket(999_999, SECOND * 3_600, 1), 1), 0);
    }

    impl Shard {
        fn room(&self) -> usize {
            self.young.buckets.capacity() + self.old.buckets.capacity()
        }
    }

    /// Z3: buckets that are full again are dropped long before there is no room, and no other is.
    #[tokio::test(start_paused = true)]
    async fn full_buckets_go_and_others_stay() {
        let rates = MemoryRates::new();
        let slow = bucket(0, SECOND * 1_000, 1);
        assert_eq!(passes(&rates, &slow, 1), 1);
        for number in 1..100_000 {
            rates.take_now(&bucket(number, SECOND, 1));
            if number % 1_000 == 0 {
                tokio::time::advance(SECOND).await;
                assert_eq!(passes(&rates, &slow, 1), 0, "after {number}");
            }
        }
        assert!(rates.len() < 20_000, "{rates:?}");
    }
}
