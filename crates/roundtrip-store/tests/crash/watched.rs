//! [`Watched`]: a store that notes who takes which lease, and takes its time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};

use crate::chance::Chance;
use crate::notes::Log;

type Answer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

/// Longest time that is added before a change, and after it: a database may be far away. A kill falls on either side of a commit.
const DISTANCE: Duration = Duration::from_millis(40);

/// A store, watched.
pub(crate) struct Watched {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) log: Log,
    pub(crate) chance: Arc<Chance>,
}

/// Returns the name of a task's job, which is among the arguments of its call.
fn job_of(task: &StoredTask) -> Option<String> {
    let work = String::from_utf8_lossy(&task.work);
    let (_, rest) = work.split_once(r#""job":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl Watched {
    fn note(&self, event: &str, task: &StoredTask) {
        if let Some(job) = job_of(task) {
            self.log.note(&job, &format!("{event} {} {}", task.id.as_str(), task.fence));
        }
    }
}

impl TaskStore for Watched {
    fn create(&self, task: StoredTask, most: usize) -> Answer<'_, ()> {
        Box::pin(async move {
            self.note("creating", &task);
            self.chance.moment(DISTANCE).await;
            self.store.create(task.clone(), most).await?;
            self.note("leased", &task);
            self.chance.moment(DISTANCE).await;
            Ok(())
        })
    }

    fn write(&self, task: StoredTask) -> Answer<'_, bool> {
        Box::pin(async move {
            self.chance.moment(DISTANCE).await;
            let written = self.store.write(task).await;
            self.chance.moment(DISTANCE).await;
            written
        })
    }

    fn take(&self, now: Millis, until: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        Box::pin(async move {
            let taken = self.store.take(now, until, most).await?;
            taken.iter().for_each(|task| self.note("leased", task));
            Ok(taken)
        })
    }

    fn view<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<Bytes>> {
        self.store.view(owner, id)
    }

    fn read<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<StoredTask>> {
        self.store.read(owner, id)
    }

    fn expired(&self, now: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        self.store.expired(now, most)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> Answer<'a, ()> {
        self.store.remove(id, version)
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> Answer<'a, Vec<(TaskId, Bytes)>> {
        self.store.list(owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.store.changes()
    }
}
