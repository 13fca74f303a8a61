//! [`OwnConnection`]: the connection of a renewer.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{ConnectOptions as _, PgConnection};
use tokio::time::timeout;

use super::error;
use crate::StoreError;

/// Longest time for a renewal, a new connection included. A shorter lease bounds it, too: it would have ended.
const PATIENCE: Duration = Duration::from_secs(8);
const SHORTEST: Duration = Duration::from_secs(1);

/// Connection that leases are renewed on. It waits for none of the store's, and is opened in the runtime that uses it.
pub(super) struct OwnConnection {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl OwnConnection {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self { options, connection: None }
    }

    /// Runs a statement that renews leases of this length. A connection that has broken since the last time is replaced.
    pub(super) async fn renew<'q>(
        &mut self,
        lease: Duration,
        statement: impl Fn() -> Query<'q, sqlx::Postgres, PgArguments> + Send,
    ) -> Result<Vec<PgRow>, StoreError> {
        let renewing = async {
            let has_been_used = self.connection.is_some();
            match self.once(statement()).await {
                Err(error) if has_been_used && error.is_passing() => self.once(statement()).await,
                outcome => outcome,
            }
        };
        timeout(lease.clamp(SHORTEST, PATIENCE), renewing).await.unwrap_or(Err(StoreError::TimedOut))
    }

    async fn once(
        &mut self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        // Taken: a connection that was interrupted in the middle of a statement is not used again.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(error)?,
        };
        let rows = statement.fetch_all(&mut connection).await.map_err(error)?;
        self.connection = Some(connection);
        Ok(rows)
    }
}
