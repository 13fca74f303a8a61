//! [`OwnConnection`]: the connection of a renewer.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::file::File;
use super::{Sql, error};
use crate::StoreError;

/// Time for a renewal. A lock of the file is waited for less long.
const PATIENCE: Duration = Duration::from_secs(8);

/// Connection that leases are renewed on. It waits for no other change, and commits without waiting for the disk: a lease that a
/// loss of power takes back ends with its process.
pub(super) struct OwnConnection {
    file: File,
    connection: Option<Connection>,
}

impl OwnConnection {
    pub(super) fn new(file: File) -> Self {
        Self { file, connection: None }
    }

    /// Commits a change.
    pub(super) async fn commit<T: Send + 'static>(
        &mut self,
        change: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (file, open) = (self.file.clone(), self.connection.take());
        let committing = tokio::task::spawn_blocking(move || -> Sql<_> {
            let mut connection = open.map_or_else(|| connect(&file), Ok)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok((connection, changed))
        });
        let done = tokio::time::timeout(PATIENCE, committing).await.map_err(|_| StoreError::TimedOut)?;
        let (connection, changed) = done.map_err(|_| StoreError::TimedOut)?.map_err(error)?;
        self.connection = Some(connection);
        Ok(changed)
    }
}

fn connect(file: &File) -> Sql<Connection> {
    let connection = file.connect()?;
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}
