//! Files that are full, locked, read-only or no database (K2), and statements that search (K7).

use std::sync::atomic::{AtomicU32, Ordering};

use roundtrip::seal::{BoxFuture, Digest, Timestamp};
use roundtrip::server::Ledger as _;
use roundtrip::server::ledger::{Claim, LedgerError, RoundKey};
use roundtrip::task::{StoredTask, TaskId, TaskOwner, TaskStore as _};
use sqlx::{AssertSqlSafe, Row as _};

use super::writer::Change;
use super::*;

/// A folder that goes with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rt-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn options(&self) -> SqliteConnectOptions {
        options(&self.0.join("store.db"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings() -> Settings {
    Opening::<Sqlite>::new(String::new()).settings
}

fn key(number: u8) -> RoundKey {
    RoundKey::new([number; RoundKey::LEN], Digest::from_bytes([0; 16]))
}

fn later() -> Timestamp {
    Timestamp::from_unix(100_000_000_000)
}

async fn record(store: &Sqlite, number: u8, bytes: usize) -> Result<(), LedgerError> {
    match store.claim(&key(number), later()).await? {
        Claim::Run(guard) => guard.record(vec![b'x'; bytes].into(), later()).await,
        other => panic!("{other:?}"),
    }
}

fn cause(error: &LedgerError) -> StoreError {
    std::error::Error::source(error).and_then(|error| error.downcast_ref::<StoreError>()).unwrap().clone()
}

/// K2: a full disk is an error by name; what was recorded is there, and rounds go on once there is room.
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let folder = Folder::new();
    let full = start(folder.options().pragma("max_page_count", "40"), &settings()).await.unwrap();
    record(&full, 1, 10_000).await.unwrap();
    let error = record(&full, 2, 1 << 20).await.unwrap_err();
    assert!(matches!(cause(&error), StoreError::NoSpace), "{error:?}");
    assert!(matches!(full.claim(&key(1), later()).await, Ok(Claim::Replay(reply)) if reply.len() == 10_000));
    record(&full, 3, 10_000).await.unwrap();
    drop(full);
    let roomy = start(folder.options(), &settings()).await.unwrap();
    assert!(matches!(roomy.claim(&key(1), later()).await, Ok(Claim::Replay(_))));
    record(&roomy, 4, 1 << 20).await.unwrap();
}

/// K2: a file that cannot be written is an error by name.
#[tokio::test]
async fn a_read_only_file_is_refused() {
    let folder = Folder::new();
    drop(start(folder.options(), &settings()).await.unwrap());
    let error =
        start(folder.options().create_if_missing(false).read_only(true), &settings()).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    assert!(error.to_string().contains("writable"), "{error}");
}

/// K2: a file that another process has locked is waited for, and then an error by name.
#[tokio::test]
async fn a_locked_file_is_waited_for() {
    let folder = Folder::new();
    let store = start(folder.options().busy_timeout(Duration::from_millis(100)), &settings()).await.unwrap();
    let mut other = folder.options().connect().await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = record(&store, 1, 1).await.unwrap_err();
    assert!(matches!(cause(&error), StoreError::Locked), "{error:?}");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    record(&store, 2, 1).await.unwrap();
}

/// K2: a file that is no database is refused, and left as it is.
#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    let text = "not a database, though long enough for its first page. ".repeat(100);
    std::fs::write(folder.0.join("store.db"), &text).unwrap();
    let error = start(folder.options(), &settings()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
    assert_eq!(std::fs::read_to_string(folder.0.join("store.db")).unwrap(), text);
}

/// K2: commits are durable, with a write-ahead log.
#[tokio::test]
async fn commits_are_durable() {
    let folder = Folder::new();
    let mut connection = folder.options().connect().await.unwrap();
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut connection).await.unwrap();
    assert_eq!((mode.as_str(), synchronous), ("wal", 2));
}

