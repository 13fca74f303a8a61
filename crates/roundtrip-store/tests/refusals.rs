//! Databases that refuse for a moment, between the claim of a round and its record. Some of them refuse everyone, so that these
//! tests have a program of their own.

#![cfg(all(feature = "sqlite", feature = "postgres", feature = "redis"))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[expect(dead_code, reason = "most of it is for tests of rounds")]
#[path = "../../roundtrip/tests/spec/ledger/shop.rs"]
mod shop;
#[expect(dead_code, unused_imports, unused_macros, reason = "most of it is for the tests without refusals")]
#[path = "stores/support/mod.rs"]
mod support;

use std::time::Duration;

use serde_json::json;
use shop::{Shop, call, endpoint, keyed, text};
use sqlx::{AssertSqlSafe, Connection as _};
use support::{PostgresSite, RedisSite, Site, SqliteSite, instance};
use tokio::sync::Mutex;

/// Settings of Redis are those of all tests.
static REDIS: Mutex<()> = Mutex::const_new(());

/// Lease of a claim in most tests, longer than an outage.
const LEASE: Duration = Duration::from_secs(10);

/// Calls a tool with an idempotency key, and again on another instance. In between the database refuses the reply, and is then
/// mended. The tool runs once.
async fn a_refused_reply_is_recorded_later<S: Site>(
    site: &S,
    lease: Duration,
    refuse: impl AsyncFnOnce(),
    mend: impl AsyncFnOnce(),
) {
    let shop = Shop::default();
    let store = site.open(|opening| opening.lease(lease)).await.expect("a store");
    let (one, other) = (endpoint(&shop, &store), endpoint(&shop, &instance(site).await));
    let slow = || keyed("k", json!({ "name": "slow" }));
    let first = tokio::spawn(async move { call(&one, slow()).await });
    shop.has_done(1).await;
    refuse().await;
    shop.go.notify_one();
    let first = first.await.expect("an answer");
    assert_eq!(text(&first), "run 1", "the reply is sent, though it is not recorded yet");
    mend().await;
    // A second run would not have to wait.
    shop.go.notify_one();
    assert_eq!(call(&other, slow()).await, first);
    assert_eq!(shop.done(), 1);
}

/// M6, K2: a backup holds the lock of the file for longer than a change waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_a_locked_file_refuses_is_recorded_later() {
    let site = SqliteSite::new();
    drop(instance(&site).await);
    let backup = site.connect();
    let lock = async || backup.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let unlock = async || backup.execute_batch("ROLLBACK").expect("no lock");
    a_refused_reply_is_recorded_later(&site, LEASE, lock, unlock).await;
}

/// M6, K3: a switchover: the server that was the primary takes no writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_a_read_only_server_refuses_is_recorded_later() {
    let Some(site) = PostgresSite::new().await else { return };
    let database = support::unique();
    let run = async |statement: String| {
        let mut admin = site.connect().await;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut admin).await.expect("a change");
        admin.close().await.expect("the end of a connection");
    };
    run(format!("CREATE DATABASE {database}")).await;
    let own = PostgresSite { url: site.url.replace("/postgres?", &format!("/{database}?")) };
    let schema = site.url.rsplit('=').next().expect("a schema");
    let make = sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")));
    make.execute(&mut own.connect().await).await.expect("a schema");
    // Settings of a database are those of new connections.
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
    let refuse = async || {
        run(format!("ALTER DATABASE {database} SET default_transaction_read_only = on")).await;
        run(end).await;
    };
    let mend = async || run(format!("ALTER DATABASE {database} RESET default_transaction_read_only")).await;
    a_refused_reply_is_recorded_later(&own, LEASE, refuse, mend).await;
}

/// M6, K3: another session has locked the table for longer than this one waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_a_locked_table_refuses_is_recorded_later() {
    let Some(site) = PostgresSite::new().await else { return };
    drop(instance(&site).await);
    let impatient = PostgresSite { url: format!("{}&options[lock_timeout]=100", site.url) };
    let mut migration = site.connect().await;
    let lock = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(&mut migration).await.expect("a lock");
    };
    let lock = Mutex::new(lock);
    let refuse = async || (lock.lock().await)("BEGIN; LOCK TABLE roundtrip_ledger").await;
    let mend = async || (lock.lock().await)("ROLLBACK").await;
    a_refused_reply_is_recorded_later(&impatient, LEASE, refuse, mend).await;
}

async fn set(site: &RedisSite, setting: &str, value: &str) {
    let mut set = redis::cmd("CONFIG");
    let () = set.arg("SET").arg(setting).arg(value).query_async(&mut site.connect().await).await.expect("OK");
}

/// M6, K4: Redis has lost the replicas that it is to have. That takes longer than the lease, so that the claim is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_waits_for_replicas_is_recorded_later() {
    let Some(site) = RedisSite::new() else { return };
    let _alone = REDIS.lock().await;
    let refuse = async || set(&site, "min-replicas-to-write", "1").await;
    let mend = async || {
        let becomes = async |number| {
            for _ in 0..200 {
                if site.stored().await == number {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("there are not {number} records");
        };
        becomes(0).await;
        set(&site, "min-replicas-to-write", "0").await;
        // No repeat claims the round in the second until the next attempt.
        becomes(1).await;
    };
    a_refused_reply_is_recorded_later(&site, Duration::from_secs(1), refuse, mend).await;
}

/// M6, K4: the memory of Redis is full.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_a_full_memory_refuses_is_recorded_later() {
    let Some(site) = RedisSite::new() else { return };
    let _alone = REDIS.lock().await;
    let refuse = async || set(&site, "maxmemory", "1").await;
    let mend = async || set(&site, "maxmemory", "0").await;
    a_refused_reply_is_recorded_later(&site, LEASE, refuse, mend).await;
}
