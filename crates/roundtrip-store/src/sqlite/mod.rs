//! [`Sqlite`]: a store in one file.

mod file;
mod ledger;
mod own_connection;
mod reader;
mod tasks;
mod writer;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior, ffi};

use self::file::File;
use self::ledger::SqliteRecords;
use self::reader::Reader;
use self::tasks::{OtherProcesses, SqliteTasks};
use self::writer::Writer;
use crate::ledger::{SharedLedger, ledger_of};
use crate::opening::{Open, Settings};
use crate::schema::{MIGRATION_TIME, Migrations, warn_of_left_out};
use crate::tasks::{SharedTasks, new_origin, tasks_of};
use crate::{Opening, StoreError};

type Sql<T> = Result<T, rusqlite::Error>;

const MIGRATIONS: Migrations = Migrations(&[
    include_str!("../../migrations/sqlite/0001-ledger.sql"),
    include_str!("../../migrations/sqlite/0002-tasks.sql"),
    include_str!("../../migrations/sqlite/0003-task-services.sql"),
]);

/// Version of the tables that made tasks a service's own.
const TASK_SERVICES: i64 = 3;

/// A store of rounds and tasks in one SQLite file, for the processes of one machine. Clones share it.
///
/// A commit is on the disk before it counts (write-ahead log, `synchronous = FULL`); commits that wait together share
/// one write. Do not put the file on a network file system.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use roundtrip::{Keyring, Server, Tasks};
/// use roundtrip_store::Sqlite;
///
/// let store = Sqlite::open("shop.db").sealed_by(Keyring::from_env("STORE_KEYS")?).await?;
/// let server = Server::new("shop", "1.0.0").tasks(Tasks::new(store.clone())).ledger(store);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Sqlite {
    ledger: SharedLedger<SqliteRecords>,
    tasks: SharedTasks<SqliteTasks>,
}

impl Sqlite {
    /// Opens a file, and creates it if there is none.
    ///
    /// # Errors
    /// Awaiting it fails if the file cannot be opened or written, is locked, is not a database, or has the tables of a later
    /// release. Tables of an earlier release are brought up to date, by one process: that may take minutes, and others wait for it.
    pub fn open(path: impl AsRef<Path>) -> Opening<Self> {
        Opening::new(path.as_ref())
    }
}

ledger_of!(Sqlite);
tasks_of!(Sqlite);

impl Open for Sqlite {
    async fn open(path: OsString, settings: Settings) -> Result<Self, StoreError> {
        settings.check("sqlite")?;
        start(File::new(&path), &settings).await
    }
}

async fn start(file: File, settings: &Settings) -> Result<Sqlite, StoreError> {
    let connection = open(&file).await?;
    let (reader, origin) = (Reader::new(file.clone()), new_origin()?);
    let writer = Writer::start(connection, file.clone())?;
    let rows = SqliteTasks { file: file.clone(), writer: writer.clone(), reader, origin };
    let tasks =
        SharedTasks::new(rows, OtherProcesses { reader: Reader::new(file.clone()), origin }, settings);
    let records = SqliteRecords { file, writer, settings: settings.clone() };
    Ok(Sqlite { ledger: SharedLedger::start(records, settings)?, tasks })
}

/// Opens the connection that writes. A file whose tables another process may be bringing up to date is waited for longer.
async fn open(file: &File) -> Result<Connection, StoreError> {
    let end = Instant::now() + MIGRATION_TIME;
    let mut waits = false;
    loop {
        let own = file.clone();
        let opening = tokio::task::spawn_blocking(move || {
            let opened = own.connect().map_err(error).and_then(|mut connection| {
                let left_out = migrate(&mut connection)?;
                Ok((connection, left_out))
            });
            let may_pass = matches!(opened, Err(StoreError::Locked)) && is_outdated(&own);
            (opened, may_pass)
        });
        let (opened, may_pass) = opening.await.map_err(|_| StoreError::TimedOut)?;
        if may_pass && Instant::now() < end {
            if !std::mem::replace(&mut waits, true) {
                tracing::info!(
                    "another process has the database file, whose tables are not up to date yet: waiting for it"
                );
            }
            continue;
        }
        let (connection, left_out) = opened?;
        warn_of_left_out(left_out);
        return Ok(connection);
    }
}

/// Returns whether the tables of a file are not up to date, or not there. Reading waits for no lock.
fn is_outdated(file: &File) -> bool {
    let found = file.connect().and_then(|connection| {
        connection
            .query_row("SELECT max(version) FROM roundtrip_schema", (), |row| row.get::<_, Option<i64>>(0))
    });
    found
        .ok()
        .flatten()
        .is_none_or(|found| MIGRATIONS.after(found).is_ok_and(|mut steps| steps.next().is_some()))
}

/// Makes the tables, or brings them up to date, under the lock of the file. Returns the number of rows that were left out.
fn migrate(connection: &mut Connection) -> Result<i64, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    let count = |statement| transaction.query_row(statement, (), |row| row.get::<_, i64>(0)).map_err(error);
    let mut left_out = 0;
    for (version, step) in MIGRATIONS.after(version(&transaction).map_err(error)?)? {
        let moves_tasks = version == TASK_SERVICES;
        if moves_tasks {
            left_out = count("SELECT count(*) FROM roundtrip_tasks")?;
        }
        transaction.execute_batch(step).map_err(error)?;
        if moves_tasks {
            left_out -= count("SELECT count(*) FROM roundtrip_task")?;
        }
        transaction.execute("INSERT INTO roundtrip_schema (version) VALUES (?)", [version]).map_err(error)?;
    }
    transaction.commit().map_err(error)?;
    Ok(left_out)
}

/// Returns the version of the tables.
fn version(transaction: &Transaction<'_>) -> Sql<i64> {
    transaction.execute("CREATE TABLE IF NOT EXISTS roundtrip_schema (version INTEGER NOT NULL)", ())?;
    // Changes nothing, but a file that cannot be written is found now, not by the first round.
    transaction.execute("DELETE FROM roundtrip_schema WHERE version < 0", ())?;
    let found = "SELECT coalesce(max(version), 0) FROM roundtrip_schema";
    transaction.query_row(found, (), |row| row.get(0))
}

/// Names an error by SQLite's result code, the lowest byte of the extended one.
fn error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error().map(|error| error.extended_code & 0xff) {
        Some(ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => StoreError::Locked,
        Some(ffi::SQLITE_READONLY) => StoreError::ReadOnly,
        Some(ffi::SQLITE_FULL) => StoreError::NoSpace,
        Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => StoreError::Damaged(Arc::new(error)),
        Some(ffi::SQLITE_CANTOPEN) => StoreError::CannotOpen(Arc::new(error)),
        Some(ffi::SQLITE_TOOBIG | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH) => {
            StoreError::Unstorable(Arc::new(error))
        }
        _ => StoreError::Refused(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests;
