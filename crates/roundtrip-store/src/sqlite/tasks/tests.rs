//! Tasks in files that are full (K2), and the work that statements do (K7).

use std::time::Duration;

use roundtrip::task::{Due, TaskStore as _};
use rusqlite::StatementStatus;

use super::statements::DUE;
use super::*;
use crate::StoreError;
use crate::sqlite::tests::{Folder, settings};
use crate::sqlite::writer::{Change as _, Commit};
use crate::sqlite::{MIGRATIONS, start};

const HOUR: Duration = Duration::from_secs(3_600);

fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; Digest::LEN])
}

fn key(number: u8) -> TaskKey {
    TaskKey { service: digest(1), owner: TaskOwner::new(None), id: TaskId::new([number; 16]) }
}

fn task(number: u8, bytes: usize) -> NewTask {
    NewTask {
        key: key(number),
        account: digest(2),
        kind: digest(3),
        lease: None,
        expires: None,
        call: vec![b'x'; bytes].into(),
        view: Bytes::from_static(b"view"),
        work: Bytes::from_static(b"work"),
        journal: None,
    }
}

fn change(number: u8, bytes: usize) -> TaskChange {
    TaskChange {
        key: key(number),
        version: 0,
        due: Due::AsBefore,
        is_live: true,
        expires: None,
        view: Bytes::from_static(b"view"),
        work: vec![b'x'; bytes].into(),
        result: None,
        journal: Vec::new(),
        replaces_journal: false,
        parts: Vec::new(),
    }
}

/// K2: a task that a full disk has no room for is refused by name; the others are there, and can be changed once there is room.
#[tokio::test]
async fn a_full_disk_loses_no_task() {
    let folder = Folder::new();
    let full = start(folder.small_file(80), &settings()).await.unwrap();
    full.create(task(1, 10_000), 9, Millis(1)).await.unwrap();
    let error = full.create(task(2, 1 << 20), 9, Millis(1)).await.unwrap_err();
    let cause = std::error::Error::source(&error).and_then(|error| error.downcast_ref::<StoreError>());
    assert!(matches!(cause, Some(StoreError::NoSpace)), "{error:?}");
    assert!(full.write(change(1, 1 << 20), Millis(1)).await.is_err());
    let kept = full.read(&key(1), Millis(1)).await.unwrap().unwrap();
    assert_eq!((kept.version, &kept.work[..]), (0, &b"work"[..]));
    assert_eq!(full.load(&key(1)).await.unwrap().unwrap().call.len(), 10_000);
    drop(full);
    let roomy = start(folder.file(), &settings()).await.unwrap();
    assert!(roomy.write(change(1, 1 << 20), Millis(1)).await.unwrap());
    roomy.create(task(2, 1 << 20), 2, Millis(1)).await.unwrap();
}

/// K5: a file of the release that had no tasks gets their tables, and keeps its records.
#[tokio::test]
async fn a_file_of_before_is_brought_up_to_date() {
    let folder = Folder::new();
    let connection = folder.file().connect().unwrap();
    let steps = [
        "CREATE TABLE roundtrip_schema (version INTEGER NOT NULL)",
        MIGRATIONS.0[0],
        "INSERT INTO roundtrip_schema VALUES (1)",
        "INSERT INTO roundtrip_ledger VALUES (zeroblob(32), x'', x'', x'', 1, 0, NULL)",
    ];
    for step in steps {
        connection.execute_batch(step).unwrap();
    }
    let store = start(folder.file(), &settings()).await.unwrap();
    store.create(task(1, 1), 1, Millis(1)).await.unwrap();
    let number = |query: &str| connection.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM roundtrip_ledger"), 1);
    assert_eq!(number("SELECT max(version) FROM roundtrip_schema"), 3);
}

/// Steps of SQLite's machine that `waiting` and `take` need for one good task, beside this many of other kinds and accounts.
async fn steps_beside(others: u32) -> [i32; 3] {
    let folder = Folder::new();
    let store = start(folder.file(), &settings()).await.unwrap();
    store.create(task(1, 1), 1, Millis(5)).await.unwrap();
    let mut connection = folder.file().connect().unwrap();
    let fill = connection.transaction().unwrap();
    for number in 0..others {
        // Some are of kinds that nobody has, due, not due or held; others are of the good kind, and not due or held.
        let (kind, due, held) = match number % 3 {
            0 if number % 2 == 0 => (digest(2), 1, 0),
            0 if number % 4 == 1 => (digest(1), i64::MAX, 0),
            0 => (digest(4), 100, 1),
            1 => (digest(3), i64::MAX, 0),
            _ => (digest(3), 100, 1),
        };
        let account = if number % 3 == 0 { u8::try_from(number % 200).unwrap() } else { 2 };
        fill.execute(
            "INSERT INTO roundtrip_task (id, service, owner, account, kind, version, fence, held, live, due, changed, \
             origin, view, work) VALUES (?, ?, ?, ?, ?, 0, 0, ?, 1, ?, -?, x'', x'', x'')",
            params![
                TaskId::new(u128::from(number).to_be_bytes()).as_str(),
                digest(1).as_bytes(),
                digest(9).as_bytes(),
                digest(account).as_bytes(),
                kind.as_bytes(),
                held,
                due,
                number + 1,
            ],
        )
        .unwrap();
    }
    fill.commit().unwrap();
    let good = Waiting { kind: digest(3), account: digest(2) };
    let search = PairSearch { service: digest(1), kinds: vec![good.kind], after: None, steps: 99, due: 9 };
    let mut pairs = pairs_of(&connection, &search, false, Millis(9)).unwrap();
    pairs.extend(pairs_of(&connection, &search, true, Millis(9)).unwrap());
    let mut due: Vec<_> = pairs.iter().filter(|pair| pair.is_due).map(|pair| pair.waiting.kind).collect();
    due.dedup();
    assert_eq!(due, [digest(2), digest(3)], "the kind that nobody has is reported once");
    let wish = Wish { service: digest(1), wanted: vec![(good, 1)], except: Vec::new(), lease: HOUR };
    let commit = Commit::begin(&mut connection, 1).unwrap();
    let taken = TakeTasks { wish, now: Millis(9) }.run(&commit).unwrap();
    drop(commit);
    assert_eq!(taken.iter().map(|task| &task.key).collect::<Vec<_>>(), [&key(1)]);
    let steps = |statement| connection.prepare_cached(statement).unwrap().get_status(StatementStatus::VmStep);
    [steps(NEXT_ACCOUNT), steps(NEXT_KIND), steps(DUE)]
}

