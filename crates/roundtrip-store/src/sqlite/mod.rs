//! [`Sqlite`]: a store in one file.

mod file;
mod ledger;
mod reader;
mod tasks;
mod writer;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior, ffi};

use self::file::File;
use self::ledger::SqliteRecords;
use self::reader::Reader;
use self::tasks::{OtherProcesses, SqliteTasks};
use self::writer::Writer;
use crate::ledger::{SharedLedger, ledger_of};
use crate::opening::{Open, Settings};
use crate::schema::Migrations;
use crate::tasks::{SharedTasks, new_origin, tasks_of};
use crate::{Opening, StoreError};

type Sql<T> = Result<T, rusqlite::Error>;

const MIGRATIONS: Migrations = Migrations(&[
    include_str!("../../migrations/sqlite/0001-ledger.sql"),
    include_str!("../../migrations/sqlite/0002-tasks.sql"),
    include_str!("../../migrations/sqlite/0003-task-services.sql"),
]);

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
    /// release.
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
    let opened = file.clone();
    let opening = tokio::task::spawn_blocking(move || -> Result<Connection, StoreError> {
        let mut connection = opened.connect().map_err(error)?;
        migrate(&mut connection)?;
        Ok(connection)
    });
    let connection = opening.await.map_err(|_| StoreError::TimedOut)??;
    let (reader, origin) = (Reader::new(file.clone()), new_origin()?);
    let writer = Writer::start(connection, file.clone())?;
    let rows = SqliteTasks { file: file.clone(), writer: writer.clone(), reader, origin };
    let tasks = SharedTasks::new(rows, OtherProcesses { reader: Reader::new(file), origin }, settings);
    let records = SqliteRecords { writer, settings: settings.clone() };
    Ok(Sqlite { ledger: SharedLedger::start(records, settings)?, tasks })
}

/// Makes the tables, or brings them up to date, under the lock of the file.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(error)?;
    for (version, step) in MIGRATIONS.after(version(&transaction).map_err(error)?)? {
        transaction.execute_batch(step).map_err(error)?;
        transaction.execute("INSERT INTO roundtrip_schema (version) VALUES (?)", [version]).map_err(error)?;
    }
    transaction.commit().map_err(error)
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
