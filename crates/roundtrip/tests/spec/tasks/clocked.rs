//! A store whose clock can be set, which can be held up, and which counts what is asked of it.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use roundtrip::MemoryTasks;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};
use tokio::sync::{Notify, Semaphore};

type Answer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

/// Tasks in memory, for an instance whose clock differs from the real one.
#[derive(Clone, Default)]
pub(super) struct Clocked {
    pub(super) inner: Arc<MemoryTasks>,
    /// Milliseconds by which the clock is ahead.
    ahead: Arc<AtomicI64>,
    creates: Arc<AtomicUsize>,
    views: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
    gate: Option<Arc<Gate>>,
    hold: Arc<Mutex<Option<Arc<Hold>>>>,
}

/// A change that is held up.
pub(super) struct Hold {
    /// True if it is stored first, and its answer is held up.
    is_stored: bool,
    /// Told once the change is there.
    pub(super) reached: Notify,
    /// Lets it go.
    pub(super) release: Notify,
}

impl Hold {
    async fn up(&self) {
        self.reached.notify_one();
        self.release.notified().await;
    }
}

/// Holds tasks up that are being created, until the test lets them go.
struct Gate {
    reached: Notify,
    open: Semaphore,
}

impl Clocked {
    /// Holds up the answer to the next change that is stored.
    pub(super) fn hold_answer(&self) -> Arc<Hold> {
        self.hold(true)
    }

    /// Holds up the next change.
    pub(super) fn hold_change(&self) -> Arc<Hold> {
        self.hold(false)
    }

    fn hold(&self, is_stored: bool) -> Arc<Hold> {
        let hold = Arc::new(Hold { is_stored, reached: Notify::new(), release: Notify::new() });
        *self.hold.lock().expect("no panic") = Some(Arc::clone(&hold));
        hold
    }

    /// Takes the hold that is for a change in this state.
    fn held_up(&self, is_stored: bool) -> Option<Arc<Hold>> {
        self.hold.lock().expect("no panic").take_if(|hold| hold.is_stored == is_stored)
    }

    /// The task as it is stored.
    pub(super) async fn stored(&self, id: &str) -> StoredTask {
        let id = TaskId::parse(id).expect("an id");
        self.inner.read(&TaskOwner::new(None), &id).await.expect("a store").expect("a task")
    }

    /// Sets the clock forward.
    pub(super) fn jump(&self, by: Duration) {
        self.ahead.fetch_add(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    /// Sets the clock back.
    pub(super) fn jump_back(&self, by: Duration) {
        self.ahead.fetch_sub(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    /// Creates a store that holds new tasks up. As in a database, a task that is on its way is created even if its caller goes.
    pub(super) fn holding_new_tasks() -> Self {
        let gate = Gate { reached: Notify::new(), open: Semaphore::new(0) };
        Self { gate: Some(Arc::new(gate)), ..Self::default() }
    }

    /// Waits until a task is being created.
    pub(super) async fn is_creating(&self) {
        self.gate.as_ref().expect("a store that holds tasks up").reached.notified().await;
    }

    /// Lets all tasks go that are created from now on, and those that are held up.
    pub(super) fn let_go(&self) {
        self.gate.as_ref().expect("a store that holds tasks up").open.add_permits(1);
    }

    /// The number of tasks that it was to create.
    pub(super) fn creates(&self) -> usize {
        self.creates.load(Ordering::SeqCst)
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
        self.creates.fetch_add(1, Ordering::SeqCst);
        task.due = task.due.map(|due| self.shown(due));
        let Some(gate) = self.gate.clone() else { return self.inner.create(task, most) };
        let inner = Arc::clone(&self.inner);
        let creating = tokio::spawn(async move {
            gate.reached.notify_one();
            let _open = gate.open.acquire().await.expect("a gate");
            inner.create(task, most).await
        });
        Box::pin(async move { creating.await.expect("no panic") })
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
        Box::pin(async move {
            if let Some(hold) = self.held_up(false) {
                hold.up().await;
            }
            let written = self.inner.write(task).await?;
            if written && let Some(hold) = self.held_up(true) {
                hold.up().await;
            }
            Ok(written)
        })
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
