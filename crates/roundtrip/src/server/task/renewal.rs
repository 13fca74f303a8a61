//! [`Renewals`]: leases of this process, and the thread that renews them. It has a runtime and a connection to the store of its own:
//! a handler that computes or blocks keeps no lease from being renewed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use tokio::time::timeout;

use super::held::Stop;
use super::lease::Lease;
use super::validity::{Poke, TwoClocks};
use crate::lock::lock;
use crate::server::outcome::caught;
use crate::task::{LeaseRenewer, Millis, TaskId, TaskStoreHandle};

/// Number of leases after which a run that was not polled is reported.
const UNPOLLED: u32 = 3;
/// Shortest time that the store has to renew leases.
const SHORTEST: Duration = Duration::from_secs(1);

/// Leases that this process has.
#[derive(Debug)]
pub(super) struct Renewals {
    running: Mutex<HashMap<TaskId, Arc<Lease>>>,
    length: Duration,
    poke: Poke,
    /// True once the thread runs.
    thread: Mutex<bool>,
}

/// Entry of a lease that is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct Renewed {
    renewals: Arc<Renewals>,
    lease: Arc<Lease>,
}

impl Renewals {
    pub(super) fn new(length: Duration) -> Arc<Self> {
        Arc::new(Self { running: Mutex::default(), length, poke: Poke::default(), thread: Mutex::default() })
    }

    pub(super) fn poke(&self) -> Poke {
        self.poke.clone()
    }

    /// Renews a lease from here on.
    pub(super) fn add(self: &Arc<Self>, lease: &Arc<Lease>, store: &TaskStoreHandle) -> Renewed {
        self.ensure_thread(store);
        let before = lock(&self.running).insert(lease.id().clone(), Arc::clone(lease));
        // Another process has had the task in between, and this one has it again.
        if let Some(before) = before {
            before.stop(Stop::Lost);
        }
        Renewed { renewals: Arc::clone(self), lease: Arc::clone(lease) }
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Arc<Lease>> {
        lock(&self.running).get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Lease>> {
        lock(&self.running).values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.running).len()
    }

    fn ensure_thread(self: &Arc<Self>, store: &TaskStoreHandle) {
        let mut runs = lock(&self.thread);
        if *runs {
            return;
        }
        let (renewals, renewer) = (Arc::downgrade(self), store.0.renewer());
        let (length, poke) = (self.length, self.poke());
        let thread = thread::Builder::new().name("roundtrip-leases".to_owned());
        let started = thread.spawn(move || renew_in_own_runtime(&renewals, renewer, length, &poke));
        // Tried again with the next lease.
        *runs = started
            .inspect_err(
                |error| tracing::error!(%error, "leases cannot be renewed: there is no thread for it"),
            )
            .is_ok();
    }

    /// Renews all leases by one statement, and returns whether that was possible.
    async fn renew(&self, renewer: &mut dyn LeaseRenewer) -> bool {
        let leases: Vec<(u64, Arc<Lease>)> =
            self.all().into_iter().map(|lease| (lease.fence(), lease)).collect();
        if leases.is_empty() {
            return true;
        }
        let held: Vec<(TaskId, u64)> =
            leases.iter().map(|(fence, lease)| (lease.id().clone(), *fence)).collect();
        let sent = TwoClocks::now();
        let renewing =
            timeout((self.length / 3).max(SHORTEST), renewer.renew(&held, self.length, Millis::now()));
        match renewing.await {
            Ok(Ok(renewed)) => {
                let renewed: HashMap<TaskId, u64> = renewed.into_iter().collect();
                for (fence, lease) in &leases {
                    match renewed.get(lease.id()) {
                        Some(version) => lease.renewed(*fence, sent, *version),
                        None => lease.missed(*fence),
                    }
                }
                return true;
            }
            Ok(Err(error)) => {
                tracing::error!(error = &error as &dyn std::error::Error, "leases cannot be renewed");
            }
            Err(_) => tracing::error!("leases cannot be renewed: the store does not answer"),
        }
        false
    }

    /// Reports runs that were not polled for a long time, unless this thread was not either: then the process was stopped.
    fn report_unpolled(&self, last: TwoClocks) {
        let was_stopped = last.passed() > self.length;
        for lease in self.all() {
            if let Some(unpolled) = lease.unpolled(self.length * UNPOLLED).filter(|_| !was_stopped) {
                tracing::warn!(
                    task = %lease.id(),
                    ?unpolled,
                    "the handler of a task blocks its thread: its lease is renewed, and other tasks wait; run what computes or \
                     blocks in `spawn_blocking`"
                );
            }
        }
    }
}

/// Ends the thread.
impl Drop for Renewals {
    fn drop(&mut self) {
        self.poke.poke();
    }
}

impl Drop for Renewed {
    fn drop(&mut self) {
        let mut running = lock(&self.renewals.running);
        // The process may have taken the task again under another lease.
        if running.get(self.lease.id()).is_some_and(|other| Arc::ptr_eq(other, &self.lease)) {
            running.remove(self.lease.id());
        }
    }
}

/// Renews leases for as long as there is a server, three times as often as they expire.
fn renew_in_own_runtime(
    renewals: &Weak<Renewals>,
    mut renewer: Box<dyn LeaseRenewer>,
    length: Duration,
    poke: &Poke,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "leases cannot be renewed: there is no runtime for it"),
    };
    runtime.block_on(async {
        let (mut pause, mut last) = (length / 3, TwoClocks::now());
        loop {
            // Whether it was poked or not, it is time.
            let _ = timeout(pause, poke.poked()).await;
            let Some(renewals) = renewals.upgrade() else { return };
            renewals.report_unpolled(std::mem::replace(&mut last, TwoClocks::now()));
            let renewed = caught(renewals.renew(&mut *renewer)).await;
            if renewed.is_none() {
                tracing::error!("the task store panicked, and is asked again to renew leases");
            }
            pause = if renewed == Some(true) { length / 3 } else { SHORTEST.min(length / 3) };
            if renewed != Some(true) {
                // A step that waits for its lease pokes at once.
                tokio::time::sleep(SHORTEST.min(length / 30)).await;
            }
        }
    });
}
