//! Rate limits in Redis. Its clock is the database's, and buckets expire when they are full.

use std::sync::{Arc, LazyLock};

use redis::Script;
use roundtrip::server::rate::{Bucket, Taken};

use super::link::Link;
use crate::StoreError;
use crate::rates::{Micros, taken};

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/take.lua")));

/// Script of rate limits.
#[derive(Debug)]
pub(super) struct RedisRates {
    link: Arc<Link>,
    /// Beginning of all keys.
    prefix: String,
}

impl RedisRates {
    pub(super) fn new(link: Arc<Link>, prefix: &str) -> Self {
        Self { link, prefix: format!("{{{prefix}}}:rate:") }
    }

    pub(super) async fn take(&self, bucket: &Bucket) -> Result<Taken, StoreError> {
        let Micros { interval, room } = Micros::of(bucket);
        let mut script = TAKE.prepare_invoke();
        script.key(format!("{}{}", self.prefix, bucket.id()));
        // As text: Rust writes all digits of a number, and no exponent.
        script.arg(interval.to_string()).arg(room.to_string());
        let wait: f64 = self.link.run(&script).await?;
        Ok(taken((wait > 0.0).then_some(wait)))
    }
}
