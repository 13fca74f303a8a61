//! Databases that are restarted in mid-call. Tests on the same servers would notice, so that these have a program of their own.

#![cfg(all(unix, any(feature = "postgres", feature = "redis")))]
#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[expect(dead_code, unused_imports, unused_macros, reason = "most of it is for the tests without restarts")]
#[path = "stores/support/mod.rs"]
mod support;

use support::{Site, instance, key, later, record, replay, run};

/// K3, K4: a restart between claim and record loses nothing, and the next round runs.
async fn a_restart_in_mid_call_is_survived<S: Site>(site: &S, restart: impl AsyncFnOnce()) {
    let store = instance(site).await;
    record(&store, &key(1), "before").await;
    let guard = run(&store, &key(2)).await;
    restart().await;
    guard.record("during".into(), later()).await.expect("a record");
    record(&store, &key(3), "after").await;
    let other = instance(site).await;
    for (number, reply) in [(1, "before"), (2, "during"), (3, "after")] {
        assert_eq!(replay(&other, &key(number)).await, reply);
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn postgres_is_restarted_in_mid_call() {
    let Some(site) = support::PostgresSite::new().await else { return };
    let Some(file) = support::address("ROUNDTRIP_TEST_POSTGRES_PID_FILE") else { return };
    let started = async || {
        let started = sqlx::query_scalar::<_, String>("SELECT pg_postmaster_start_time()::text");
        started.fetch_one(&mut site.connect().await).await.expect("a time")
    };
    let before = started().await;
    a_restart_in_mid_call_is_survived(&site, async || {
        let text = std::fs::read_to_string(file).expect("the process id of the server");
        let id = text.lines().next().expect("a line");
        let asked = std::process::Command::new("kill").args(["-INT", id]).status().expect("`kill`");
        assert!(asked.success());
    })
    .await;
    assert_ne!(started().await, before, "it was restarted");
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_is_restarted_in_mid_call() {
    let Some(site) = support::RedisSite::new() else { return };
    let run = async || {
        let info: String = redis::cmd("INFO").query_async(&mut site.connect().await).await.expect("a text");
        info.lines().find(|line| line.starts_with("run_id:")).expect("an id").to_owned()
    };
    let before = run().await;
    a_restart_in_mid_call_is_survived(&site, async || {
        let mut connection = site.connect().await;
        // The connection ends before an answer.
        let _: Result<(), _> = redis::cmd("SHUTDOWN").query_async(&mut connection).await;
    })
    .await;
    assert_ne!(run().await, before, "it was restarted");
}
