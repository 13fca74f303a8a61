//! Files that are full, locked, read-only or no database (K2), and statements that search (K7).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use roundtrip::seal::{Digest, Timestamp};
use roundtrip::server::Ledger as _;
use roundtrip::server::ledger::{Claim, LedgerError, RoundKey};

use super::writer::{Change, Commit};
use super::*;

/// A folder that goes with the test.
pub(super) struct Folder(pub(super) std::path::PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rt-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(super) fn file(&self) -> File {
        File::new(self.0.join("store.db"))
    }

    pub(super) fn small_file(&self, most_pages: u32) -> File {
        let mut file = self.file();
        file.most_pages = Some(most_pages);
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn settings() -> Settings {
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

/// K2: processes that open a new file at the same moment wait for each other.
#[test]
fn a_new_file_is_opened_by_many_at_once() {
    for _ in 0..20 {
        let folder = Folder::new();
        let start = std::sync::Barrier::new(8);
        let open = || {
            start.wait();
            let mut connection = folder.file().connect().map_err(error)?;
            migrate(&mut connection).map(drop)
        };
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            opened.into_iter().for_each(|opened| opened.join().unwrap().unwrap());
        });
    }
}

fn cause(error: &LedgerError) -> StoreError {
    std::error::Error::source(error).and_then(|error| error.downcast_ref::<StoreError>()).unwrap().clone()
}

/// K2: a full disk is an error by name; what was recorded is there, and rounds go on once there is room.
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let folder = Folder::new();
    let full = start(folder.small_file(40), &settings()).await.unwrap();
    record(&full, 1, 10_000).await.unwrap();
    let error = record(&full, 2, 1 << 20).await.unwrap_err();
    assert!(matches!(cause(&error), StoreError::NoSpace), "{error:?}");
    assert!(matches!(full.claim(&key(1), later()).await, Ok(Claim::Replay(reply)) if reply.len() == 10_000));
    record(&full, 3, 10_000).await.unwrap();
    drop(full);
    let roomy = start(folder.file(), &settings()).await.unwrap();
    assert!(matches!(roomy.claim(&key(1), later()).await, Ok(Claim::Replay(_))));
    record(&roomy, 4, 1 << 20).await.unwrap();
}

/// K2: a file that cannot be written is an error by name.
#[tokio::test]
async fn a_read_only_file_is_refused() {
    let folder = Folder::new();
    drop(start(folder.file(), &settings()).await.unwrap());
    let error = start(folder.file().read_only(), &settings()).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly), "{error:?}");
    assert!(error.to_string().contains("writable"), "{error}");
}

/// K2: a file that another process has locked is waited for, and then an error by name.
#[tokio::test]
async fn a_locked_file_is_waited_for() {
    let folder = Folder::new();
    let mut impatient = folder.file();
    impatient.lock_timeout = Duration::from_millis(100);
    let store = start(impatient, &settings()).await.unwrap();
    let other = folder.file().connect().unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = record(&store, 1, 1).await.unwrap_err();
    assert!(matches!(cause(&error), StoreError::Locked), "{error:?}");
    other.execute_batch("COMMIT").unwrap();
    record(&store, 2, 1).await.unwrap();
}

/// K5: a file whose tables are of an earlier release may be in the hands of the process that brings them up to date: it is waited
/// for. One that is up to date is an error by name.
#[tokio::test]
async fn a_file_that_another_process_brings_up_to_date_is_waited_for() {
    let folder = Folder::new();
    let mut impatient = folder.file();
    impatient.lock_timeout = Duration::from_millis(20);
    let other = folder.file().connect().unwrap();
    for step in ["CREATE TABLE roundtrip_schema (version INTEGER NOT NULL)", MIGRATIONS.0[0], MIGRATIONS.0[1]]
    {
        other.execute_batch(step).unwrap();
    }
    other.execute_batch("INSERT INTO roundtrip_schema VALUES (1), (2); BEGIN IMMEDIATE").unwrap();
    let mut opening = tokio::spawn({
        let file = impatient.clone();
        async move { start(file, &settings()).await }
    });
    let waits = tokio::time::timeout(Duration::from_millis(500), &mut opening).await;
    assert!(waits.is_err(), "{waits:?}");
    other.execute_batch("COMMIT").unwrap();
    opening.await.unwrap().unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = start(impatient, &settings()).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked), "{error:?}");
}

/// K2: a file that is no database is refused, and left as it is.
#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    let text = "not a database, though long enough for its first page. ".repeat(100);
    std::fs::write(folder.0.join("store.db"), &text).unwrap();
    let error = start(folder.file(), &settings()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
    assert_eq!(std::fs::read_to_string(folder.0.join("store.db")).unwrap(), text);
}

/// K2: commits are durable, with a write-ahead log.
#[tokio::test]
async fn commits_are_durable() {
    let folder = Folder::new();
    let connection = folder.file().connect().unwrap();
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!((mode.as_str(), synchronous), ("wal", 2));
}

struct Statement(&'static str);

impl Change for Statement {
    type Output = usize;

    fn run(&self, connection: &Commit<'_>) -> Sql<usize> {
        connection.execute(self.0, ())
    }
}

/// K2: changes that are committed together do not fail for each other.
#[tokio::test]
async fn a_change_that_fails_takes_no_other_with_it() {
    let folder = Folder::new();
    let connection = folder.file().connect().unwrap();
    connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY)").unwrap();
    let writer = Writer::start(connection, folder.file()).unwrap();
    let (one, bad, two) = tokio::join!(
        writer.run(Statement("INSERT INTO t VALUES (1)")),
        writer.run(Statement("INSERT INTO no_such_table VALUES (1)")),
        writer.run(Statement("INSERT INTO t VALUES (2)")),
    );
    assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
    assert!(matches!(bad, Err(StoreError::Refused(_))));
}

/// K7: no statement of the ledger or of tasks looks at rows one by one.
#[test]
fn every_statement_finds_records_by_an_index() {
    let folder = Folder::new();
    let mut connection = folder.file().connect().unwrap();
    migrate(&mut connection).unwrap();
    for statement in ledger::ALL_STATEMENTS.iter().chain(tasks::ALL_STATEMENTS) {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let mut steps = plan.raw_query();
        while let Some(row) = steps.next().unwrap() {
            let step: String = row.get("detail").unwrap();
            // `SELECT` without a table is one row of nothing.
            let is_scan = step.starts_with("SCAN") && step != "SCAN CONSTANT ROW";
            assert!(!is_scan && !step.contains("TEMP B-TREE"), "{statement}: {step}");
        }
    }
}

/// K7: a read by key takes no other thread; one that would have to wait for a connection does.
#[tokio::test]
async fn short_reads_stay_in_their_thread() {
    let folder = Folder::new();
    let mut connection = folder.file().connect().unwrap();
    migrate(&mut connection).unwrap();
    let reader = Reader::new(folder.file());
    let thread = |_: &Connection| Ok(std::thread::current().id());
    let here = std::thread::current().id();
    assert_ne!(reader.few(thread).await.unwrap(), here, "it is opened elsewhere");
    assert_eq!(reader.few(thread).await.unwrap(), here);
    assert_ne!(reader.many(thread).await.unwrap(), here);
}
