//! Tasks over any database: sealing, retries, news of changes. A database adds [`Rows`], its statements.

mod news;
mod row;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, RecordLabel};
use roundtrip::task::{Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError};

use self::news::News;
pub(crate) use self::news::{Elsewhere, Heard};
#[cfg(feature = "sqlite")]
pub(crate) use self::row::unsigned;
pub(crate) use self::row::{TaskRow, Unreadable, signed};
use crate::StoreError;
use crate::opening::Settings;
use crate::retry::retry;
use crate::to_end::ToEnd;
use crate::vault::Vault;

/// Id of an instance of a store: it knows its own changes by it.
pub(crate) type Origin = [u8; 8];

/// Part of a task that is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    View,
    Work,
}

impl Part {
    fn kind(self) -> &'static str {
        match self {
            Self::View => "task view",
            Self::Work => "task work",
        }
    }
}

/// Statements of a database. Each is atomic and one exchange, and may be repeated when its answer was lost. The bytes of tasks are
/// sealed.
pub(crate) trait Rows: Send + Sync + 'static {
    /// Adds a task, unless it is there. False if its account has `most` live tasks.
    fn create(&self, task: &StoredTask, most: usize)
    -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Returns the view of a task of this owner.
    fn view(
        &self,
        owner: &TaskOwner,
        id: &TaskId,
    ) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// Returns a task of this owner.
    fn read(
        &self,
        owner: &TaskOwner,
        id: &TaskId,
    ) -> impl Future<Output = Result<Option<StoredTask>, StoreError>> + Send;

    /// Replaces a task of this version, and gives it the next.
    fn write(&self, task: &StoredTask) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Takes tasks that are due, those due longest first. If its answer was lost, they are due again at `until`.
    fn take(
        &self,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> impl Future<Output = Result<Vec<StoredTask>, StoreError>> + Send;

    /// Returns tasks that have expired.
    fn expired(
        &self,
        now: Millis,
        most: usize,
    ) -> impl Future<Output = Result<Vec<StoredTask>, StoreError>> + Send;

    /// Removes a task of this version.
    fn remove(&self, id: &TaskId, version: u64) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns views of an owner's tasks, in the order of their identifiers.
    fn list(
        &self,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<(TaskId, Bytes)>, StoreError>> + Send;

    /// Replaces stored bytes with the same ones, sealed anew.
    fn reseal(
        &self,
        id: &TaskId,
        part: Part,
        old: &[u8],
        new: &[u8],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Tells other instances of a change, where they do not find it by themselves.
    fn tell(&self, id: &TaskId, version: u64);
}

/// Handle to tasks in a database. Clones share them.
pub(crate) struct SharedTasks<R>(Arc<Inner<R>>);

struct Inner<R> {
    rows: R,
    vault: Vault,
    news: News,
}

impl<R> Clone for SharedTasks<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> fmt::Debug for SharedTasks<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("vault", &self.0.vault).finish_non_exhaustive()
    }
}

/// Returns a new id for an instance.
pub(crate) fn new_origin() -> Result<Origin, StoreError> {
    let mut origin = Origin::default();
    getrandom::fill(&mut origin).map_err(|_| StoreError::NoRandomness)?;
    Ok(origin)
}

impl<R: Rows> SharedTasks<R> {
    pub(crate) fn new(rows: R, elsewhere: impl Elsewhere, settings: &Settings) -> Self {
        let vault = Vault::new(settings.ring.clone());
        Self(Arc::new(Inner { rows, vault, news: News::new(elsewhere) }))
    }
}

impl<R: Rows> Inner<R> {
    fn sealed(&self, mut task: StoredTask) -> Result<StoredTask, StoreError> {
        let place = place(&task.owner, &task.id);
        let seal = |part, content: &Bytes| self.vault.seal(label(part, &place), content).map(Bytes::from);
        (task.view, task.work) = (seal(Part::View, &task.view)?, seal(Part::Work, &task.work)?);
        Ok(task)
    }

    fn opened(self: &Arc<Self>, mut task: StoredTask) -> Result<StoredTask, StoreError> {
        task.view = self.open((&task.owner, &task.id), Part::View, &task.view)?;
        task.work = self.open((&task.owner, &task.id), Part::Work, &task.work)?;
        Ok(task)
    }

    /// Opens stored bytes, and seals them anew if their key is not the first of the ring any more (K6).
    fn open(
        self: &Arc<Self>,
        (owner, id): (&TaskOwner, &TaskId),
        part: Part,
        stored: &Bytes,
    ) -> Result<Bytes, StoreError> {
        let place = place(owner, id);
        let opened = self.vault.open(label(part, &place), stored)?;
        if opened.stale {
            let new = self.vault.seal(label(part, &place), &opened.content)?;
            tokio::spawn(Arc::clone(self).reseal(id.clone(), part, stored.clone(), new));
        }
        Ok(opened.content.into())
    }

