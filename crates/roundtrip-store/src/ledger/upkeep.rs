//! Upkeep of a ledger: leases are renewed, records that are over are removed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{BATCH, Inner, Records};
use crate::StoreError;
use crate::retry::retry;

/// Most batches that one turn removes; the rest waits for the next.
const BATCHES: u32 = 100;

/// Starts the task. It ends with the ledger.
pub(super) fn start<R: Records>(ledger: &Arc<Inner<R>>, period: Duration) {
    tokio::spawn(turns(Arc::downgrade(ledger), period));
}

async fn turns<R: Records>(ledger: Weak<Inner<R>>, period: Duration) {
    let mut is_failing = false;
    loop {
        tokio::time::sleep(period).await;
        let Some(ledger) = ledger.upgrade() else { return };
        let turn = ledger.turn().await;
        // An outage is logged once.
        if let Err(error) = &turn
            && !is_failing
        {
            tracing::warn!(error = error as &dyn std::error::Error, "the upkeep of the ledger fails");
        }
        if is_failing && turn.is_ok() {
            tracing::info!("the upkeep of the ledger succeeds again");
        }
        is_failing = turn.is_err();
    }
}

impl<R: Records> Inner<R> {
    /// Renews the leases first: they are what cannot wait.
    async fn turn(&self) -> Result<(), StoreError> {
        let claims = self.held.all();
        if !claims.is_empty() {
            retry(|| self.records.renew(&claims)).await?;
        }
        for _ in 0..BATCHES {
            if retry(|| self.records.sweep()).await? < u64::from(BATCH) {
                break;
            }
        }
        Ok(())
    }
}
