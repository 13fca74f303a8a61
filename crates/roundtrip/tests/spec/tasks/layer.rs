//! Layers around tasks in memory: a test changes what it needs, and the rest is passed on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip::MemoryTasks;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask, StoredView,
    TakeRequest, TakenTask, TaskAnswer, TaskChange, TaskChanges, TaskId, TaskKey, TaskOwner, TaskStore,
    TaskWork, Waiting,
};

/// The service of a server with this name, as stores know it.
pub(crate) fn service(name: &str) -> Digest {
    Digest::of("task-service", &[name.as_bytes()])
}

/// The key of a task of the server `tasks`, whose caller has no principal.
pub(crate) fn key(id: &str) -> TaskKey {
    let id = TaskId::parse(id).expect("an id");
    TaskKey { service: service("tasks"), owner: TaskOwner::new(None), id }
}

/// Takes all tasks that are due at a time, as another worker would.
pub(crate) async fn take_all(store: &dyn TaskStore, now: Millis, lease: Duration) -> Vec<TakenTask> {
    let service = service("tasks");
    let waiting = store.waiting(&service, &[], None, 100, now).await.expect("a store");
    let wanted: Vec<_> = waiting.into_iter().map(|waiting| (waiting, 100)).collect();
    let request = TakeRequest { service: &service, wanted: &wanted, except: &[], lease };
    store.take(request, now).await.expect("a store")
}

/// A layer around tasks in memory.
pub(super) trait Layer: Send + Sync {
    fn inner(&self) -> &MemoryTasks;

    /// The key that a task is looked for by.
    fn key(&self, key: &TaskKey) -> TaskKey {
        key.clone()
    }

    /// The time by this layer's clock.
    fn now(&self, now: Millis) -> Millis {
        now
    }

    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        self.inner().create(task, most, now)
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        self.inner().view(key, with_result, now)
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        self.inner().read(key, now)
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        self.inner().write(change, now)
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        self.inner().append(key, fence, pieces)
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        self.inner().take(request, now)
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        self.inner().renewer()
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        self.inner().expired(service, now, most)
    }

    fn list<'a>(
        &'a self,
        (service, owner): (&'a Digest, &'a TaskOwner),
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        self.inner().list(service, owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.inner().changes()
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        self.inner().orphans(after, most)
    }

    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        self.inner().orphan(owner, id)
    }

    fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
        self.inner().remove_orphans(now, most)
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        self.inner().adopt(task)
    }
}

/// A store with a layer.
pub(super) struct Layered<L>(pub(super) Arc<L>);

impl<L: Layer> TaskStore for Layered<L> {
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        self.0.create(task, most, self.0.now(now))
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        self.0.view(key, with_result, self.0.now(now))
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        self.0.read(key, self.0.now(now))
    }

    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
        Box::pin(async move { self.0.inner().load(&self.0.key(key)).await })
    }

    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>> {
        Box::pin(async move { self.0.inner().parts(&self.0.key(key), from, most).await })
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        self.0.write(change, self.0.now(now))
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        Box::pin(async move { self.0.append(&self.0.key(key), fence, pieces).await })
    }

    fn waiting<'a>(
        &'a self,
        service: &'a Digest,
        kinds: &'a [Digest],
        after: Option<Waiting>,
        most: usize,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<Waiting>> {
        self.0.inner().waiting(service, kinds, after, most, self.0.now(now))
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        self.0.take(request, self.0.now(now))
    }

    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
        Box::pin(async move { self.0.inner().give_back(&self.0.key(key), fence, self.0.now(now)).await })
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        self.0.renewer()
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        self.0.expired(service, self.0.now(now), most)
    }

    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()> {
        self.0.inner().remove(service, tasks)
    }

    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        self.0.list((service, owner), after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.0.changes()
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        self.0.orphans(after, most)
    }

    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        self.0.orphan(owner, id)
    }

    fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
        self.0.remove_orphans(self.0.now(now), most)
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        self.0.adopt(task)
    }
}
