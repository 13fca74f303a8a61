//! Addresses and passwords are shown nowhere.

use std::error::Error;

use roundtrip_store::StoreError;

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
}

/// K8: as above.
#[cfg(feature = "redis")]
#[tokio::test]
async fn no_error_of_redis_shows_the_password() {
    use roundtrip_store::Redis;
    for url in ["redis://ada:hunter2@127.0.0.1:1/0", "redis://ada:hunter2@[::1/0", "ada:hunter2@host"] {
        let opening = Redis::connect(url);
        assert!(!format!("{opening:?}").contains("hunter2"));
        let error = opening.await.expect_err("no database");
        assert!(!shown(&error).contains("hunter2"), "{url}: {}", shown(&error));
    }
}

/// K2: a folder that is not there is named for what it is, without retries.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_folder_that_is_missing_is_an_error_of_its_own() {
    let error = roundtrip_store::Sqlite::open("/no/such/folder/store.db").await.expect_err("no folder");
    assert!(matches!(error, StoreError::CannotOpen(_)), "{}", shown(&error));
}
