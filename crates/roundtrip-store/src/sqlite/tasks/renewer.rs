//! [`SqliteRenewer`]: renews leases, on its own connection.

use std::time::Duration;

use roundtrip::task::{LeaseRenewer, Millis, TaskAnswer, TaskId};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::statements::RENEW;
use crate::StoreError;
use crate::sqlite::file::File;
use crate::sqlite::{Sql, error};
use crate::tasks::{Answer, millis_of, signed, unsigned};

/// Time for a renewal. A lock of the file is waited for less long.
const PATIENCE: Duration = Duration::from_secs(8);

/// Renewer of leases. Its connection waits for no change of tasks, and commits without waiting for the disk: a lease that a loss of
/// power takes back ends with its process.
pub(super) struct SqliteRenewer {
    file: File,
    connection: Option<Connection>,
}

impl SqliteRenewer {
    pub(super) fn new(file: File) -> Self {
        Self { file, connection: None }
    }

    async fn renewed(&mut self, held: Vec<(TaskId, u64)>, until: i64) -> Answer<Vec<(TaskId, u64)>> {
        let (file, open) = (self.file.clone(), self.connection.take());
        let renewal = tokio::task::spawn_blocking(move || -> Sql<_> {
            let mut connection = open.map_or_else(|| connect(&file), Ok)?;
            let renewed = renew(&mut connection, held, until)?;
            Ok((connection, renewed))
        });
        let done = tokio::time::timeout(PATIENCE, renewal).await.map_err(|_| StoreError::TimedOut)?;
        let (connection, renewed) = done.map_err(|_| StoreError::TimedOut)?.map_err(error)?;
        self.connection = Some(connection);
        Ok(renewed)
    }
}

fn connect(file: &File) -> Sql<Connection> {
    let connection = file.connect()?;
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}

fn renew(connection: &mut Connection, held: Vec<(TaskId, u64)>, until: i64) -> Sql<Vec<(TaskId, u64)>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut renewed = Vec::with_capacity(held.len());
    {
        let mut renew = transaction.prepare_cached(RENEW)?;
        for (id, fence) in held {
            let parameters = params![until, id.as_str(), signed(fence)];
            let version = renew.query_row(parameters, |row| row.get(0)).optional()?;
            renewed.extend(version.map(|version| (id, unsigned(version))));
        }
    }
    transaction.commit()?;
    Ok(renewed)
}

impl LeaseRenewer for SqliteRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        let until = signed(now.0).saturating_add(millis_of(lease));
        Box::pin(async move { Ok(self.renewed(held.to_vec(), until).await?) })
    }
}
