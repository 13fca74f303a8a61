//! [`MemoryTasks`]: tasks in memory, for a single process.

mod tables;

use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use self::tables::{Row, Tables};
use super::rows::{
    ChangedTask, Chunk, ExpiredTask, NewTask, StoredTask, StoredView, TakeRequest, TakenTask, TaskChange,
    TaskKey, TaskWork, Waiting,
};
use super::{LeaseRenewer, Millis, TaskAnswer, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};
use crate::lock::lock;

/// Most changes that may wait for a watcher.
const UNSEEN: usize = 1024;

/// Most bytes of all tasks, unless set otherwise.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Tasks in memory: they end with the process. For development, tests, and work that may be lost.
///
/// It takes in tasks up to 256 MiB, or what [`bounded`](Self::bounded) says. One account has at most half of what the others
/// leave, so that no caller can fill it for all. A new task that does not fit is refused ([`TaskStoreError::Full`]), and so is an
/// answer to a task that waits for one. What running tasks remember and their results are always kept, and count: the bytes may
/// exceed the bound by that much, and there is no room for new tasks of that account until enough of its tasks are removed.
pub struct MemoryTasks(Arc<Inner>);

struct Inner {
    tables: Mutex<Tables>,
    changed: broadcast::Sender<ChangedTask>,
}

impl MemoryTasks {
    /// Creates an empty store that takes in tasks up to 256 MiB.
    pub fn new() -> Self {
        Self::bounded(MOST_BYTES)
    }

    /// Creates an empty store that takes in tasks up to so many bytes. A single caller gets half of it.
    pub fn bounded(most_bytes: usize) -> Self {
        let tables = Mutex::new(Tables::new(most_bytes));
        Self(Arc::new(Inner { tables, changed: broadcast::Sender::new(UNSEEN) }))
    }

    fn announce(&self, id: TaskId, version: u64, is_due: bool) {
        // There may be no watcher.
        let _ = self.0.changed.send(ChangedTask { id, version, is_due });
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.0.tables)
    }
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new()
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> TaskAnswer<'a, T> {
    answer(Ok(value))
}

fn answer<'a, T: Send + 'a>(result: Result<T, TaskStoreError>) -> TaskAnswer<'a, T> {
    Box::pin(std::future::ready(result))
}

fn view(row: &Row, with_result: bool, now: Millis) -> StoredView {
    let result = row.result.clone().filter(|_| with_result);
    StoredView { view: row.view.clone(), result, kind: row.kind, is_waiting: row.is_waiting(now) }
}

fn stored(row: &Row, now: Millis) -> StoredTask {
    let (view, work, is_held) = (row.view.clone(), row.work.clone(), row.is_held(now));
    StoredTask { key: row.key.clone(), version: row.version, fence: row.fence, is_held, view, work }
}

