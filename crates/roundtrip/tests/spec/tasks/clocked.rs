//! A store whose clock can be set, which can be held up, and which counts what is asked of it.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use roundtrip::MemoryTasks;
use roundtrip::task::{
    Chunk, LeaseRenewer, Millis, NewTask, StoredTask, StoredView, TaskAnswer, TaskChange, TaskId, TaskKey,
    TaskStore, TaskStoreError,
};
use tokio::sync::{Notify, Semaphore};

use super::layer::{Layer, Layered, key};

/// Tasks in memory, for an instance whose clock differs from the real one.
#[derive(Clone, Default)]
pub(super) struct Clocked(Arc<Clock>);

#[derive(Default)]
struct Clock {
    inner: Arc<MemoryTasks>,
    /// Milliseconds by which the clock is ahead.
    ahead: Arc<AtomicI64>,
    creates: AtomicUsize,
    views: AtomicUsize,
    writes: AtomicUsize,
    renewals: Arc<AtomicUsize>,
    gate: Option<Arc<Gate>>,
    hold: Mutex<Option<Arc<Hold>>>,
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
        *self.0.hold.lock().expect("no panic") = Some(Arc::clone(&hold));
        hold
    }

    pub(super) fn store(&self) -> impl TaskStore + use<> {
        Layered(Arc::clone(&self.0))
    }

    /// The task as it is stored.
    pub(super) async fn stored(&self, id: &str) -> StoredTask {
        self.store().read(&key(id), now()).await.expect("a store").expect("a task")
    }

    /// Whether the task is due, and no worker has it.
    pub(super) async fn is_waiting(&self, id: &str) -> bool {
        let view = self.store().view(&key(id), false, now()).await;
        view.expect("a store").expect("a task").is_waiting
    }

    /// The pieces of a task's journal.
    pub(super) async fn journal(&self, id: &str) -> Vec<Bytes> {
        self.store().load(&key(id)).await.expect("a store").expect("a task").journal
    }

    /// Sets the clock forward.
    pub(super) fn jump(&self, by: Duration) {
        self.0.ahead.fetch_add(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    /// Sets the clock back.
    pub(super) fn jump_back(&self, by: Duration) {
        self.0.ahead.fetch_sub(i64::try_from(by.as_millis()).expect("a jump"), Ordering::SeqCst);
    }

    /// Creates a store that holds new tasks up. As in a database, a task that is on its way is created even if its caller goes.
    pub(super) fn holding_new_tasks() -> Self {
        let gate = Gate { reached: Notify::new(), open: Semaphore::new(0) };
        Self(Arc::new(Clock { gate: Some(Arc::new(gate)), ..Clock::default() }))
    }

    /// Waits until a task is being created.
    pub(super) async fn is_creating(&self) {
        self.0.gate.as_ref().expect("a store that holds tasks up").reached.notified().await;
    }

    /// Lets all tasks go that are created from now on, and those that are held up.
    pub(super) fn let_go(&self) {
        self.0.gate.as_ref().expect("a store that holds tasks up").open.add_permits(1);
    }

    /// The number of tasks that it was to create.
    pub(super) fn creates(&self) -> usize {
        self.0.creates.load(Ordering::SeqCst)
    }

    pub(super) fn views(&self) -> usize {
        self.0.views.load(Ordering::SeqCst)
    }

    pub(super) fn writes(&self) -> usize {
        self.0.writes.load(Ordering::SeqCst)
    }

    /// The number of times that leases were renewed.
    pub(super) fn renewals(&self) -> usize {
        self.0.renewals.load(Ordering::SeqCst)
    }
}

/// The real time.
pub(super) fn now() -> Millis {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a clock");
    Millis(u64::try_from(since.as_millis()).expect("a time"))
}

impl Clock {
    /// Takes the hold that is for a change in this state.
    fn held_up(&self, is_stored: bool) -> Option<Arc<Hold>> {
        self.hold.lock().expect("no panic").take_if(|hold| hold.is_stored == is_stored)
    }

    /// Makes a change, which may be held up before or after.
    async fn held<T>(
        &self,
        change: impl Future<Output = Result<T, TaskStoreError>>,
    ) -> Result<T, TaskStoreError> {
        if let Some(hold) = self.held_up(false) {
            hold.up().await;
        }
        let changed = change.await?;
        if let Some(hold) = self.held_up(true) {
            hold.up().await;
        }
        Ok(changed)
    }
}

fn shown(ahead: &AtomicI64, real: Millis) -> Millis {
    Millis(real.0.saturating_add_signed(ahead.load(Ordering::SeqCst)))
}

impl Layer for Clock {
    fn inner(&self) -> &MemoryTasks {
        &self.inner
    }

    fn now(&self, now: Millis) -> Millis {
        shown(&self.ahead, now)
    }

    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        self.creates.fetch_add(1, Ordering::SeqCst);
        let Some(gate) = self.gate.clone() else { return self.inner.create(task, most, now) };
        let inner = Arc::clone(&self.inner);
        let creating = tokio::spawn(async move {
            gate.reached.notify_one();
            let _open = gate.open.acquire().await.expect("a gate");
            inner.create(task, most, now).await
        });
        Box::pin(async move { creating.await.expect("no panic") })
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        self.views.fetch_add(1, Ordering::SeqCst);
        self.inner.view(key, with_result, now)
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        Box::pin(self.held(async move { self.inner.write(change, now).await }))
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        Box::pin(self.held(async move { self.inner.append(key, fence, pieces).await }))
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        Box::new(ClockedRenewer(self.inner.renewer(), Arc::clone(&self.ahead), Arc::clone(&self.renewals)))
    }
}

struct ClockedRenewer(Box<dyn LeaseRenewer>, Arc<AtomicI64>, Arc<AtomicUsize>);

impl LeaseRenewer for ClockedRenewer {
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>> {
        self.2.fetch_add(1, Ordering::SeqCst);
        self.0.renew(held, lease, shown(&self.1, now))
    }
}
