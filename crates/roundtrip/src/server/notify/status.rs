//! Description of a task's state and parts of its result, set by its handler and stored at a pace.

use std::sync::Mutex;

use roundtrip_core::wire::{ProgressNotificationParams, Raw};
use tokio::sync::Notify;

use crate::lock::lock;

/// Most bytes of parts that a task keeps. Further ones are not stored; the result is whole.
pub(crate) const MOST_PART_BYTES: usize = 1024 * 1024;

/// Place for the last description that has not been stored yet: however often a handler sets it, one is kept (T14).
#[derive(Debug, Default)]
pub(crate) struct StatusSlot {
    latest: Mutex<Option<String>>,
    /// The last report of progress, for clients that are told of it.
    progress: Mutex<Option<ProgressNotificationParams>>,
    parts: Mutex<NewParts>,
    set: Notify,
}

/// Parts of a task's result that have not been stored yet.
#[derive(Debug, Default)]
struct NewParts {
    parts: Vec<Raw>,
    /// Bytes of all parts that were ever added.
    bytes: usize,
    /// Number of parts, from the first on, that the record has already.
    stored: u32,
    /// Number of the next part.
    next: u32,
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

    /// Sets the number and the size of the parts that the record has: a handler that runs again adds them again.
    pub(crate) fn has_parts(&self, stored: u32, bytes: usize) {
        let mut new = lock(&self.parts);
        (new.stored, new.bytes) = (stored, bytes);
    }

    /// Adds a part of the result. Those that the record has already are left out, and so are those beyond what a task keeps.
    pub(crate) fn add_part(&self, part: impl FnOnce() -> Option<Raw>) {
        let mut new = lock(&self.parts);
        let number = new.next;
        new.next = number.saturating_add(1);
        if number < new.stored || new.bytes > MOST_PART_BYTES {
            return;
        }
        let part = part();
        // One that cannot be written would leave a gap in the numbers: there are no parts behind it.
        new.bytes = part.as_ref().map_or(usize::MAX, |part| new.bytes + part.get().len());
        if let Some(part) = part.filter(|_| new.bytes <= MOST_PART_BYTES) {
            new.parts.push(part);
            self.set.notify_one();
        }
    }

    /// Takes the parts that have not been stored yet, with the number of the first.
    pub(crate) fn take_parts(&self) -> (u32, Vec<Raw>) {
        let mut new = lock(&self.parts);
        let parts = std::mem::take(&mut new.parts);
        let first = new.stored;
        new.stored = first.saturating_add(u32::try_from(parts.len()).unwrap_or(u32::MAX));
        (first, parts)
    }

    /// Waits until there is something to store.
    pub(crate) async fn is_set(&self) {
        loop {
            if lock(&self.latest).is_some() || !lock(&self.parts).parts.is_empty() {
                return;
            }
            self.set.notified().await;
        }
    }

    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.latest).take()
    }
}
