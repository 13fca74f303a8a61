//! Rate limits: requests in a time, for each principal.
//!
//! A stateless protocol has no session to count requests by, so they are counted by principal: callers without one share by
//! their address, where it is known, and as one where it is not. [`RateLimit`] says how many; a [`RateStore`] counts for
//! several instances together.

mod gate;
mod limit;
mod memory;
mod shared;
mod store;

pub use limit::RateLimit;
pub use memory::MemoryRates;
pub use store::{Bucket, RateStore, RateStoreError, Taken};

pub(crate) use gate::{Place, RateGate};
