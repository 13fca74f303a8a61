//! [`Connections`]: the connections of a store.
//!
//! sqlx has a pool, which asks the database whether a connection is alive each time it is taken or given back: an exchange for
//! each exchange. These are found dead when they are used, and what was asked is asked again.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions, PgConnection};
use tokio::sync::Semaphore;

use super::error;
use crate::StoreError;
use crate::retry::in_time;

/// Connections of a store. One that was interrupted in the middle of a statement is closed, not used again.
pub(super) struct Connections {
    options: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    permits: Semaphore,
}

impl Connections {
    pub(super) fn new(options: PgConnectOptions, most: usize) -> Self {
        Self { options, idle: Mutex::default(), permits: Semaphore::new(most.min(Semaphore::MAX_PERMITS)) }
    }

    /// Runs a function on a new connection, and keeps the connection that it returns.
    pub(super) async fn with_new<F>(&self, run: impl FnOnce(PgConnection) -> F) -> Result<(), StoreError>
    where
        F: Future<Output = Result<PgConnection, StoreError>>,
    {
        let connection = in_time(async { self.options.connect().await.map_err(error) }).await?;
        let connection = run(connection).await?;
        self.idle().push(connection);
        Ok(())
    }

    /// Runs one statement, which is committed when this returns, and returns its first row.
    pub(super) async fn run(
        &self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
    ) -> Result<Option<PgRow>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs one statement, which is committed when this returns, and returns its rows.
    pub(super) async fn rows(
        &self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let Ok(_permit) = self.permits.acquire().await else { return Err(StoreError::TimedOut) };
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(error)?,
        };
        // All rows, though there may be one: the commit is done when the database is ready for the next statement.
        match statement.fetch_all(&mut connection).await.map_err(error) {
            Ok(rows) => {
                self.idle().push(connection);
                Ok(rows)
            }
            // A server that is read-only now may have been the primary: the next connection finds the new one.
            Err(failed) if failed.is_passing() || matches!(failed, StoreError::ReadOnly) => {
                // The others have broken, too.
                self.idle().clear();
                Err(failed)
            }
            Err(failed) => {
                self.idle().push(connection);
                Err(failed)
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The options have the password in them.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}
