//! [`TaskStore`]: the contract of a task store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};

use super::rows::{
    AdoptedTask, ChangedTask, Chunk, ExpiredTask, NewTask, OrphanTask, StoredTask, StoredView, TakeRequest,
    TakenTask, TaskChange, TaskKey, TaskWork, Waiting,
};
use super::{Millis, TaskId, TaskOwner};

/// Answer of a task store.
pub type TaskAnswer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

/// Task store. [`MemoryTasks`](super::MemoryTasks) is the store of a single process whose tasks may end with it; tasks that
/// outlive a process need a store on disk, and instances that continue each other's tasks need one that they share.
///
/// Several services may share a database: every method names the service, and finds nothing of another.
///
/// Every change of a task is a compare-and-swap on its version, so that no change is lost, whoever makes it. A change that has
/// been confirmed must survive a crash of the process. `now` is the time of the calling process: a store that instances on
/// several machines share uses the clock of its database instead.
/// [`testing::stores::tasks`](crate::testing::stores::tasks) checks a store of your own.
pub trait TaskStore: Send + Sync {
    /// Adds a task, with version 0, and with a fence of 1 if it has a lease. A task of this identifier that is there already is
    /// this one: identifiers are random.
    ///
    /// # Errors
    /// [`TaskStoreError::TooMany`] if its account has `most` live tasks of this service already, [`TaskStoreError::Full`] if there
    /// is no room for it.
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()>;

    /// Returns a task as a client reads it, with its result if that is asked for.
    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>>;

    /// Returns what clients and workers change of a task.
    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>>;

    /// Returns what a worker needs of a task that has not ended.
    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>>;

    /// Returns the pieces of a task's result that hold the part with this number and those behind it, at most `most`.
    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>>;

    /// Changes a task if its version is still the one given, and gives it the next. Returns whether it was. A store that lost the
    /// answer of its database may return false though the task was changed: read it again.
    ///
    /// # Errors
    /// [`TaskStoreError::Full`] if there is no room for what a client adds to a task that no worker has. A worker's change is not
    /// refused so: it would try again, and what it could not store would be done again.
    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool>;

    /// Adds pieces to the journal of a task, if it is still held under this fence. Returns whether it is. The check and the change
    /// are one. Neither the version nor anything else of the task changes, and nobody is notified. A piece whose number is there
    /// already is left as it is.
    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool>;

    /// Returns accounts with tasks that are due by `now`, in the order of kinds and accounts from behind `after` on, at most
    /// `most`. Of kinds that are not among these, which must be sorted, the first account is enough, and none if its tasks are not
    /// due: it is for the log.
    ///
    /// The cost must grow with the number of kinds and accounts, not with the number of tasks.
    fn waiting<'a>(
        &'a self,
        service: &'a Digest,
        kinds: &'a [Digest],
        after: Option<Waiting>,
        most: usize,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<Waiting>>;

    /// Takes tasks that are due by `now`, of each kind and account those due longest first: each is held, is due again when the
    /// lease ends, gets the next version and the next fence, and is returned with these, and with whether a lease on it had expired. No task is given to two callers.
    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>>;

    /// Gives back a task that is still held under this fence: it is due at once, and otherwise unchanged.
    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()>;

    /// Returns a handle that renews leases. It is used by one thread with a runtime of its own: a connection to a database
    /// must be the handle's own, and must be opened where the handle is used.
    fn renewer(&self) -> Box<dyn LeaseRenewer>;

    /// Returns up to `most` tasks that have expired by `now`, in the order in which they did. Their bytes are not read.
    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>>;

    /// Removes tasks whose versions are still these.
    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()>;

    /// Returns up to `most` views of an owner's tasks, in the order of their identifiers, from behind `after` on. A view that cannot
    /// be opened is returned empty, so that it hides no other.
    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>>;

    /// Begins to watch for changes, of other processes and services too.
    fn changes(&self) -> Box<dyn TaskChanges>;

    /// Returns up to `most` tasks without a service, in the order of their identifiers, from behind `after` on: an earlier release
    /// has stored them. Their bytes are not read: view and work are empty. The default is a store that never had such tasks.
    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        let _ = (after, most);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns an owner's task without a service.
    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        let _ = (owner, id);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Removes up to `most` tasks without a service that have expired by `now`, and returns how many. A task that has not ended is
    /// removed a minute later: a service that has its tool may still adopt it, and end it.
    fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
        let _ = (now, most);
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Gives an orphan of this version to a service, and returns whether it was there. It gets the next version.
    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        drop(task);
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// Handle that renews leases.
pub trait LeaseRenewer: Send {
    /// Extends leases on tasks that are still held under these fences: each is due again when the lease ends, counted from now, and
    /// not before it was. Nothing else changes. Returns those, each with its version.
    fn renew<'a>(
        &'a mut self,
        held: &'a [(TaskId, u64)],
        lease: Duration,
        now: Millis,
    ) -> TaskAnswer<'a, Vec<(TaskId, u64)>>;
}

/// Changes of a store's tasks, from the moment it was asked for them on.
pub trait TaskChanges: Send {
    /// Waits for the next change, and returns the changed task. `None` says that any task may have changed: of a store
    /// that cannot tell, which then waits for a short while each time, or where some changes were missed.
    fn next(&mut self) -> BoxFuture<'_, Option<ChangedTask>>;
}

/// Failure of a task store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The caller has as many live tasks as it may.
    #[error("too many tasks at once")]
    TooMany,
    /// There is no room for another task, or for an answer to one.
    #[error("the task store is full")]
    Full,
    /// What is stored of one task cannot be opened or read; other tasks can be. The error is logged.
    #[error("a stored task cannot be opened")]
    Unreadable(#[source] Box<dyn Error + Send + Sync>),
    /// The store cannot be reached, or failed. The error is logged.
    #[error("the task store failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// Handle to a task store.
#[derive(Clone)]
pub(crate) struct TaskStoreHandle(pub(crate) Arc<dyn TaskStore>);

impl fmt::Debug for TaskStoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskStore")
    }
}
