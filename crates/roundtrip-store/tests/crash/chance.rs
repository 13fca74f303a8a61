//! Random numbers from a seed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Weyl sequence of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of random numbers: SplitMix64.
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound.
    pub(crate) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).expect("a small number")
    }

    /// Waits for a random time: work takes one, and databases do.
    pub(crate) async fn moment(&self, longest: Duration) {
        let micros = u64::try_from(longest.as_micros()).expect("a short time");
        tokio::time::sleep(Duration::from_micros(self.next() % micros.max(1))).await;
    }
}
