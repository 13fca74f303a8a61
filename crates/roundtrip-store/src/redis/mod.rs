//! [`Redis`]: a ledger and rate limits in Redis.

mod ledger;
mod link;
mod rates;

use std::ffi::OsString;
use std::sync::Arc;

use self::ledger::RedisRecords;
use self::link::Link;
use self::rates::RedisRates;
use crate::ledger::{SharedLedger, ledger_of};
use crate::opening::{Open, Settings};
use crate::rates::rates_of;
use crate::retry::retry;
use crate::{Opening, StoreError};

/// Version of the layout of keys.
const SCHEMA: i64 = 1;

/// A ledger and [rate limits](roundtrip::RateLimit) in Redis 6 or later, or a server that speaks its protocol, for a fleet. Clones share it.
///
/// Every change is one script, so that it happens whole or not at all, and keys expire by themselves. Redis must not evict: a
/// record that is gone lets its round run again. All keys begin with `{roundtrip}:`, so that a cluster behind a proxy keeps them
/// on one node; redirections of a cluster are not followed.
///
/// A failover to a replica that has not received the last writes loses them: see the chapter on stores in the manual.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use roundtrip::{Keyring, RateLimit, Server};
/// use roundtrip_store::Redis;
///
/// let store = Redis::connect(&std::env::var("REDIS_URL")?).sealed_by(Keyring::from_env("STORE_KEYS")?).await?;
/// let limit = RateLimit::per_minute(100).shared(store.clone());
/// let server = Server::new("shop", "1.0.0").rate_limit(limit).ledger(store);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Redis {
    ledger: SharedLedger<RedisRecords>,
    rates: Arc<RedisRates>,
}

impl Redis {
    /// Connects to a database: `rediss://user:password@host:6379/0`, without TLS `redis://..`.
    ///
    /// # Errors
    /// Awaiting it fails if the address cannot be read, the database cannot be reached within 10 seconds, refuses the
    /// user, or has the keys of a later release.
    pub fn connect(url: &str) -> Opening<Self> {
        Opening::new(url)
    }
}

impl Opening<Redis> {
    /// Sets the first part of all keys, in place of `roundtrip`: services that share a database each have their own.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.settings.prefix = prefix.to_owned();
        self
    }
}

ledger_of!(Redis);
rates_of!(Redis);

impl Open for Redis {
    async fn open(url: OsString, settings: Settings) -> Result<Self, StoreError> {
        settings.check("redis")?;
        let url = url.to_str().ok_or(StoreError::Address("redis"))?;
        let link = Arc::new(Link::new(url)?);
        let schema_key = format!("{{{}}}:schema", settings.prefix);
        let found = retry(|| link.schema(&schema_key, SCHEMA)).await?;
        if found > SCHEMA {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
        link.warn_of_eviction().await;
        let rates = Arc::new(RedisRates::new(Arc::clone(&link), &settings.prefix));
        let records = RedisRecords::new(link, settings.clone());
        Ok(Self { ledger: SharedLedger::start(records, &settings)?, rates })
    }
}
