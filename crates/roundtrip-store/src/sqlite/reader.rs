//! [`Reader`]: the connections of a process that read. They do not wait for commits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use rusqlite::Connection;

use super::file::File;
use super::{Sql, error};
use crate::StoreError;

/// Most connections: as many reads can be under way without a wait.
const CONNECTIONS: usize = 4;

/// Handle to the connections, each of which is opened when it is first needed.
#[derive(Clone)]
pub(super) struct Reader(Arc<Inner>);

struct Inner {
    file: File,
    connections: [Mutex<Option<Connection>>; CONNECTIONS],
}

type Held<'a> = MutexGuard<'a, Option<Connection>>;

impl Reader {
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Inner { file, connections: Default::default() }))
    }

    /// Reads a few rows by an index, in the calling thread: that takes microseconds, less than the way to another thread and back.
    /// A wait, for a connection or for a lock of the file, is left to another thread.
    pub(super) async fn few<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Sql<T> + Send + 'static,
    {
        match self.0.at_once(&read) {
            Some(outcome) => outcome,
            None => self.many(read).await,
        }
    }

    /// Reads in another thread. It sees what was committed before.
    pub(super) async fn many<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Sql<T> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || inner.patiently(&read));
        reading.await.unwrap_or(Err(StoreError::TimedOut))
    }
}

impl Inner {
    /// Reads without waiting for anything. `None` if it would have to.
    fn at_once<T>(&self, read: impl Fn(&Connection) -> Sql<T>) -> Option<Result<T, StoreError>> {
        let held = self.connections.iter().find_map(|connection| match connection.try_lock() {
            Ok(held) if held.is_some() => Some(held),
            _ => None,
        })?;
        match read(held.as_ref()?).map_err(error) {
            Err(StoreError::Locked) => None,
            outcome => Some(outcome),
        }
    }

    /// Reads, and waits for a lock of the file as long as is allowed.
    fn patiently<T>(&self, read: impl Fn(&Connection) -> Sql<T>) -> Result<T, StoreError> {
        let mut held = self.hold();
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(self.file.connect().map_err(error)?),
        };
        let outcome = (|| {
            connection.busy_timeout(self.file.lock_timeout)?;
            let rows = read(connection)?;
            connection.busy_timeout(Duration::ZERO)?;
            Ok(rows)
        })();
        if outcome.is_err() {
            // Whatever it is, a new connection is a new beginning, and has the right timeout.
            *held = None;
        }
        outcome.map_err(error)
    }

    /// Returns a connection that is free, or waits for the first.
    fn hold(&self) -> Held<'_> {
        let free = self.connections.iter().find_map(|connection| match connection.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        free.unwrap_or_else(|| self.connections[0].lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// The file's path may say much.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
