//! [`TaskStore`]: the contract of a store of tasks.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Digest};

use super::{Millis, TaskId, TaskOwner};

/// A task as a store keeps it: a row whose bytes mean nothing to the store.
#[derive(Clone)]
pub struct StoredTask {
    /// Identifier: the key of the row.
    pub id: TaskId,
    /// Owner. A client's request finds a task only together with its owner.
    pub owner: TaskOwner,
    /// Account that it counts against as long as it is live.
    pub account: Digest,
    /// Number of the row's last change.
    pub version: u64,
    /// Number of the last worker that took it: an earlier one may not write any more.
    pub fence: u64,
    /// False once it has ended.
    pub is_live: bool,
    /// Time from which a worker may take it: the end of the lease while one has it. `None` where there is nothing to do.
    pub due: Option<Millis>,
    /// Time from which it is listed by [`TaskStore::expired`].
    pub expires: Option<Millis>,
    /// The task as clients see it.
    pub view: Bytes,
    /// The call, the journal and the answers, for its workers.
    pub work: Bytes,
}

/// Shows no bytes: they do not belong into a log.
impl fmt::Debug for StoredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTask")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("fence", &self.fence)
            .field("is_live", &self.is_live)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

/// Store of tasks. [`MemoryTasks`](super::MemoryTasks) is one for a single process whose tasks may end with it; tasks that
/// outlive a process need one on disk, and instances that carry on each other's tasks one that they share.
///
/// Every change is a compare-and-swap on [`version`](StoredTask::version), so that no change is lost, whoever makes it.
/// A change that has been confirmed must survive a crash of the process. [`testing::stores::tasks`](crate::testing::stores::tasks)
/// checks a store of your own.
pub trait TaskStore: Send + Sync {
    /// Adds a task. One of this identifier that is there already is this one: identifiers are random.
    ///
    /// # Errors
    /// [`TaskStoreError::TooMany`] if its account has `most` live tasks already, [`TaskStoreError::Full`] if there is no room for it.
    fn create(&self, task: StoredTask, most: usize) -> BoxFuture<'_, Result<(), TaskStoreError>>;

    /// Returns the view of a task of this owner.
    fn view<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, TaskStoreError>>;

    /// Returns a task of this owner.
    fn read<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, TaskStoreError>>;

    /// Replaces a task if its version is still the one given, and stores it with the next. Returns whether it was. A store that
    /// lost the answer of its database may say false though the task was replaced: read it again.
    ///
    /// # Errors
    /// [`TaskStoreError::Full`] if there is no room for what a client adds to a task that is due for no worker. A worker's change is
    /// not refused so: it would try again, and what it could not store would be done again.
    fn write(&self, task: StoredTask) -> BoxFuture<'_, Result<bool, TaskStoreError>>;

    /// Takes up to `most` tasks that are due by `now`, those due longest first: each gets `until` as its next due time, the
    /// next version and the next fence, and is returned with these. No task is given to two callers.
    fn take(
        &self,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>>;

    /// Returns up to `most` tasks that have expired by `now`, those that did first before the others. A task whose bytes cannot be
    /// opened any more is returned without them, so that it can be removed.
    fn expired(&self, now: Millis, most: usize) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>>;

    /// Removes a task if its version is still this one.
    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Returns up to `most` views of an owner's tasks, in the order of their identifiers, from behind `after` on. A view that cannot
    /// be opened any more is returned empty, so that it hides no other.
    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Bytes)>, TaskStoreError>>;

    /// Begins to watch for changes, those made by other processes included.
    fn changes(&self) -> Box<dyn TaskChanges>;
}

impl<S: TaskStore + ?Sized> TaskStore for Arc<S> {
    fn create(&self, task: StoredTask, most: usize) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        (**self).create(task, most)
    }

    fn view<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, TaskStoreError>> {
        (**self).view(owner, id)
    }

    fn read<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, TaskStoreError>> {
        (**self).read(owner, id)
    }

    fn write(&self, task: StoredTask) -> BoxFuture<'_, Result<bool, TaskStoreError>> {
        (**self).write(task)
    }

    fn take(
        &self,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        (**self).take(now, until, most)
    }

    fn expired(&self, now: Millis, most: usize) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        (**self).expired(now, most)
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        (**self).remove(id, version)
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Bytes)>, TaskStoreError>> {
        (**self).list(owner, after, most)
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        (**self).changes()
    }
}

/// Changes of a store's tasks, from the moment it was asked for them on.
pub trait TaskChanges: Send {
    /// Waits for the next change, and returns the task and its version. `None` says that any task may have changed: of a store
    /// that cannot tell, which then waits for a short while each time, or where some changes were missed.
    fn next(&mut self) -> BoxFuture<'_, Option<(TaskId, u64)>>;
}

/// Failure of a store of tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The caller has as many live tasks as it may.
    #[error("too many tasks at once")]
    TooMany,
    /// There is no room for another task, or for an answer to one.
    #[error("the store of tasks is full")]
    Full,
    /// The store cannot be reached, or failed. The error is logged.
    #[error("the store of tasks failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// Handle to a store of tasks.
#[derive(Clone)]
pub(crate) struct TaskStoreHandle(pub(crate) Arc<dyn TaskStore>);

impl fmt::Debug for TaskStoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskStore")
    }
}