struct Statement(&'static str);

impl Change for Statement {
    type Output = u64;

    fn run<'a>(&'a self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Result<u64, sqlx::Error>> {
        Box::pin(async { Ok(sqlx::query(self.0).execute(connection).await?.rows_affected()) })
    }
}

/// K2: changes that are committed together do not fail for each other.
#[tokio::test]
async fn a_change_that_fails_takes_no_other_with_it() {
    let folder = Folder::new();
    let mut connection = folder.options().connect().await.unwrap();
    sqlx::raw_sql("CREATE TABLE t (a INTEGER PRIMARY KEY)").execute(&mut connection).await.unwrap();
    let writer = Writer::start(connection, folder.options());
    let (one, bad, two) = tokio::join!(
        writer.run(Statement("INSERT INTO t VALUES (1)")),
        writer.run(Statement("INSERT INTO no_such_table VALUES (1)")),
        writer.run(Statement("INSERT INTO t VALUES (2)")),
    );
    assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
    assert!(matches!(bad, Err(StoreError::Refused(_))));
}

/// K7: no statement of the ledger or of tasks looks at rows one by one.
#[tokio::test]
async fn every_statement_finds_records_by_an_index() {
    let folder = Folder::new();
    let mut connection = folder.options().connect().await.unwrap();
    migrate(&mut connection).await.unwrap();
    for statement in ledger::ALL_STATEMENTS.iter().chain(tasks::ALL_STATEMENTS) {
        let plan = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
        for row in sqlx::query(plan).fetch_all(&mut connection).await.unwrap() {
            let step: String = row.get("detail");
            assert!(!step.starts_with("SCAN") && !step.contains("TEMP B-TREE"), "{statement}: {step}");
        }
    }
}

fn task(number: u8, bytes: usize) -> StoredTask {
    StoredTask {
        id: TaskId::new([number; 16]),
        owner: TaskOwner::new(None),
        account: Digest::from_bytes([0; 16]),
        version: 0,
        fence: 0,
        is_live: true,
        due: None,
        expires: None,
        view: "view".into(),
        work: vec![b'x'; bytes].into(),
    }
}

/// K2: a task that a full disk has no room for is refused by name; the others are there, and can be changed once there is room.
#[tokio::test]
async fn a_full_disk_loses_no_task() {
    let folder = Folder::new();
    let full = start(folder.options().pragma("max_page_count", "60"), &settings()).await.unwrap();
    full.create(task(1, 10_000), 9).await.unwrap();
    let error = full.create(task(2, 1 << 20), 9).await.unwrap_err();
    let cause = std::error::Error::source(&error).and_then(|error| error.downcast_ref::<StoreError>());
    assert!(matches!(cause, Some(StoreError::NoSpace)), "{error:?}");
    assert!(full.write(task(1, 1 << 20)).await.is_err());
    let kept = full.read(&TaskOwner::new(None), &TaskId::new([1; 16])).await.unwrap().unwrap();
    assert_eq!((kept.version, kept.work.len()), (0, 10_000));
    drop(full);
    let roomy = start(folder.options(), &settings()).await.unwrap();
    assert!(roomy.write(task(1, 1 << 20)).await.unwrap());
    roomy.create(task(2, 1 << 20), 2).await.unwrap();
}

/// K5: a file of the release that had no tasks gets their tables, and keeps its records.
#[tokio::test]
async fn a_file_of_before_is_brought_up_to_date() {
    let folder = Folder::new();
    let mut connection = folder.options().connect().await.unwrap();
    let steps = [
        "CREATE TABLE roundtrip_schema (version INTEGER NOT NULL)",
        MIGRATIONS.0[0],
        "INSERT INTO roundtrip_schema VALUES (1)",
        "INSERT INTO roundtrip_ledger VALUES (zeroblob(32), x'', x'', x'', 1, 0, NULL)",
    ];
    for step in steps {
        sqlx::raw_sql(step).execute(&mut connection).await.unwrap();
    }
    let store = start(folder.options(), &settings()).await.unwrap();
    store.create(task(1, 1), 1).await.unwrap();
    let records = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM roundtrip_ledger");
    assert_eq!(records.fetch_one(&mut connection).await.unwrap(), 1);
    let version = sqlx::query_scalar::<_, i64>("SELECT max(version) FROM roundtrip_schema");
    assert_eq!(version.fetch_one(&mut connection).await.unwrap(), 2);
}
