//! [`PostgresRenewer`]: renews leases, on its own connection.

use std::time::Duration;

use roundtrip::task::{LeaseRenewer, Millis, TaskAnswer, TaskId};
use sqlx::Row as _;

use super::statements::RENEW;
use super::{Read, id, readable};
use crate::postgres::own_connection::OwnConnection;
use crate::tasks::{millis_of, signed, unsigned};

/// Renewer of leases.
pub(super) struct PostgresRenewer(pub(super) OwnConnection);

impl LeaseRenewer for PostgresRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        _: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        Box::pin(async move {
            let statement = || {
                sqlx::query(RENEW)
                    .bind(held.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
                    .bind(held.iter().map(|(_, fence)| signed(*fence)).collect::<Vec<_>>())
                    .bind(millis_of(lease))
            };
            let rows = self.0.renew(lease, statement).await?;
            Ok(readable(rows.iter().map(|row| Read::Ok((id(row)?, unsigned(row.try_get(1)?))))))
        })
    }
}
