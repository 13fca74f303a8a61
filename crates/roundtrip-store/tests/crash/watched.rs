//! [`Watched`]: a store that notes who takes which lease, and takes its time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask, StoredView,
    TakeRequest, TakenTask, TaskAnswer, TaskChange, TaskChanges, TaskId, TaskKey, TaskOwner, TaskStore,
    TaskWork, Waiting,
};

use crate::chance::Chance;
use crate::notes::Log;

/// Longest time that is added before a change, and after it: a database may be far away. A kill falls on either side of a commit.
const DISTANCE: Duration = Duration::from_millis(40);

/// A store, watched.
pub(crate) struct Watched {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) log: Log,
    pub(crate) chance: Arc<Chance>,
}

/// Returns the name of a task's job, which is among the arguments of its call.
fn job_of(call: &[u8]) -> Option<String> {
    let call = String::from_utf8_lossy(call);
    let (_, rest) = call.split_once(r#""job":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl Watched {
    fn note(&self, event: &str, key: &TaskKey, fence: u64, call: &[u8]) {
        if let Some(job) = job_of(call) {
            self.log.note(&job, &format!("{event} {} {fence}", key.id));
        }
    }
}

impl TaskStore for Watched {
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        Box::pin(async move {
            let (key, lease, call) = (task.key.clone(), task.lease, task.call.clone());
            let fence = u64::from(lease.is_some());
            self.note("creating", &key, fence, &call);
            self.chance.moment(DISTANCE).await;
            self.store.create(task, most, now).await?;
            self.note("leased", &key, fence, &call);
            self.chance.moment(DISTANCE).await;
            Ok(())
        })
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        self.store.view(key, with_result, now)
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        self.store.read(key, now)
    }

    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
        self.store.load(key)
    }

    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>> {
        self.store.parts(key, from, most)
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        Box::pin(async move {
            self.chance.moment(DISTANCE).await;
            let answer = self.store.write(change, now).await;
            self.chance.moment(DISTANCE).await;
            answer
        })
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        Box::pin(async move {
            self.chance.moment(DISTANCE).await;
            let answer = self.store.append(key, fence, pieces).await;
            self.chance.moment(DISTANCE).await;
            answer
        })
    }

    fn waiting<'a>(
        &'a self,
        service: &'a Digest,
        kinds: &'a [Digest],
        after: Option<Waiting>,
        most: usize,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<Waiting>> {
        self.store.waiting(service, kinds, after, most, now)
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        Box::pin(async move {
            let taken = self.store.take(request, now).await?;
            for task in &taken {
                // One that cannot be opened has no name.
                if let Ok(Some(work)) = self.store.load(&task.key).await {
                    self.note("leased", &task.key, task.fence, &work.call);
                }
            }
            Ok(taken)
        })
    }

    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
        self.store.give_back(key, fence, now)
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        self.store.renewer()
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        self.store.expired(service, now, most)
    }

    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()> {
        self.store.remove(service, tasks)
    }

    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        self.store.list(service, owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.store.changes()
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        self.store.orphans(after, most)
    }

    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        self.store.orphan(owner, id)
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        self.store.adopt(task)
    }
}
