//! Running calls of one connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    /// Number of calls that are queued for their first poll or in it.
    starting: AtomicUsize,
    started: Notify,
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

    /// Counts a call until it has come back from its first poll.
    pub(super) fn start(self: &Arc<Self>) -> Starting {
        self.starting.fetch_add(1, Ordering::Relaxed);
        Starting(Arc::clone(self))
    }

    /// Returns the number of calls that have not come back from their first poll.
    pub(super) fn starting(&self) -> usize {
        self.starting.load(Ordering::Acquire)
    }

    /// Waits until `room` is true, asking again whenever a call has started.
    pub(super) async fn started_until(&self, room: impl Fn() -> bool) {
        loop {
            let started = self.started.notified();
            if room() {
                return;
            }
            started.await;
        }
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

/// A call that has not come back from its first poll.
#[derive(Debug)]
pub(super) struct Starting(Arc<Calls>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Release);
        self.0.started.notify_one();
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