impl TaskStore for MemoryTasks {
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        let (id, is_due) = (task.key.id.clone(), task.lease.is_none());
        let created = self.tables().create(task, most, now);
        if matches!(created, Ok(true)) {
            self.announce(id, 0, is_due);
        }
        answer(created.map(drop))
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        ready(self.tables().of(key).map(|row| view(row, with_result, now)))
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        ready(self.tables().of(key).map(|row| stored(row, now)))
    }

    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
        let tables = self.tables();
        let row = tables.of(key).filter(|row| row.is_live);
        ready(row.map(|row| TaskWork {
            version: row.version,
            fence: row.fence,
            work: row.work.clone(),
            call: row.call.clone(),
            journal: row.journal.values().cloned().collect(),
        }))
    }

    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>> {
        let tables = self.tables();
        let Some(row) = tables.of(key) else { return ready(Vec::new()) };
        let first = row.parts.range(..=from).next_back().map_or(from, |(number, _)| *number);
        let parts = row.parts.range(first..).take(most);
        ready(parts.map(|(number, bytes)| Chunk { number: *number, bytes: bytes.clone() }).collect())
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        let (id, is_due) = (change.key.id.clone(), change.makes_due());
        let written = self.tables().write(change, now);
        if let Ok(Some(version)) = written {
            self.announce(id, version, is_due);
        }
        answer(written.map(|version| version.is_some()))
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        ready(self.tables().append(key, fence, pieces))
    }

    fn waiting<'a>(
        &'a self,
        service: &'a Digest,
        kinds: &'a [Digest],
        after: Option<Waiting>,
        most: usize,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<Waiting>> {
        let tables = self.tables();
        let (mut waiting, mut last) = (Vec::new(), after);
        while waiting.len() < most
            && let Some(next) = tables.next_waiting((service, kinds), last, now)
        {
            waiting.push(next);
            last = Some(next.or_last_of_other(kinds));
        }
        ready(waiting)
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        let (except, times) = (request.except.iter().collect(), (now, now.plus(request.lease)));
        let mut tables = self.tables();
        let taken = request
            .wanted
            .iter()
            .flat_map(|(waiting, most)| tables.take((request.service, *waiting, *most), &except, times));
        ready(taken.collect())
    }

    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
        let mut tables = self.tables();
        let is_there = tables.of(key).is_some();
        let version = is_there.then(|| tables.lease(&key.id, fence, now, false)).flatten();
        drop(tables);
        if let Some(version) = version {
            self.announce(key.id.clone(), version, true);
        }
        ready(())
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(MemoryRenewer(Arc::clone(&self.0)))
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        let tables = self.tables();
        let range = (*service, Millis(0), TaskId::first())..=(*service, now, TaskId::last());
        let expired = tables.expires.range(range).filter_map(|(_, _, id)| tables.get(service, id)).take(most);
        let expired = expired.map(|row| ExpiredTask {
            key: row.key.clone(),
            version: row.version,
            is_live: row.is_live,
        });
        ready(expired.collect())
    }

    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()> {
        for (id, version) in tasks {
            let removed = self.tables().remove(service, id, *version);
            if removed {
                self.announce(id.clone(), version + 1, false);
            }
        }
        ready(())
    }

    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        let tables = self.tables();
        let behind = (after.map_or(Unbounded, Excluded), Unbounded);
        let owned = tables.owned.get(&(*service, *owner)).into_iter();
        let own = owned.flat_map(|owned| owned.range::<TaskId, _>(behind));
        let own = own.filter_map(|id| tables.get(service, id)).take(most);
        ready(own.map(|row| (row.key.id.clone(), row.view.clone())).collect())
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        Box::new(MemoryChanges(self.0.changed.subscribe()))
    }
}

struct MemoryRenewer(Arc<Inner>);

impl LeaseRenewer for MemoryRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        let (mut tables, until) = (lock(&self.0.tables), now.plus(lease));
        let renewed = held.iter().filter_map(|(id, fence)| {
            let version = tables.lease(id, *fence, until, true)?;
            Some((id.clone(), version))
        });
        ready(renewed.collect())
    }
}

struct MemoryChanges(broadcast::Receiver<ChangedTask>);

impl TaskChanges for MemoryChanges {
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>> {
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
        write!(f, "MemoryTasks({} tasks)", self.tables().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Due;

    /// Z3: what is removed leaves nothing behind, not even the name of its owner.
    #[tokio::test]
    async fn what_is_removed_leaves_nothing_behind() {
        let (tasks, digest) = (MemoryTasks::new(), Digest::from_bytes([1; Digest::LEN]));
        let key = TaskKey { service: digest, owner: TaskOwner::new(Some("ada")), id: TaskId::new([1; 16]) };
        let (view, work) = (Bytes::from_static(b"view"), Bytes::from_static(b"work"));
        let new = NewTask {
            key: key.clone(),
            account: digest,
            kind: digest,
            lease: None,
            expires: Some(Millis(9)),
            call: work.clone(),
            view: view.clone(),
            work,
            journal: Some(Bytes::from_static(b"journal")),
        };
        tasks.create(new, 1, Millis(1)).await.expect("room");
        let before = tasks.tables().bytes();
        let change = TaskChange {
            key: key.clone(),
            version: 0,
            due: Due::AsBefore,
            is_live: true,
            expires: Some(Millis(9)),
            view,
            work: vec![0; 1000].into(),
            result: None,
            journal: Vec::new(),
            replaces_journal: false,
            parts: Vec::new(),
        };
        assert!(tasks.write(change, Millis(1)).await.expect("room"));
        assert_eq!(tasks.tables().bytes(), before + 1000 - 4);
        tasks.remove(&digest, &[(key.id, 1)]).await.expect("removed");
        let tables = tasks.tables();
        assert!(tables.is_empty() && tables.bytes() == 0, "{tasks:?}");
    }
}
