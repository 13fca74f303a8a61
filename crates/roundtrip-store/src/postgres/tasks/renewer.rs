//! [`PostgresRenewer`]: renews leases, on its own connection.

use std::time::Duration;

use roundtrip::task::{LeaseRenewer, Millis, TaskAnswer, TaskId};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection, Row as _};
use tokio::time::timeout;

use super::statements::RENEW;
use super::{error, id, readable};
use crate::StoreError;
use crate::tasks::{Answer, millis_of, signed, unsigned};

/// Longest time for a renewal, a new connection included. A shorter lease bounds it, too: a renewal is no use to one that has ended.
const PATIENCE: Duration = Duration::from_secs(8);
const SHORTEST: Duration = Duration::from_secs(1);

/// Renewer of leases. It waits for none of the store's connections, and opens its own in the runtime that uses it.
pub(super) struct PostgresRenewer {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

impl PostgresRenewer {
    pub(super) fn new(options: PgConnectOptions) -> Self {
        Self { options, connection: None }
    }

    /// Renews leases. A connection that has broken since the last time is replaced.
    async fn renewed(&mut self, held: &[(TaskId, u64)], lease: Duration) -> Answer<Vec<(TaskId, u64)>> {
        let has_been_used = self.connection.is_some();
        match self.once(held, lease).await {
            Err(error) if has_been_used && error.is_passing() => self.once(held, lease).await,
            outcome => outcome,
        }
    }

    async fn once(&mut self, held: &[(TaskId, u64)], lease: Duration) -> Answer<Vec<(TaskId, u64)>> {
        // Taken: a connection that was interrupted in the middle of a statement is not used again.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(error)?,
        };
        let statement = sqlx::query(RENEW)
            .bind(held.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
            .bind(held.iter().map(|(_, fence)| signed(*fence)).collect::<Vec<_>>())
            .bind(millis_of(lease));
        let rows = statement.fetch_all(&mut connection).await.map_err(error)?;
        self.connection = Some(connection);
        Ok(readable(rows.iter().map(|row| super::Read::Ok((id(row)?, unsigned(row.try_get(1)?))))))
    }
}

impl LeaseRenewer for PostgresRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        _: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        Box::pin(async move {
            let renewed = timeout(lease.clamp(SHORTEST, PATIENCE), self.renewed(held, lease)).await;
            Ok(renewed.unwrap_or(Err(StoreError::TimedOut))?)
        })
    }
}
