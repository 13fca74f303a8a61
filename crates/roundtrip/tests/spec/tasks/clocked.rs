//! A store whose clock can be set, and which counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use roundtrip::MemoryTasks;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};

type Answer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

/// Tasks in memory, for an instance whose clock differs from the real one.
#[derive(Clone, Default)]
pub(super) struct Clocked {
    pub(super) inner: Arc<MemoryTasks>,
    /// Milliseconds by which the clock is ahead.
    ahead: Arc<AtomicI64>,
    views: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
}

impl Clocked {
    /// Sets the clock forward.
    pub(super) fn jump(&self, by: Duration) {
        self.ahead.fetch_add(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    /// Sets the clock back.
    pub(super) fn jump_back(&self, by: Duration) {
        self.ahead.fetch_sub(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    pub(super) fn views(&self) -> usize {
        self.views.load(Ordering::SeqCst)
    }

    pub(super) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// The time that this clock shows at a real one.
    fn shown(&self, real: Millis) -> Millis {
        Millis(real.0.saturating_add_signed(self.ahead.load(Ordering::SeqCst)))
    }

    /// The real time when this clock shows one.
    fn real(&self, shown: Millis) -> Millis {
        Millis(shown.0.saturating_add_signed(-self.ahead.load(Ordering::SeqCst)))
    }
}

impl TaskStore for Clocked {
    fn create(&self, mut task: StoredTask, most: usize) -> Answer<'_, ()> {
        task.due = task.due.map(|due| self.shown(due));
        self.inner.create(task, most)
    }

    fn view<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<Bytes>> {
        self.views.fetch_add(1, Ordering::SeqCst);
        self.inner.view(owner, id)
    }

    fn read<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<StoredTask>> {
        Box::pin(async move {
            let task = self.inner.read(owner, id).await?;
            Ok(task.map(|task| StoredTask { due: task.due.map(|due| self.real(due)), ..task }))
        })
    }

    fn write(&self, mut task: StoredTask) -> Answer<'_, bool> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        task.due = task.due.map(|due| self.shown(due));
        self.inner.write(task)
    }

    fn take(&self, now: Millis, until: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        self.inner.take(self.shown(now), self.shown(until), most)
    }

    fn expired(&self, now: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        self.inner.expired(self.shown(now), most)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> Answer<'a, ()> {
        self.inner.remove(id, version)
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> Answer<'a, Vec<(TaskId, Bytes)>> {
        self.inner.list(owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.inner.changes()
    }
}
