//! [`SqliteRenewer`]: renews leases, on its own connection.

use std::time::Duration;

use roundtrip::task::{LeaseRenewer, Millis, TaskAnswer, TaskId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::statements::RENEW;
use crate::sqlite::Sql;
use crate::sqlite::own_connection::OwnConnection;
use crate::tasks::{millis_of, signed, unsigned};

/// Renewer of leases.
pub(super) struct SqliteRenewer(pub(super) OwnConnection);

fn renew(connection: &Connection, held: Vec<(TaskId, u64)>, until: i64) -> Sql<Vec<(TaskId, u64)>> {
    let mut renewed = Vec::with_capacity(held.len());
    let mut renew = connection.prepare_cached(RENEW)?;
    for (id, fence) in held {
        let parameters = params![until, id.as_str(), signed(fence)];
        let version = renew.query_row(parameters, |row| row.get(0)).optional()?;
        renewed.extend(version.map(|version| (id, unsigned(version))));
    }
    Ok(renewed)
}

impl LeaseRenewer for SqliteRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        let (held, until) = (held.to_vec(), signed(now.0).saturating_add(millis_of(lease)));
        Box::pin(async move { Ok(self.0.commit(move |connection| renew(connection, held, until)).await?) })
    }
}
