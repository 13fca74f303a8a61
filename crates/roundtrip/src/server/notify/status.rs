//! Description of a task's state, set by its handler and stored at a pace.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::lock::lock;

/// Place for the last description that has not been stored yet: however often a handler sets it, one is kept (T14).
#[derive(Debug, Default)]
pub(crate) struct StatusSlot {
    latest: Mutex<Option<String>>,
    set: Notify,
}

impl StatusSlot {
    pub(crate) fn set(&self, message: String) {
        *lock(&self.latest) = Some(message);
        self.set.notify_one();
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
