//! [`Announcer`]: tasks that are watched, and those of them that may have changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock::lock;
use crate::server::notify::subscription::Hub;
use crate::task::{TaskId, TaskKey};

/// Tasks that are watched, and those of them that may have changed.
#[derive(Debug)]
pub(super) struct Announcer {
    /// Subscriptions that may watch tasks.
    pub(super) hub: Arc<Hub>,
    /// Keys of tasks that are watched.
    watched: Mutex<HashMap<TaskId, TaskKey>>,
    changed: Mutex<Changed>,
    pub(super) news: Arc<Notify>,
}

/// Tasks that may have changed.
#[derive(Debug, Default)]
struct Changed {
    /// Tasks that have.
    some: HashSet<TaskId>,
    /// True if any may have: however often that is heard, it is one pass over all.
    any: bool,
    /// Tasks that are left of such a pass.
    rest: Vec<TaskId>,
}

impl Announcer {
    pub(super) fn new(hub: &Arc<Hub>) -> Self {
        Self {
            hub: Arc::clone(hub),
            watched: Mutex::default(),
            changed: Mutex::default(),
            news: Arc::default(),
        }
    }

    /// Notes that a task has changed.
    pub(super) fn changed(&self, id: &TaskId) {
        if lock(&self.watched).contains_key(id) {
            lock(&self.changed).some.insert(id.clone());
            self.news.notify_one();
        }
    }

    /// Notes that any task may have changed.
    pub(super) fn any_changed(&self) {
        lock(&self.changed).any = true;
        self.news.notify_one();
    }

    /// Remembers a task that is watched.
    pub(super) fn watch(&self, key: TaskKey) {
        lock(&self.watched).insert(key.id.clone(), key);
    }

    /// Takes the next task that may have changed: those that have come first.
    pub(super) fn next(&self) -> Option<TaskId> {
        let changed = &mut *lock(&self.changed);
        if let Some(id) = changed.some.iter().next().cloned() {
            changed.some.remove(&id);
            return Some(id);
        }
        if changed.rest.is_empty() && std::mem::take(&mut changed.any) {
            changed.rest = lock(&self.watched).keys().cloned().collect();
        }
        changed.rest.pop()
    }

    /// Returns the key of a task that is watched, and forgets one that is no longer.
    pub(super) fn watched(&self, id: &TaskId) -> Option<TaskKey> {
        // Under one lock: a subscription that opens meanwhile is entered after this, and stays. The hub never waits for this lock.
        let mut watched = lock(&self.watched);
        let key = watched.get(id)?.clone();
        if self.hub.watches_task(id.as_str()) {
            return Some(key);
        }
        watched.remove(id);
        None
    }

    /// Forgets a task that does not change any more.
    pub(super) fn forget(&self, id: &TaskId) {
        lock(&self.watched).remove(id);
    }
}

/// Ends the announcements.
impl Drop for Announcer {
    fn drop(&mut self) {
        self.news.notify_one();
    }
}
