//! [`MemoryTasks`]: tasks in memory, for a single process.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};
use crate::budget::{Budget, Reservation};
use crate::lock::lock;

/// Most changes that may wait for a watcher.
const UNSEEN: usize = 1024;

/// Most bytes of all tasks, unless told otherwise.
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// Bytes that a task takes besides its own.
const OVERHEAD: usize = 512;

/// Tasks in memory: they end with the process. For development, tests, and work that may be lost.
///
/// It takes in tasks up to 256 MiB, or what [`bounded`](Self::bounded) says. One account has at most half of what the others
/// leave, so that no caller can fill it for all. A new task that does not fit is refused ([`TaskStoreError::Full`]), and so is an
/// answer to a task that waits for one. What running tasks remember and their results are always kept, and count: the bytes may
/// go over by that much, and there is no room for new tasks of that account until enough of its tasks are removed.
pub struct MemoryTasks {
    tables: Mutex<Tables>,
    changed: broadcast::Sender<(TaskId, u64)>,
}

struct Tables {
    tasks: HashMap<TaskId, Row>,
    /// Identifiers of each owner's tasks. Only owners that have some.
    owned: HashMap<TaskOwner, BTreeSet<TaskId>>,
    due: BTreeSet<(Millis, TaskId)>,
    expires: BTreeSet<(Millis, TaskId)>,
    /// Number of live tasks of each account.
    live: HashMap<Digest, usize>,
    /// Bytes of all tasks, by account.
    bytes: Arc<Budget<Digest>>,
}

struct Row {
    task: StoredTask,
    _bytes: Reservation<Digest>,
}

fn bytes_of(task: &StoredTask) -> usize {
    OVERHEAD + task.view.len() + task.work.len()
}

impl Tables {
    fn new(most_bytes: usize) -> Self {
        Self {
            tasks: HashMap::new(),
            owned: HashMap::new(),
            due: BTreeSet::new(),
            expires: BTreeSet::new(),
            live: HashMap::new(),
            bytes: Budget::new(most_bytes),
        }
    }

    fn enter(&mut self, task: StoredTask) {
        if let Some(due) = task.due {
            self.due.insert((due, task.id.clone()));
        }
        if let Some(expires) = task.expires {
            self.expires.insert((expires, task.id.clone()));
        }
        if task.is_live {
            *self.live.entry(task.account).or_default() += 1;
        }
        self.owned.entry(task.owner).or_default().insert(task.id.clone());
        let bytes = self.bytes.charge(&task.account, bytes_of(&task));
        self.tasks.insert(task.id.clone(), Row { task, _bytes: bytes });
    }

    fn take_out(&mut self, id: &TaskId) -> Option<StoredTask> {
        let Row { task, .. } = self.tasks.remove(id)?;
        if let Some(due) = task.due {
            self.due.remove(&(due, id.clone()));
        }
        if let Some(expires) = task.expires {
            self.expires.remove(&(expires, id.clone()));
        }
        if let Some(live) = self.live.get_mut(&task.account).filter(|_| task.is_live) {
            *live -= 1;
            if *live == 0 {
                self.live.remove(&task.account);
            }
        }
        if let Some(owned) = self.owned.get_mut(&task.owner) {
            owned.remove(id);
            if owned.is_empty() {
                self.owned.remove(&task.owner);
            }
        }
        Some(task)
    }

    fn get(&self, id: &TaskId) -> Option<&StoredTask> {
        self.tasks.get(id).map(|row| &row.task)
    }

    fn of(&self, owner: &TaskOwner, id: &TaskId) -> Option<&StoredTask> {
        self.get(id).filter(|task| task.owner == *owner)
    }

    /// Returns the reason why a new task is not taken in, if there is one.
    fn refusal(&self, task: &StoredTask, most: usize) -> Option<TaskStoreError> {
        if self.live.get(&task.account).is_some_and(|live| *live >= most) {
            return Some(TaskStoreError::TooMany);
        }
        (!self.bytes.has_room(&task.account, bytes_of(task))).then_some(TaskStoreError::Full)
    }

    /// Returns whether there is room for a change. Only an answer to a task that no worker has can be refused: a worker would try
    /// again until its lease ends, the next one after it, and the step that was not stored would run each time.
    fn has_room(&self, stored: &StoredTask, changed: &StoredTask) -> bool {
        let is_answer = stored.due.is_none() && changed.is_live;
        let growth = bytes_of(changed).saturating_sub(bytes_of(stored));
        !is_answer || growth == 0 || self.bytes.has_room(&stored.account, growth)
    }
}

impl MemoryTasks {
    /// Creates an empty store that takes in tasks up to 256 MiB.
    pub fn new() -> Self {
        Self::bounded(MOST_BYTES)
    }

    /// Creates an empty store that takes in tasks up to so many bytes. A single caller gets half of it.
    pub fn bounded(most_bytes: usize) -> Self {
        Self { tables: Mutex::new(Tables::new(most_bytes)), changed: broadcast::Sender::new(UNSEEN) }
    }