/// K7: tasks that no worker of a process can run cost it nothing, however many there are.
#[tokio::test]
async fn tasks_of_others_cost_nothing() {
    let [few, many] = [steps_beside(30).await, steps_beside(30_000).await];
    assert_eq!(few, many);
    assert!(many.iter().all(|steps| *steps < 300), "{many:?}");
}

/// K7: the bytes that a journal makes SQLite write grow with its pieces, not with their square.
#[tokio::test]
async fn a_journal_costs_what_is_appended() {
    let folder = Folder::new();
    let store = start(folder.file(), &settings()).await.unwrap();
    // As long as it reads, the log ahead grows by all that is written.
    let reader = folder.file().connect().unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM roundtrip_schema").unwrap();
    let mut written = [0; 2];
    let log = || std::fs::metadata(folder.0.join("store.db-wal")).unwrap().len();
    for (own, (pieces, written)) in (1..).zip([2_000, 4_000].into_iter().zip(&mut written)) {
        store.create(NewTask { lease: Some(HOUR), ..task(own, 10_000) }, 9, Millis(1)).await.unwrap();
        let before = log();
        for number in 0..pieces {
            let piece = Chunk { number, bytes: Bytes::from(format!("the result of step {number}")) };
            assert!(store.append(&key(own), 1, &[piece]).await.unwrap());
        }
        *written = log() - before;
    }
    let [half, whole] = written;
    assert!(whole * 10 <= half * 21, "{written:?}");
    assert!(whole / 4_000 <= 10_000, "{written:?}");
}

/// K7: SQLite reads no result that is not asked for.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_result_is_read_that_is_not_asked_for() {
    /// Bytes that this thread has read from files so far.
    fn read_so_far() -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    }
    let folder = Folder::new();
    drop(start(folder.file(), &settings()).await.unwrap());
    let connection = folder.file().connect().unwrap();
    for number in 0..50 {
        let fill = "INSERT INTO roundtrip_task (id, service, owner, account, kind, version, fence, held, live, expires, changed, \
                    origin, view, work, result) VALUES (?, ?, ?, ?, ?, 1, 1, 0, 0, 1, ?, x'', x'77', x'77', randomblob(1048576))";
        let (key, account) = (key(number), digest(2));
        let row = params![
            key.id.as_str(),
            key.service.as_bytes(),
            key.owner.as_bytes(),
            account.as_bytes(),
            account.as_bytes(),
            number
        ];
        connection.execute(fill, row).unwrap();
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let (service, owner, id) = (digest(1), TaskOwner::new(None), key(7).id);
    let read = |statement: &'static str, parameters: &dyn Fn(&mut rusqlite::Statement<'_>) -> usize| {
        // A connection that has no page yet.
        let fresh = folder.file().connect().unwrap();
        let mut statement = fresh.prepare(statement).unwrap();
        let before = read_so_far();
        let rows = parameters(&mut statement);
        (rows, read_so_far() - before)
    };
    fn rows(statement: &mut rusqlite::Statement<'_>, parameters: impl Params) -> usize {
        let mut rows = statement.query(parameters).unwrap();
        let mut number = 0;
        while let Some(row) = rows.next().unwrap() {
            // Every column is fetched.
            (0..).map_while(|column| row.get_ref(column).ok()).for_each(drop);
            number += 1;
        }
        number
    }
    let (service, owner) = (service.as_bytes(), owner.as_bytes());
    let (listed, bytes) = read(LIST, &|statement| rows(statement, params![service, owner, "", 50]));
    assert!(listed == 50 && bytes < 1 << 20, "{listed} tasks, {bytes} bytes");
    let (expired, bytes) = read(EXPIRED, &|statement| rows(statement, params![service, 9, 50]));
    assert!(expired == 50 && bytes < 1 << 20, "{expired} tasks, {bytes} bytes");
    let view = |with_result: bool| {
        let parameters = params![id.as_str(), service, owner];
        let statement = if with_result { VIEW_AND_RESULT } else { VIEW };
        read(statement, &|statement| rows(statement, parameters))
    };
    let [(_, without), (_, with)] = [view(false), view(true)];
    assert!(without < 100_000 && with > 1 << 20, "{without} and {with} bytes");
}
