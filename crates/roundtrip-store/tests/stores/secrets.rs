//! Addresses and passwords are shown nowhere.

use std::error::Error;

use roundtrip_store::StoreError;

use crate::support::Log;

/// Everything an error shows.
fn shown(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(" {error} {error:?}");
        source = error.source();
    }
    text
}

/// K8: a password is in no error and in no `Debug`, whether the address cannot be read, leads nowhere, or is refused.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn no_error_of_postgres_shows_the_password() {
    use roundtrip_store::Postgres;
    let log = Log::default();
    let _listening = log.listen();
    let mut failing = tokio::task::JoinSet::new();
    for url in [
        "postgres://ada:hunter2@127.0.0.1:1/db",
        "postgres://ada:hunter2@[::1/db",
        "ada:hunter2@host",
        "postgres://ada:hunter2@127.0.0.1/db?sslmode=hunter2",
    ] {
        let opening = Postgres::connect(url);
        assert!(!format!("{opening:?}").contains("hunter2"));
        failing.spawn(opening.into_future());
    }
    for outcome in failing.join_all().await {
        let error = outcome.expect_err("no database");
        assert!(!shown(&error).contains("hunter2"), "{}", shown(&error));
    }
    if let Some(site) = crate::support::PostgresSite::new().await {
        let store = Postgres::connect(&site.url.replace("roundtrip@", "roundtrip:hunter2@"));
        crate::support::record(&store.await.expect("a store"), &crate::support::key(1), "reply").await;
    }
    assert!(log.text().contains("WARN") && !log.text().contains("hunter2"), "{}", log.text());
}

/// K8: a password is in no error, in no log and in no `Debug`.
#[cfg(feature = "redis")]
#[tokio::test]
async fn no_error_of_redis_shows_the_password() {
    use roundtrip_store::Redis;
    let log = Log::default();
    let _listening = log.listen();
    for url in ["redis://ada:hunter2@127.0.0.1:1/0", "redis://ada:hunter2@[::1/0", "ada:hunter2@host"] {
        let opening = Redis::connect(url);
        assert!(!format!("{opening:?}").contains("hunter2"));
        let error = opening.await.expect_err("no database");
        assert!(!shown(&error).contains("hunter2"), "{url}: {}", shown(&error));
    }
    assert!(!log.text().contains("hunter2"), "{}", log.text());
}

/// K6: a store without a ring says so once, when it is opened; one with a ring does not.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_store_without_a_ring_warns_once() {
    use crate::support::{Site as _, key, record};
    let (site, log) = (crate::support::SqliteSite::new(), Log::default());
    let _listening = log.listen();
    let store = site.open(|opening| opening).await.expect("a store");
    record(&store, &key(1), "reply").await;
    record(&store, &key(2), "reply").await;
    let warnings = |log: &Log| log.text().lines().filter(|line| line.contains("stored unsealed")).count();
    assert_eq!(warnings(&log), 1, "{}", log.text());
    let ring = "07".repeat(32).parse().expect("keys");
    let store = site.open(|opening| opening.sealed_by(ring)).await.expect("a store");
    record(&store, &key(3), "reply").await;
    assert_eq!(warnings(&log), 1, "{}", log.text());
}

/// K8: the file of a store, and those that SQLite puts beside it, are their owner's alone.
#[cfg(all(unix, feature = "sqlite"))]
#[tokio::test]
async fn no_other_user_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = crate::support::SqliteSite::new();
    let store = crate::support::instance(&site).await;
    crate::support::record(&store, &crate::support::key(1), "reply").await;
    let files: Vec<_> =
        std::fs::read_dir(&site.folder).expect("a folder").map(|file| file.expect("a file")).collect();
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        let mode = file.metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file:?}: {mode:o}");
    }
}

/// K2: a folder that is not there is named for what it is, without retries.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_folder_that_is_missing_is_an_error_of_its_own() {
    let error = roundtrip_store::Sqlite::open("/no/such/folder/store.db").await.expect_err("no folder");
    assert!(matches!(error, StoreError::CannotOpen(_)), "{}", shown(&error));
}
