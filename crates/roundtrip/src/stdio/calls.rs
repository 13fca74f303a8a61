//! Calls of one connection that did not finish at once.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use roundtrip_core::wire::RequestId;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::outgoing::Outgoing;
use crate::lock::lock;

/// Running calls. Only a call that is registered here may write.
#[derive(Debug, Default)]
pub(super) struct Calls {
    running: Mutex<HashMap<RequestId, Running>>,
    pub(super) next_number: AtomicU64,
    ended: Notify,
}

/// A running call.
#[derive(Debug)]
pub(super) struct Running {
    /// Distinguishes it from a later call of the same id.
    pub(super) number: u64,
    pub(super) task: AbortHandle,
    /// True for a subscription: it runs as long as the client listens, so draining does not wait for it.
    pub(super) listening: bool,
}

impl Calls {
    pub(super) fn running(&self) -> MutexGuard<'_, HashMap<RequestId, Running>> {
        lock(&self.running)
    }

    /// Cancels a call; returns whether there was one.
    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let running = self.running().remove(id);
        running.map(|running| running.task.abort()).is_some()
    }

    /// Ends all subscriptions.
    pub(super) fn end_listening(&self) {
        self.running().retain(|_, running| {
            if running.listening {
                running.task.abort();
            }
            !running.listening
        });
    }

    /// Waits until no call is left.
    pub(super) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.running().is_empty() {
                return;
            }
            ended.await;
        }
    }

    pub(super) fn abort_all(&self) {
        self.running().drain().for_each(|(_, running)| running.task.abort());
    }
}

/// Registration of one running call. An id can be used again as soon as its call was cancelled, while the aborted
/// task may still run: the number says which call owns the registration.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) calls: Arc<Calls>,
    pub(super) outgoing: Arc<Outgoing>,
    pub(super) id: RequestId,
    pub(super) number: u64,
}

impl Place {
    /// Adds a line of the call.
    pub(super) fn send(&self, line: &[u8]) {
        self.while_running(|_| self.outgoing.push(line));
    }

    /// Adds a line of the call that may be dropped if the reader does not keep up.
    pub(super) fn send_hint(&self, line: &[u8]) {
        self.while_running(|_| self.outgoing.push_hint(line));
    }

    /// Adds the last line of the call.
    pub(super) fn end(&self, line: &[u8]) {
        self.while_running(|running| {
            running.remove(&self.id);
            self.outgoing.push(line);
            self.calls.ended.notify_one();
        });
    }

    /// Runs `write` under the lock, unless the call has been cancelled: then nothing more is sent for it (I2).
    fn while_running(&self, write: impl FnOnce(&mut HashMap<RequestId, Running>)) {
        let mut running = self.calls.running();
        if running.get(&self.id).is_some_and(|running| running.number == self.number) {
            write(&mut running);
        }
    }
}
