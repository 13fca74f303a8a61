//! Durable stores of Roundtrip: tasks on SQLite and PostgreSQL, the ledger on these and on Redis, rate limits on PostgreSQL and Redis.
//!
//! A [ledger](roundtrip::server::ledger) keeps every round's reply, so that a repeated round gets it again and runs nothing.
//! A store of [tasks](roundtrip::task) keeps them between two runs of their handlers. `MemoryLedger` and `MemoryTasks` are for a
//! single process; these are for processes that share a file, and for fleets:
//!
//! | type | feature | keeps | for |
//! |---|---|---|---|
//! | `Sqlite` | `sqlite`, on by default | ledger and tasks | the processes of one machine: one file, no server to start |
//! | `Postgres` | `postgres` | ledger, tasks and [rate limits](roundtrip::RateLimit) | a fleet that has PostgreSQL |
//! | `Redis` | `redis` | ledger and rate limits | a fleet that has Redis and can lose the last writes in a failover |
//!
#![cfg_attr(feature = "sqlite", doc = "```no_run")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use roundtrip::{Keyring, Server, Tasks};
//! use roundtrip_store::Sqlite;
//!
//! let store = Sqlite::open("shop.db").sealed_by(Keyring::from_env("STORE_KEYS")?).await?;
//! let server = Server::new("shop", "1.0.0").tasks(Tasks::new(store.clone())).ledger(store);
//! # Ok(()) }
//! ```
//!
//! All of them make the same promises, which `roundtrip::testing::stores` checks:
//!
//! - A claim is one exchange with the database before a run, and a record one after it. Rounds that take longer renew their
//!   claims, all of an instance in one exchange.
//! - A claim has a lease ([`Opening::lease`]): when a process dies, another runs its round once the lease has expired.
//! - A task is due for one worker at a time. A change of it counts if it is to the version that is stored.
//! - Replies and tasks are sealed at rest by the ring of [`Opening::sealed_by`].
//! - Records and tasks that are over are removed in small batches, found by an index.
//! - A database that restarts is waited for, up to 10 seconds. A reply that could not be recorded by then, or was refused, is
//!   recorded later, as long as its process lives.

mod error;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod ledger;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod moment;
mod opening;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod rates;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod retry;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tasks;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod to_end;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod vault;

pub use error::StoreError;
pub use opening::{Opening, Usage};
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "redis")]
pub use redis::Redis;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;

/// Doc tests of the chapter of the manual.
#[cfg(all(doctest, feature = "sqlite", feature = "postgres", feature = "redis"))]
mod copied {
    #[doc = include_str!("../../../docs/manual/stores.md")]
    struct Stores;
}

/// Doc tests of pages that need SQLite alone.
#[cfg(all(doctest, feature = "sqlite"))]
mod copied_with_sqlite {
    #[doc = include_str!("../../../docs/manual/cookbook/long-jobs.md")]
    struct LongJobs;
}
