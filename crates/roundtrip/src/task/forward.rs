//! A shared task store is a task store.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::Digest;

use super::rows::{
    AdoptedTask, Chunk, ExpiredTask, NewTask, OrphanTask, StoredTask, StoredView, TakeRequest, TakenTask,
    TaskChange, TaskKey, TaskWork, Waiting,
};
use super::store::{LeaseRenewer, TaskAnswer, TaskChanges, TaskStore};
use super::{Millis, TaskId, TaskOwner};

impl<S: TaskStore + ?Sized> TaskStore for Arc<S> {
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        (**self).create(task, most, now)
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        (**self).view(key, with_result, now)
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        (**self).read(key, now)
    }

    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
        (**self).load(key)
    }

    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>> {
        (**self).parts(key, from, most)
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        (**self).write(change, now)
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        (**self).append(key, fence, pieces)
    }

    fn waiting<'a>(
        &'a self,
        service: &'a Digest,
        kinds: &'a [Digest],
        after: Option<Waiting>,
        most: usize,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<Waiting>> {
        (**self).waiting(service, kinds, after, most, now)
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        (**self).take(request, now)
    }

    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
        (**self).give_back(key, fence, now)
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        (**self).renewer()
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        (**self).expired(service, now, most)
    }

    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()> {
        (**self).remove(service, tasks)
    }

    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        (**self).list(service, owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        (**self).changes()
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        (**self).orphans(after, most)
    }

    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        (**self).orphan(owner, id)
    }

    fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
        (**self).remove_orphans(now, most)
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        (**self).adopt(task)
    }
}
