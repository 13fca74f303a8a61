//! Rate limits over any database that several processes share. A database adds its statement.

use std::time::Duration;

use roundtrip::server::rate::{Bucket, Taken};

/// Times of a bucket in microseconds, as databases compute with them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Micros {
    /// Time that one request takes.
    pub(crate) interval: f64,
    /// Time that a full bucket is worth.
    pub(crate) room: f64,
}

impl Micros {
    pub(crate) fn of(bucket: &Bucket) -> Self {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Self { interval: micros(bucket.interval()), room: micros(bucket.room()) }
    }
}

/// Returns the result that a database tells by the microseconds to wait.
pub(crate) fn taken(wait: Option<f64>) -> Taken {
    match wait {
        None => Taken::Passed,
        // Never zero: others have taken the place meanwhile.
        Some(wait) => {
            let wait = Duration::try_from_secs_f64(wait / 1e6).unwrap_or_default();
            Taken::Refused { retry_after: wait.max(Duration::from_millis(1)) }
        }
    }
}

/// Implements `RateStore` for a store that has `rates`. A connection that has broken since it was last used is made anew, and what
/// was asked is asked again: once, as callers are waiting.
macro_rules! rates_of {
    ($store:ident) => {
        impl roundtrip::server::rate::RateStore for $store {
            fn take<'a>(
                &'a self,
                bucket: &'a roundtrip::server::rate::Bucket,
            ) -> roundtrip::seal::BoxFuture<
                'a,
                Result<roundtrip::server::rate::Taken, roundtrip::server::rate::RateStoreError>,
            > {
                Box::pin(async move {
                    let taken = match self.rates.take(bucket).await {
                        Err(error) if error.is_passing() => self.rates.take(bucket).await,
                        taken => taken,
                    };
                    taken.map_err(roundtrip::server::rate::RateStoreError::new)
                })
            }
        }
    };
}

pub(crate) use rates_of;
