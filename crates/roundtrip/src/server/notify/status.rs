//! Description of a task's state, set by its handler and stored at a pace.

use std::sync::Mutex;

use roundtrip_core::wire::ProgressNotificationParams;
use tokio::sync::Notify;

use crate::lock::lock;

/// Place for the last description that has not been stored yet: however often a handler sets it, one is kept (T14).
#[derive(Debug, Default)]
pub(crate) struct StatusSlot {
    latest: Mutex<Option<String>>,
    /// The last report of progress, for clients that are told of it.
    progress: Mutex<Option<ProgressNotificationParams>>,
    set: Notify,
}

impl StatusSlot {
    pub(crate) fn set(&self, message: String) {
        *lock(&self.latest) = Some(message);
        self.set.notify_one();
    }

    /// Sets the last report of progress, which is told with the next description.
    pub(crate) fn report(&self, progress: ProgressNotificationParams) {
        *lock(&self.progress) = Some(progress);
    }

    pub(crate) fn take_progress(&self) -> Option<ProgressNotificationParams> {
        lock(&self.progress).take()
    }

    /// Waits until there is a description to store.
    pub(crate) async fn is_set(&self) {
        loop {
            if lock(&self.latest).is_some() {
                return;
            }
            self.set.notified().await;
        }
    }

    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.latest).take()
    }
}
