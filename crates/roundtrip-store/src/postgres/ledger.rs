//! The ledger in PostgreSQL. Its clock is the database's.

use std::sync::Arc;
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use roundtrip::server::ledger::RoundKey;
use sqlx::Row;
use sqlx::postgres::{PgConnectOptions, PgRow};

use super::connections::Connections;
use super::error;
use super::own_connection::OwnConnection;
use crate::ledger::{BATCH, ClaimRenewer, Found, Holder, Id, Records};
use crate::opening::Settings;
use crate::{StoreError, Usage};

const CLAIM: &str = include_str!("sql/claim.sql");
const RECORD: &str = include_str!("sql/record.sql");
const RELEASE: &str = include_str!("sql/release.sql");
const SWEEP: &str = include_str!("sql/sweep.sql");

const IS_RUNNING: &str = "SELECT 1 FROM roundtrip_ledger WHERE id = $1 AND reply IS NULL \
                          AND ends > (extract(epoch FROM now()) * 1000)::bigint";
const RESEAL: &str = "UPDATE roundtrip_ledger SET reply = $1 WHERE id = $2 AND reply = $3";
const RENEW: &str = "UPDATE roundtrip_ledger r SET ends = (extract(epoch FROM now()) * 1000)::bigint + $1 \
                     FROM unnest($2::bytea[], $3::bytea[]) AS own (id, holder) \
                     WHERE r.id = own.id AND r.holder = own.holder AND r.reply IS NULL";
const TIDY: &str =
    "DELETE FROM roundtrip_ledger_counts WHERE owner = ANY($1) AND records <= 0 AND bytes <= 0";
const USAGE: &str = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint \
                     FROM roundtrip_ledger_counts WHERE owner = ''";

/// Statements of the ledger.
pub(super) struct PostgresRecords {
    pub(super) connections: Arc<Connections>,
    pub(super) options: PgConnectOptions,
    pub(super) settings: Settings,
}

impl PostgresRecords {
    /// Removes the counts of callers that hold nothing any more. Returns the number of records that were removed.
    async fn tidy(&self, removed: Option<PgRow>) -> Result<u64, StoreError> {
        let Some(row) = removed else { return Ok(0) };
        let owners: Vec<Vec<u8>> = row.try_get("owners").map_err(error)?;
        if !owners.is_empty() {
            self.connections.run(sqlx::query(TIDY).bind(owners)).await?;
        }
        number(&row, 0)
    }
}

impl Records for PostgresRecords {
    async fn claim(&self, key: &RoundKey, holder: &Holder, has_room: bool) -> Result<Found, StoreError> {
        let capacity = if has_room { self.settings.capacity } else { Usage::default() };
        let statement = sqlx::query(CLAIM)
            .bind(&key.id()[..])
            .bind(&key.call().as_bytes()[..])
            .bind(&key.owner().as_bytes()[..])
            .bind(&holder[..])
            .bind(millis(self.settings.lease))
            .bind(amount(capacity.records))
            .bind(amount(capacity.bytes));
        let Some(row) = self.connections.run(statement).await? else { return Ok(Found::Running) };
        Ok(match row.try_get::<i32, _>(0).map_err(error)? {
            0 => Found::Claimed,
            1 => Found::OtherCall,
            2 => Found::Running,
            3 => Found::Done(row.try_get(1).map_err(error)?),
            _ => Found::Full,
        })
    }

    async fn is_running(&self, id: &Id) -> Result<bool, StoreError> {
        Ok(self.connections.run(sqlx::query(IS_RUNNING).bind(&id[..])).await?.is_some())
    }

    async fn record(&self, id: &Id, holder: &Holder, reply: &[u8], end: i64) -> Result<bool, StoreError> {
        let statement = sqlx::query(RECORD)
            .bind(&id[..])
            .bind(&holder[..])
            .bind(reply)
            .bind(amount(reply.len() as u64))
            .bind(end);
        Ok(self.connections.run(statement).await?.is_some())
    }

    async fn reseal(&self, id: &Id, old: &[u8], new: &[u8]) -> Result<(), StoreError> {
        self.connections.run(sqlx::query(RESEAL).bind(new).bind(&id[..]).bind(old)).await.map(drop)
    }

    fn renewer(&self) -> Box<dyn ClaimRenewer> {
        let connection = OwnConnection::new(self.options.clone());
        Box::new(PostgresClaims { connection, lease: self.settings.lease })
    }

    async fn release(&self, id: &Id, holder: &Holder) -> Result<(), StoreError> {
        let removed = self.connections.run(sqlx::query(RELEASE).bind(&id[..]).bind(&holder[..])).await?;
        self.tidy(removed).await.map(drop)
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let removed = self.connections.run(sqlx::query(SWEEP).bind(i64::from(BATCH))).await?;
        self.tidy(removed).await
    }

    async fn usage(&self) -> Result<Usage, StoreError> {
        match self.connections.run(sqlx::query(USAGE)).await? {
            Some(row) => Ok(Usage { records: number(&row, 0)?, bytes: number(&row, 1)? }),
            None => Ok(Usage::default()),
        }
    }
}

/// Renewer of claims.
struct PostgresClaims {
    connection: OwnConnection,
    lease: Duration,
}

impl ClaimRenewer for PostgresClaims {
    fn renew<'a>(&'a mut self, claims: &'a [(Id, Holder)]) -> BoxFuture<'a, Result<(), StoreError>> {
        let lease = self.lease;
        let statement = move || {
            let (ids, holders): (Vec<&[u8]>, Vec<&[u8]>) =
                claims.iter().map(|(id, holder)| (&id[..], &holder[..])).unzip();
            sqlx::query(RENEW).bind(millis(lease)).bind(ids).bind(holders)
        };
        Box::pin(async move { self.connection.renew(lease, statement).await.map(drop) })
    }
}

fn millis(lease: Duration) -> i64 {
    amount(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

/// Returns an amount as the database takes it. Sums of a few stay within its range.
fn amount(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

fn number(row: &PgRow, column: usize) -> Result<u64, StoreError> {
    let number: i64 = row.try_get(column).map_err(error)?;
    Ok(u64::try_from(number).unwrap_or_default())
}
