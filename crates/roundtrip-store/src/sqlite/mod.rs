//! [`Sqlite`]: a store in one file.

mod ledger;
mod reader;
mod tasks;
mod writer;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use self::ledger::SqliteRecords;
use self::reader::Reader;
use self::tasks::{OtherProcesses, SqliteTasks};
use self::writer::Writer;
use crate::ledger::{SharedLedger, ledger_of};
use crate::opening::{Open, Settings};
use crate::schema::Migrations;
use crate::tasks::{SharedTasks, new_origin, tasks_of};
use crate::{Opening, StoreError};

type Sql<T> = Result<T, sqlx::Error>;

const MIGRATIONS: Migrations = Migrations(&[
    include_str!("../../migrations/sqlite/0001-ledger.sql"),
    include_str!("../../migrations/sqlite/0002-tasks.sql"),
]);

/// Time for which a file that another process has locked is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(4);

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
        create(Path::new(&path));
        start(options(Path::new(&path)), &settings).await
    }
}

/// Creates a file that its owner alone can read: SQLite's own would be for everyone. Errors are left to SQLite, which names them.
fn create(path: &Path) {
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    drop(file.open(path));
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(LOCK_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .thread_name(|_| "roundtrip-sqlite".into())
        .disable_statement_logging()
}

async fn start(options: SqliteConnectOptions, settings: &Settings) -> Result<Sqlite, StoreError> {
    let mut connection = options.connect().await.map_err(error)?;
    migrate(&mut connection).await?;
    let (reader, origin) = (Reader::new(options.clone()), new_origin()?);
    let writer = Writer::start(connection, options);
    let rows = SqliteTasks { writer: writer.clone(), reader: reader.clone(), origin };
    let tasks = SharedTasks::new(rows, OtherProcesses { reader, origin }, settings);
    let records = SqliteRecords { writer, settings: settings.clone() };
    Ok(Sqlite { ledger: SharedLedger::start(records, settings)?, tasks })
}

/// Makes the tables, or brings them up to date, under the lock of the file.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(error)?;
    let table = "CREATE TABLE IF NOT EXISTS roundtrip_schema (version INTEGER NOT NULL)";
    sqlx::raw_sql(table).execute(&mut *transaction).await.map_err(error)?;
    // Changes nothing, but a file that cannot be written is found now, not by the first round.
    let probe = "DELETE FROM roundtrip_schema WHERE version < 0";
    sqlx::raw_sql(probe).execute(&mut *transaction).await.map_err(error)?;
    let found = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM roundtrip_schema");
    let found: i64 = found.fetch_one(&mut *transaction).await.map_err(error)?;
    for (version, step) in MIGRATIONS.after(found)? {
        sqlx::raw_sql(step).execute(&mut *transaction).await.map_err(error)?;
        let insert = sqlx::query("INSERT INTO roundtrip_schema (version) VALUES (?)").bind(version);
        insert.execute(&mut *transaction).await.map_err(error)?;
    }
    transaction.commit().await.map_err(error)
}

/// Names an error by SQLite's result code, the lowest byte of the extended one.
fn error(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => StoreError::Locked,
        Some(8) => StoreError::ReadOnly,
        Some(13) => StoreError::NoSpace,
        Some(11 | 26) => StoreError::Damaged(Arc::new(error)),
        Some(14) => StoreError::CannotOpen(Arc::new(error)),
        Some(_) => StoreError::Refused(Arc::new(error)),
        None if matches!(error, sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }) => {
            StoreError::Refused(Arc::new(error))
        }
        None => StoreError::Unavailable(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests;