    fn announce(&self, id: TaskId, version: u64) {
        // There may be no watcher.
        let _ = self.changed.send((id, version));
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new()
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, TaskStoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

fn refused<'a, T: Send + 'a>(error: TaskStoreError) -> BoxFuture<'a, Result<T, TaskStoreError>> {
    Box::pin(std::future::ready(Err(error)))
}

impl TaskStore for MemoryTasks {
    fn create(&self, task: StoredTask, most: usize) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        let mut tables = self.tables();
        if tables.tasks.contains_key(&task.id) {
            return ready(());
        }
        if let Some(error) = tables.refusal(&task, most) {
            return refused(error);
        }
        let (id, version) = (task.id.clone(), task.version);
        tables.enter(task);
        drop(tables);
        self.announce(id, version);
        ready(())
    }

    fn view<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, TaskStoreError>> {
        ready(self.tables().of(owner, id).map(|task| task.view.clone()))
    }

    fn read<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, TaskStoreError>> {
        ready(self.tables().of(owner, id).cloned())
    }

    fn write(&self, mut task: StoredTask) -> BoxFuture<'_, Result<bool, TaskStoreError>> {
        let mut tables = self.tables();
        let Some(stored) = tables.get(&task.id).filter(|stored| stored.version == task.version) else {
            return ready(false);
        };
        if !tables.has_room(stored, &task) {
            return refused(TaskStoreError::Full);
        }
        tables.take_out(&task.id);
        task.version += 1;
        let (id, version) = (task.id.clone(), task.version);
        tables.enter(task);
        drop(tables);
        self.announce(id, version);
        ready(true)
    }

    fn take(
        &self,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        let mut tables = self.tables();
        let due = tables.due.iter().take_while(|(due, _)| *due <= now).take(most);
        let due: Vec<TaskId> = due.map(|(_, id)| id.clone()).collect();
        let mut taken = Vec::with_capacity(due.len());
        for id in due {
            let Some(mut task) = tables.take_out(&id) else { continue };
            task.due = Some(until);
            task.version += 1;
            task.fence += 1;
            tables.enter(task.clone());
            taken.push(task);
        }
        ready(taken)
    }

    fn expired(&self, now: Millis, most: usize) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        let tables = self.tables();
        let expired = tables.expires.iter().take_while(|(expires, _)| *expires <= now).take(most);
        let expired = expired.filter_map(|(_, id)| tables.get(id).cloned()).collect();
        ready(expired)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        let mut tables = self.tables();
        if tables.get(id).is_some_and(|task| task.version == version) {
            tables.take_out(id);
        }
        drop(tables);
        self.announce(id.clone(), version + 1);
        ready(())
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Bytes)>, TaskStoreError>> {
        let tables = self.tables();
        let behind = (after.map_or(Unbounded, Excluded), Unbounded);
        let own = tables.owned.get(owner).into_iter().flat_map(|owned| owned.range::<TaskId, _>(behind));
        let own = own.filter_map(|id| tables.get(id)).take(most);
        ready(own.map(|task| (task.id.clone(), task.view.clone())).collect())
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        Box::new(MemoryChanges(self.changed.subscribe()))
    }
}

struct MemoryChanges(broadcast::Receiver<(TaskId, u64)>);

impl TaskChanges for MemoryChanges {
    fn next(&mut self) -> BoxFuture<'_, Option<(TaskId, u64)>> {
        Box::pin(async move {
            match self.0.recv().await {
                Ok(change) => Some(change),
                Err(RecvError::Lagged(_)) => None,
                // The store is gone, and nothing changes any more.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        })
    }
}

impl fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTasks({} tasks)", self.tables().tasks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z3: what is removed leaves nothing behind, not even the name of its owner.
    #[tokio::test]
    async fn what_is_removed_leaves_nothing_behind() {
        let tasks = MemoryTasks::new();
        let task = StoredTask {
            id: TaskId::new([1; 16]),
            owner: TaskOwner::new(Some("ada")),
            account: Digest::from_bytes([1; Digest::LEN]),
            version: 0,
            fence: 0,
            is_live: true,
            due: Some(Millis::now()),
            expires: Some(Millis::now()),
            view: Bytes::from_static(b"view"),
            work: Bytes::from_static(b"work"),
        };
        tasks.create(task.clone(), 1).await.expect("room");
        let grown = StoredTask { work: vec![0; 1000].into(), ..task };
        assert!(tasks.write(grown.clone()).await.expect("room"));
        assert_eq!(tasks.tables().bytes.held(), bytes_of(&grown));
        tasks.remove(&grown.id, 1).await.expect("removed");
        let tables = tasks.tables();
        assert!(tables.tasks.is_empty() && tables.owned.is_empty() && tables.live.is_empty());
        assert!(tables.due.is_empty() && tables.expires.is_empty());
        assert_eq!(tables.bytes.held(), 0);
    }
}
