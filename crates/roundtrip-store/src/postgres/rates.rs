//! Rate limits in PostgreSQL. Their clock is the database's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roundtrip::server::rate::{Bucket, Taken};
use sqlx::Row;
use tokio::time::Instant;

use super::connections::Connections;
use super::error;
use crate::StoreError;
use crate::rates::{Micros, taken};

const TAKE: &str = include_str!("sql/rate-take.sql");
const SWEEP: &str = "DELETE FROM roundtrip_rates WHERE id IN (SELECT id FROM roundtrip_rates \
                     WHERE full_at < extract(epoch FROM now())::double precision * 1000000 \
                     LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING 1";

/// Buckets that one sweep removes at most.
const BATCH: usize = 1_000;
/// Batches that are removed at a time, at most.
const BATCHES: usize = 1_000;
/// Time between two sweeps of an instance.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// Statements of rate limits.
#[derive(Debug)]
pub(super) struct PostgresRates {
    connections: Arc<Connections>,
    next_sweep: Mutex<Instant>,
}

impl PostgresRates {
    pub(super) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, next_sweep: Mutex::new(Instant::now()) }
    }

    pub(super) async fn take(self: &Arc<Self>, bucket: &Bucket) -> Result<Taken, StoreError> {
        let Micros { interval, room } = Micros::of(bucket);
        let statement = sqlx::query(TAKE).bind(&bucket.id().as_bytes()[..]).bind(interval).bind(room);
        let row = self.connections.run(statement).await?;
        self.sweep_at_times();
        let Some(row) = row else { return Ok(Taken::Passed) };
        let (passes, wait) = (row.try_get(0).map_err(error)?, row.try_get(1).map_err(error)?);
        Ok(taken(if passes { None } else { Some(wait) }))
    }

    /// Begins to remove buckets that are full, if it is time: those of stores that count nothing are never looked at.
    fn sweep_at_times(self: &Arc<Self>) {
        let mut next = self.next_sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now >= *next {
            *next = now + SWEEP_EVERY;
            tokio::spawn(Arc::clone(self).sweep());
        }
    }

    async fn sweep(self: Arc<Self>) {
        for _ in 0..BATCHES {
            match self.connections.rows(sqlx::query(SWEEP)).await {
                Ok(removed) if removed.len() == BATCH => {}
                Ok(_) => return,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    return tracing::debug!(error, "buckets that are full have not been removed");
                }
            }
        }
    }
}
