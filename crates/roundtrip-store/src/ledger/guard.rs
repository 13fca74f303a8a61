//! [`Guard`]: a claim on a round, released when it is dropped without a reply.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, Timestamp};
use roundtrip::server::ledger::{ClaimGuard, LedgerError, RoundKey};
use tokio::runtime::Handle;

use super::backlog::ClaimedReply;
use super::{Holder, Inner, Records, label};
use crate::retry::{in_time, retry};
use crate::to_end::ToEnd;

/// A claim, or one that may have been made.
pub(super) struct Guard<R: Records> {
    ledger: Arc<Inner<R>>,
    key: RoundKey,
    holder: Holder,
    at_drop: AtDrop,
}

/// End of a claim whose guard is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    /// The round may run again at once.
    Release,
    /// Nothing is to be released: the claim was not made, or its round has had its effects.
    Forget,
    /// The backlog has the claim, until its reply is recorded.
    HandOver,
}

impl<R: Records> Guard<R> {
    pub(super) fn new(ledger: Arc<Inner<R>>, key: RoundKey, holder: Holder) -> Self {
        Self { ledger, key, holder, at_drop: AtDrop::Release }
    }

    pub(super) fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Drops the guard of a claim that was not made.
    pub(super) fn dismiss(mut self) {
        self.at_drop = AtDrop::Forget;
    }

    /// Records the reply. If the database refuses it, the reply waits in the backlog, and its claim is renewed meanwhile.
    async fn record_reply(mut self, reply: Bytes, until: Timestamp) -> Result<(), LedgerError> {
        // From here on the round has had its effects: running it again is worse than refusing it.
        self.at_drop = AtDrop::Forget;
        let sealed = self.ledger.vault.seal(label(self.key.id()), &reply)?;
        let reply = ClaimedReply { key: self.key, holder: self.holder, sealed, until };
        // While others wait, one attempt is enough: this reply waits with them.
        let written = match self.ledger.backlog.is_empty() {
            true => retry(|| self.ledger.write(&reply)).await,
            false => in_time(self.ledger.write(&reply)).await,
        };
        let Err(error) = written else { return Ok(()) };
        if !error.may_pass_for_a_record() {
            return Err(error.into());
        }
        self.at_drop = AtDrop::HandOver;
        self.ledger.record_later(reply, &error);
        Err(LedgerError::Deferred(Box::new(error)))
    }
}

impl<R: Records> ClaimGuard for Guard<R> {
    fn record(
        self: Box<Self>,
        reply: Bytes,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        Box::pin(ToEnd::new(self.record_reply(reply, until)))
    }
}

impl<R: Records> Drop for Guard<R> {
    fn drop(&mut self) {
        if self.at_drop == AtDrop::HandOver {
            return;
        }
        let (ledger, id, holder) = (Arc::clone(&self.ledger), *self.key.id(), self.holder);
        match Handle::try_current() {
            Ok(runtime) if self.at_drop == AtDrop::Release => {
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
