//! [`File`]: the file of a store, and how it is opened.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Sql;

/// Time for which a file that another process has locked is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(4);

/// Pause between two attempts at a lock that SQLite does not wait for.
const PAUSE: Duration = Duration::from_millis(2);

/// Statements of a connection that stay prepared: all that there are.
const PREPARED: usize = 64;

/// A file, and the settings of connections to it.
#[derive(Clone)]
pub(super) struct File {
    path: PathBuf,
    flags: OpenFlags,
    pub(super) lock_timeout: Duration,
    #[cfg(test)]
    pub(super) most_pages: Option<u32>,
}

impl File {
    pub(super) fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            // Each connection is used by one thread at a time.
            flags: OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            lock_timeout: LOCK_TIMEOUT,
            #[cfg(test)]
            most_pages: None,
        }
    }

    #[cfg(test)]
    pub(super) fn read_only(mut self) -> Self {
        self.flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        self
    }

    /// Opens a connection whose commits are durable, and creates the file if there is none.
    pub(super) fn connect(&self) -> Sql<Connection> {
        if self.flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
            create(&self.path);
        }
        let connection = Connection::open_with_flags(&self.path, self.flags)?;
        connection.busy_timeout(self.lock_timeout)?;
        connection.set_prepared_statement_cache_capacity(PREPARED);
        // Otherwise a statement with `LIMIT ?` is compiled anew each time that a value is bound.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.log_ahead(&connection)?;
        connection.pragma_update(None, "synchronous", "full")?;
        #[cfg(test)]
        if let Some(most) = self.most_pages {
            connection.pragma_update(None, "max_page_count", most)?;
        }
        Ok(connection)
    }

    /// Sets the write-ahead log. SQLite does not wait here for another connection that sets it in the same new file: both hold
    /// a lock that the other one needs.
    fn log_ahead(&self, connection: &Connection) -> Sql<()> {
        let end = Instant::now() + self.lock_timeout;
        loop {
            match connection.pragma_update(None, "journal_mode", "wal") {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end =>
                {
                    std::thread::sleep(PAUSE);
                }
                set => return set,
            }
        }
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
