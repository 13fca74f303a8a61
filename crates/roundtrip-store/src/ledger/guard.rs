//! [`Guard`]: a claim on a round, released when it is dropped without a reply.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, Timestamp};
use roundtrip::server::ledger::{ClaimGuard, LedgerError};
use tokio::runtime::Handle;

use super::{Holder, Id, Inner, Records, end_of, label};
use crate::StoreError;
use crate::retry::retry;
use crate::to_end::ToEnd;

/// Pause between two attempts to record a reply while the database is away.
const PAUSE: Duration = Duration::from_secs(1);

/// A claim, or one that may have been made.
pub(super) struct Guard<R: Records> {
    ledger: Arc<Inner<R>>,
    id: Id,
    holder: Holder,
    /// Cleared when there is nothing to release: the claim was not made, or its round has had its effects.
    releases: bool,
}

impl<R: Records> Guard<R> {
    pub(super) fn new(ledger: Arc<Inner<R>>, id: Id, holder: Holder) -> Self {
        Self { ledger, id, holder, releases: true }
    }

    pub(super) fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Drops the guard of a claim that was not made.
    pub(super) fn dismiss(mut self) {
        self.releases = false;
    }

    /// Records the reply. If the database is away for too long, goes on trying by itself for as long as the reply is of use,
    /// and the lease is renewed meanwhile.
    async fn record_reply(mut self, reply: Bytes, until: Timestamp) -> Result<(), StoreError> {
        // From here on the round has had its effects: running it again is worse than refusing it.
        self.releases = false;
        let sealed = self.ledger.vault.seal(label(&self.id), &reply)?;
        let outcome = retry(|| self.write(&sealed, until)).await;
        if let Err(error) = &outcome
            && error.is_passing()
        {
            tokio::spawn(self.record_later(sealed, until));
        }
        outcome
    }

    async fn record_later(self, sealed: Vec<u8>, until: Timestamp) {
        while Timestamp::from(SystemTime::now()) <= until {
            tokio::time::sleep(PAUSE).await;
            match retry(|| self.write(&sealed, until)).await {
                Ok(()) => return tracing::info!("a reply has been recorded after all"),
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    return tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a reply could not be recorded"
                    );
                }
            }
        }
    }

    async fn write(&self, sealed: &[u8], until: Timestamp) -> Result<(), StoreError> {
        match self.ledger.records.record(&self.id, &self.holder, sealed, end_of(until)).await? {
            true => Ok(()),
            false => Err(StoreError::LeaseLost),
        }
    }
}

impl<R: Records> ClaimGuard for Guard<R> {
    fn record(
        self: Box<Self>,
        reply: Bytes,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        Box::pin(async move { Ok(ToEnd::new(self.record_reply(reply, until)).await?) })
    }
}

impl<R: Records> Drop for Guard<R> {
    fn drop(&mut self) {
        let (ledger, id, holder) = (Arc::clone(&self.ledger), self.id, self.holder);
        match Handle::try_current() {
            Ok(runtime) if self.releases => {
                runtime.spawn(async move {
                    if let Err(error) = retry(|| ledger.records.release(&id, &holder)).await {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "a claim could not be released: it ends with its lease");
                    }
                    ledger.held.remove(&id, &holder);
                });
            }
            _ => ledger.held.remove(&id, &holder),
        }
    }
}