    async fn reseal(self: Arc<Self>, id: TaskId, part: Part, old: Bytes, new: Vec<u8>) {
        if let Err(error) = retry(|| self.rows.reseal(&id, part, &old, &new)).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a task is still sealed with an old key"
            );
        }
    }

    fn announce(&self, id: TaskId, version: u64) {
        self.rows.tell(&id, version);
        self.news.tell(id, version);
    }

    async fn create(self: Arc<Self>, task: StoredTask, most: usize) -> Result<(), TaskStoreError> {
        let task = self.sealed(task)?;
        if !retry(|| self.rows.create(&task, most)).await? {
            return Err(TaskStoreError::TooMany);
        }
        self.announce(task.id, task.version);
        Ok(())
    }

    async fn write(self: Arc<Self>, task: StoredTask) -> Result<bool, StoreError> {
        let task = self.sealed(task)?;
        let written = retry(|| self.rows.write(&task)).await?;
        if written {
            self.announce(task.id, task.version.saturating_add(1));
        }
        Ok(written)
    }

    /// Takes tasks. One that cannot be opened keeps no other from being worked on: it is due again when its lease is over.
    async fn take(
        self: Arc<Self>,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> Result<Vec<StoredTask>, StoreError> {
        let taken = retry(|| self.rows.take(now, until, most)).await?;
        let open = |task: StoredTask| {
            let id = task.id.clone();
            let opened = self.opened(task);
            opened.inspect_err(|error| tracing::error!(%error, task = %id, "a task cannot be worked on")).ok()
        };
        Ok(taken.into_iter().filter_map(open).collect())
    }

    async fn expired(self: &Arc<Self>, now: Millis, most: usize) -> Result<Vec<StoredTask>, StoreError> {
        let expired = retry(|| self.rows.expired(now, most)).await?;
        let open = |task: StoredTask| {
            let closed = StoredTask { view: Bytes::new(), work: Bytes::new(), ..task.clone() };
            self.opened(task).unwrap_or_else(|error| {
                tracing::error!(%error, task = %closed.id, "an expired task cannot be opened");
                closed
            })
        };
        Ok(expired.into_iter().map(open).collect())
    }
}

/// A write to the end: a statement that is on its way cannot be taken back, and its change has to be told.
impl<R: Rows> TaskStore for SharedTasks<R> {
    fn create(&self, task: StoredTask, most: usize) -> BoxFuture<'_, Result<(), TaskStoreError>> {
        Box::pin(ToEnd::new(Arc::clone(&self.0).create(task, most)))
    }

    fn view<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Bytes>, TaskStoreError>> {
        Box::pin(async move {
            let stored = retry(|| self.0.rows.view(owner, id)).await?;
            Ok(stored.map(|view| self.0.open((owner, id), Part::View, &view)).transpose()?)
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a TaskOwner,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, TaskStoreError>> {
        Box::pin(async move {
            let stored = retry(|| self.0.rows.read(owner, id)).await?;
            Ok(stored.map(|task| self.0.opened(task)).transpose()?)
        })
    }

    fn write(&self, task: StoredTask) -> BoxFuture<'_, Result<bool, TaskStoreError>> {
        Box::pin(async move { Ok(ToEnd::new(Arc::clone(&self.0).write(task)).await?) })
    }

    fn take(
        &self,
        now: Millis,
        until: Millis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        Box::pin(async move { Ok(Arc::clone(&self.0).take(now, until, most).await?) })
    }

    fn expired(&self, now: Millis, most: usize) -> BoxFuture<'_, Result<Vec<StoredTask>, TaskStoreError>> {
        Box::pin(async move { Ok(self.0.expired(now, most).await?) })
    }

    fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        Box::pin(async move {
            retry(|| self.0.rows.remove(id, version)).await?;
            self.0.announce(id.clone(), version.saturating_add(1));
            Ok(())
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Bytes)>, TaskStoreError>> {
        Box::pin(async move {
            let mut listed = retry(|| self.0.rows.list(owner, after, most)).await?;
            for (id, view) in &mut listed {
                *view = self.0.open((owner, id), Part::View, view).unwrap_or_else(|error| {
                    tracing::error!(%error, task = %id, "a task cannot be listed");
                    Bytes::new()
                });
            }
            Ok(listed)
        })
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.0.news.follow()
    }
}

/// Returns the place of a task's bytes. They open nowhere else: not in another task, and not for another owner.
fn place(owner: &TaskOwner, id: &TaskId) -> Vec<u8> {
    [&owner.as_bytes()[..], id.as_str().as_bytes()].concat()
}

fn label(part: Part, place: &[u8]) -> RecordLabel<'_> {
    RecordLabel { kind: part.kind(), id: place }
}

/// Implements `TaskStore` for a store that has tasks.
macro_rules! tasks_of {
    ($store:ident) => {
        const _: () = {
            use bytes::Bytes;
            use roundtrip::seal::BoxFuture;
            use roundtrip::task::{
                Millis, StoredTask, TaskChanges, TaskId, TaskOwner, TaskStore, TaskStoreError,
            };

            type Answer<'a, T> = BoxFuture<'a, Result<T, TaskStoreError>>;

            impl TaskStore for $store {
                fn create(&self, task: StoredTask, most: usize) -> Answer<'_, ()> {
                    self.tasks.create(task, most)
                }

                fn view<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> Answer<'a, Option<Bytes>> {
                    self.tasks.view(owner, id)
                }

                fn read<'a>(
                    &'a self,
                    owner: &'a TaskOwner,
                    id: &'a TaskId,
                ) -> Answer<'a, Option<StoredTask>> {
                    self.tasks.read(owner, id)
                }

                fn write(&self, task: StoredTask) -> Answer<'_, bool> {
                    self.tasks.write(task)
                }

                fn take(&self, now: Millis, until: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
                    self.tasks.take(now, until, most)
                }

                fn expired(&self, now: Millis, most: usize) -> Answer<'_, Vec<StoredTask>> {
                    self.tasks.expired(now, most)
                }

                fn remove<'a>(&'a self, id: &'a TaskId, version: u64) -> Answer<'a, ()> {
                    self.tasks.remove(id, version)
                }

                fn list<'a>(
                    &'a self,
                    owner: &'a TaskOwner,
                    after: Option<&'a TaskId>,
                    most: usize,
                ) -> Answer<'a, Vec<(TaskId, Bytes)>> {
                    self.tasks.list(owner, after, most)
                }

                fn changes(&self) -> Box<dyn TaskChanges> {
                    self.tasks.changes()
                }
            }
        };
    };
}

pub(crate) use tasks_of;
