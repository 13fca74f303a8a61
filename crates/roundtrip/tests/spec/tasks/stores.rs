//! The contract of stores of tasks, and a store that breaks it.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip::MemoryTasks;
use roundtrip::seal::BoxFuture;
use roundtrip::task::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};
use roundtrip::testing::stores;

type Answer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

/// What a store does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Replaces a task whatever its version is.
    Overwrites,
    /// Shows every task to everyone.
    Shows,
    /// Counts no live tasks.
    Uncounted,
    /// Leaves a task due that it has given away.
    Shares,
    /// Says nothing of changes.
    Silent,
}

#[derive(Clone)]
struct Faulty(Arc<MemoryTasks>, Fault, TaskOwner);

struct Silence;

impl TaskChanges for Silence {
    fn next(&mut self) -> BoxFuture<'_, Option<(TaskId, u64)>> {
        Box::pin(std::future::pending())
    }
}

impl Faulty {
    fn owner(&self, owner: &TaskOwner) -> TaskOwner {
        if self.1 == Fault::Shows { self.2 } else { *owner }
    }
}

impl TaskStore for Faulty {
    fn create(&self, mut task: StoredTask, most: usize) -> Answer<'_, ()> {
        task.owner = self.owner(&task.owner);
        self.0.create(task, if self.1 == Fault::Uncounted { usize::MAX } else { most })
    }

    fn view<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move { self.0.view(&self.owner(owner), id).await })
    }

    fn read<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<StoredTask>> {
        Box::pin(async move {
            let read = self.0.read(&self.owner(owner), id).await?;
            Ok(read.map(|task| StoredTask { owner: *owner, ..task }))
        })
    }

    fn write(&self, mut task: StoredTask) -> Answer<'_, bool> {
        Box::pin(async move {
            task.owner = self.owner(&task.owner);
            if self.1 == Fault::Overwrites
                && let Some(stored) = self.0.read(&task.owner, &task.id).await?
            {
                task.version = stored.version;
            }
            self.0.write(task).await
        })
    }

    fn take(&self, now: Millis, until: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        self.0.take(now, if self.1 == Fault::Shares { now } else { until }, most)
    }

    fn expired(&self, now: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
        self.0.expired(now, most)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> Answer<'a, ()> {
        self.0.remove(id, version)
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> Answer<'a, Vec<(TaskId, Bytes)>> {
        Box::pin(async move { self.0.list(&self.owner(owner), after, most).await })
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        if self.1 == Fault::Silent { Box::new(Silence) } else { self.0.changes() }
    }
}

/// K1: tasks in memory keep the contract of stores of tasks.
#[tokio::test]
async fn tasks_in_memory_keep_the_contract() {
    let tasks = Arc::new(MemoryTasks::new());
    stores::tasks(Arc::clone(&tasks), tasks).await.expect("the contract");
}

/// K1: the contract finds stores that break it, and says how.
#[tokio::test(start_paused = true)]
async fn the_contract_finds_stores_that_break_it() {
    for (fault, rule) in [
        (Fault::Overwrites, "of changes to one version"),
        (Fault::Shows, "by its owner alone"),
        (Fault::Uncounted, "as many live tasks as it may"),
        (Fault::Shares, "those due longest first"),
        (Fault::Silent, "heard of on every instance"),
    ] {
        let faulty = Faulty(Arc::new(MemoryTasks::new()), fault, TaskOwner::new(Some("all")));
        let broken = stores::tasks(faulty.clone(), faulty).await.expect_err(rule);
        assert!(broken.to_string().contains(rule), "{broken}");
    }
    let broken = stores::tasks(MemoryTasks::new(), MemoryTasks::new()).await.expect_err("two stores");
    assert!(broken.to_string().contains("is not there"), "{broken}");
}
