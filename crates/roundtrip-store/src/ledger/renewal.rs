//! Renewal of claims, in a thread with its own runtime and its own connection: neither a handler that blocks its runtime nor a slow
//! sweep lets the claim of a running round expire.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use roundtrip::seal::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Holder, Id, Inner, Records};
use crate::StoreError;

/// Shortest time that the database has for a renewal, and longest pause after a renewal that failed.
const SECOND: Duration = Duration::from_secs(1);

/// Renewer of claims. It waits for none of the store's connections, and opens its own in the runtime that uses it.
pub(crate) trait ClaimRenewer: Send {
    /// Renews the leases of claims.
    fn renew<'a>(&'a mut self, claims: &'a [(Id, Holder)]) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// End of the thread: it is there as long as this is.
pub(super) type ThreadEnd = oneshot::Sender<()>;

impl<R: Records> Inner<R> {
    /// Starts the thread, unless it has been started. It ends with the ledger.
    pub(super) fn ensure_renewals(self: &Arc<Self>) {
        self.renewals.get_or_init(|| {
            let (renewals, end) = oneshot::channel();
            let (ledger, renewer, period) = (Arc::downgrade(self), self.records.renewer(), self.lease / 3);
            let thread = thread::Builder::new().name("roundtrip-claims".to_owned());
            let started = thread.spawn(move || in_own_runtime(&ledger, renewer, period, end));
            if let Err(error) = started {
                tracing::error!(%error, "claims cannot be renewed: there is no thread for it");
            }
            renewals
        });
    }
}

fn in_own_runtime<R: Records>(
    ledger: &Weak<Inner<R>>,
    renewer: Box<dyn ClaimRenewer>,
    period: Duration,
    end: oneshot::Receiver<()>,
) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(renew(ledger, renewer, period, end)),
        Err(error) => tracing::error!(%error, "claims cannot be renewed: there is no runtime for it"),
    }
}

/// Renews claims for as long as there is a ledger, three times as often as they expire.
async fn renew<R: Records>(
    ledger: &Weak<Inner<R>>,
    mut renewer: Box<dyn ClaimRenewer>,
    period: Duration,
    mut end: oneshot::Receiver<()>,
) {
    let mut is_failing = false;
    loop {
        let pause = if is_failing { period.min(SECOND) } else { period };
        if timeout(pause, &mut end).await.is_ok() {
            return;
        }
        let Some(ledger) = ledger.upgrade() else { return };
        // The runtime of the worker may have ended before the replies were recorded.
        ledger.ensure_worker();
        let claims = ledger.held.all();
        drop(ledger);
        if claims.is_empty() {
            continue;
        }
        let renewed = timeout(period.max(SECOND), renewer.renew(&claims)).await;
        let renewed = renewed.unwrap_or(Err(StoreError::TimedOut));
        // An outage is logged once.
        if let Err(error) = &renewed
            && !is_failing
        {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "claims of running rounds cannot be renewed"
            );
        }
        if is_failing && renewed.is_ok() {
            tracing::info!("claims of running rounds are renewed again");
        }
        is_failing = renewed.is_err();
    }
}
