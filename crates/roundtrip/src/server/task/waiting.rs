//! [`Waiters`]: requests that wait for a task to change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock::lock;
use crate::task::TaskId;

/// Requests of this process that wait for tasks to change, by task.
#[derive(Default)]
pub(super) struct Waiters(Mutex<HashMap<TaskId, (Arc<Notify>, usize)>>);

/// One request that waits for a task to change.
pub(super) struct Waiting<'a> {
    waiters: &'a Waiters,
    id: &'a TaskId,
    pub(super) changed: Arc<Notify>,
}

impl Waiters {
    /// Begins to wait for changes of a task.
    pub(super) fn wait<'a>(&'a self, id: &'a TaskId) -> Waiting<'a> {
        let mut waiters = lock(&self.0);
        let (changed, count) = waiters.entry(id.clone()).or_default();
        *count += 1;
        Waiting { waiters: self, id, changed: Arc::clone(changed) }
    }

    /// Wakes the requests that wait for a task.
    pub(super) fn wake(&self, id: &TaskId) {
        if let Some((changed, _)) = lock(&self.0).get(id) {
            changed.notify_waiters();
        }
    }

    /// Wakes all requests that wait.
    pub(super) fn wake_all(&self) {
        lock(&self.0).values().for_each(|(changed, _)| changed.notify_waiters());
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiters = lock(&self.waiters.0);
        if let Some((_, count)) = waiters.get_mut(self.id) {
            *count -= 1;
            if *count == 0 {
                waiters.remove(self.id);
            }
        }
    }
}
