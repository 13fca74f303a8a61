//! [`MemoryTasks`]: tasks in memory, for a single process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};
use crate::lock::lock;

/// Most changes that may wait for a watcher.
const UNSEEN: usize = 1024;

/// Most bytes of all tasks, unless told otherwise.
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// Bytes that a task takes besides its own.
const OVERHEAD: usize = 512;

/// Tasks in memory: they end with the process. For development, tests, and work that may be lost.
pub struct MemoryTasks {
    tables: Mutex<Tables>,
    /// Most bytes with which another task is taken in.
    most_bytes: usize,
    changed: broadcast::Sender<(TaskId, u64)>,
}

#[derive(Default)]
struct Tables {
    tasks: BTreeMap<TaskId, StoredTask>,
    due: BTreeSet<(Millis, TaskId)>,
    expires: BTreeSet<(Millis, TaskId)>,
    /// Number of live tasks of each account.
    live: HashMap<Digest, usize>,
    /// Bytes of all tasks.
    bytes: usize,
}

fn bytes_of(task: &StoredTask) -> usize {
    OVERHEAD + task.view.len() + task.work.len()
}

impl Tables {
    fn enter(&mut self, task: StoredTask) {
        if let Some(due) = task.due {
            self.due.insert((due, task.id.clone()));
        }
        if let Some(expires) = task.expires {
            self.expires.insert((expires, task.id.clone()));
        }
        self.bytes += bytes_of(&task);
        if task.is_live {
            *self.live.entry(task.account).or_default() += 1;
        }
        self.tasks.insert(task.id.clone(), task);
    }

    fn take_out(&mut self, id: &TaskId) -> Option<StoredTask> {
        let task = self.tasks.remove(id)?;
        self.bytes -= bytes_of(&task);
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
        Some(task)
    }

    fn of(&self, owner: &TaskOwner, id: &TaskId) -> Option<&StoredTask> {
        self.tasks.get(id).filter(|task| task.owner == *owner)
    }
}

impl MemoryTasks {
    /// Creates an empty store that takes in tasks up to 256 MiB.
    pub fn new() -> Self {
        Self::bounded(MOST_BYTES)
    }

    /// Creates an empty store that takes in tasks up to so many bytes.
    pub fn bounded(most_bytes: usize) -> Self {
        Self { tables: Mutex::default(), most_bytes, changed: broadcast::Sender::new(UNSEEN) }
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

impl TaskStore for MemoryTasks {
    fn create(&self, task: StoredTask, most: usize) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        let mut tables = self.tables();
        if tables.tasks.contains_key(&task.id) {
            return ready(());
        }
        let refused = if tables.live.get(&task.account).is_some_and(|live| *live >= most) {
            Some(TaskStoreError::TooMany)
        } else {
            (tables.bytes + bytes_of(&task) > self.most_bytes).then_some(TaskStoreError::Full)
        };
        if let Some(refused) = refused {
            return Box::pin(std::future::ready(Err(refused)));
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
        if tables.tasks.get(&task.id).is_none_or(|stored| stored.version != task.version) {
            return ready(false);
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
        let expired = expired.filter_map(|(_, id)| tables.tasks.get(id).cloned()).collect();
        ready(expired)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        let mut tables = self.tables();
        if tables.tasks.get(id).is_some_and(|task| task.version == version) {
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
        let own = tables.tasks.values().filter(|task| task.owner == *owner);
        let own = own.filter(|task| after.is_none_or(|after| task.id > *after)).take(most);
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
