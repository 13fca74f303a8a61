//! Upkeep of a ledger: records that are over are removed.

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
        let swept = ledger.sweep().await;
        // An outage is logged once.
        if let Err(error) = &swept
            && !is_failing
        {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "records that are over cannot be removed"
            );
        }
        if is_failing && swept.is_ok() {
            tracing::info!("records that are over are removed again");
        }
        is_failing = swept.is_err();
    }
}

impl<R: Records> Inner<R> {
    async fn sweep(&self) -> Result<(), StoreError> {
        for _ in 0..BATCHES {
            if retry(|| self.records.sweep()).await? < u64::from(BATCH) {
                break;
            }
        }
        Ok(())
    }
}
