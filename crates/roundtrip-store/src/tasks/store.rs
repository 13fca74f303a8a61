//! [`SharedTasks`]: a task store in a database.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, ChangedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask,
    StoredView, TakeRequest, TakenTask, TaskAnswer, TaskChange, TaskChanges, TaskId, TaskKey, TaskOwner,
    TaskStore, TaskStoreError, TaskWork, Waiting,
};

use super::news::{Elsewhere, News};
use super::rows::{Answer, Rows, Wish};
use super::seal::{Field, Reseal, TaskSeals};
use super::waiting::waiting;
use crate::opening::Settings;
use crate::retry::retry;
use crate::to_end::ToEnd;
use crate::vault::Vault;

/// Handle to tasks in a database. Clones share them.
pub(crate) struct SharedTasks<R>(Arc<Inner<R>>);

struct Inner<R> {
    rows: R,
    seals: TaskSeals,
    news: News,
}

impl<R> Clone for SharedTasks<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> fmt::Debug for SharedTasks<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("seals", &self.0.seals).finish_non_exhaustive()
    }
}

impl<R: Rows> SharedTasks<R> {
    pub(crate) fn new(rows: R, elsewhere: impl Elsewhere, settings: &Settings) -> Self {
        let seals = TaskSeals::new(Vault::new(settings.ring.clone()));
        Self(Arc::new(Inner { rows, seals, news: News::new(elsewhere) }))
    }
}

impl<R: Rows> Inner<R> {
    /// Opens what was stored of a task, and seals anew what needs it.
    fn opened<T>(
        self: &Arc<Self>,
        key: &TaskKey,
        open: impl FnOnce(&mut dyn FnMut(Field, &Bytes) -> Answer<Bytes>) -> Answer<T>,
    ) -> Result<T, TaskStoreError> {
        let mut stale = Vec::new();
        let opened = open(&mut |field, stored| self.seals.open(key, field, stored, &mut stale));
        self.reseal(stale);
        opened.map_err(|error| self.seals.unreadable(&key.id, error))
    }

    /// Stores bytes that were sealed anew with the first key of the ring (K6), beside the request that has read them.
    fn reseal(self: &Arc<Self>, stale: Vec<Reseal>) {
        if stale.is_empty() {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = retry(|| this.rows.reseal(&stale)).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a task is still sealed with an old key"
                );
            }
        });
    }

    fn announce(&self, id: TaskId, version: u64, is_due: bool) {
        let task = ChangedTask { id, version, is_due };
        self.rows.tell(&task);
        self.news.tell(task);
    }

    async fn create(self: Arc<Self>, task: NewTask, most: usize, now: Millis) -> Result<(), TaskStoreError> {
        let mut sealing = self.seals.sealing(&task.key);
        let task = NewTask {
            call: sealing.seal(Field::Call, &task.call)?,
            view: sealing.seal(Field::View, &task.view)?,
            work: sealing.seal(Field::Work, &task.work)?,
            journal: sealing.seal_if_any(Field::Journal(0), task.journal.as_ref())?,
            ..task
        };
        if !retry(|| self.rows.create(&task, most, now)).await? {
            return Err(TaskStoreError::TooMany);
        }
        self.announce(task.key.id, 0, task.lease.is_none());
        Ok(())
    }

    async fn write(self: Arc<Self>, change: TaskChange, now: Millis) -> Answer<bool> {
        let mut sealing = self.seals.sealing(&change.key);
        // A task that has ended has no journal any more.
        let journal = if change.is_live { &change.journal[..] } else { &[] };
        let change = TaskChange {
            view: sealing.seal(Field::View, &change.view)?,
            work: sealing.seal(Field::Work, &change.work)?,
            result: sealing.seal_if_any(Field::Result, change.result.as_ref())?,
            journal: sealing.seal_pieces(Field::Journal, journal)?,
            parts: sealing.seal_pieces(Field::Parts, &change.parts)?,
            ..change
        };
        let written = retry(|| self.rows.write(&change, now)).await?;
        if written {
            let is_due = change.makes_due();
            self.announce(change.key.id, change.version.saturating_add(1), is_due);
        }
        Ok(written)
    }

    async fn give_back(self: Arc<Self>, key: TaskKey, fence: u64, now: Millis) -> Answer<()> {
        // It is there for others.
        if let Some(version) = retry(|| self.rows.give_back(&key, fence, now)).await? {
            self.announce(key.id, version, true);
        }
        Ok(())
    }

    async fn adopt(self: Arc<Self>, task: AdoptedTask) -> Answer<bool> {
        let mut sealing = self.seals.sealing(&task.key);
        let task = AdoptedTask {
            call: if task.call.is_empty() { Bytes::new() } else { sealing.seal(Field::Call, &task.call)? },
            view: sealing.seal(Field::View, &task.view)?,
            work: sealing.seal(Field::Work, &task.work)?,
            result: sealing.seal_if_any(Field::Result, task.result.as_ref())?,
            journal: sealing.seal_if_any(Field::Journal(0), task.journal.as_ref())?,
            parts: sealing.seal_if_any(Field::Parts(0), task.parts.as_ref())?,
            ..task
        };
        let adopted = retry(|| self.rows.adopt(&task)).await?;
        if adopted {
            self.announce(task.key.id, task.version.saturating_add(1), true);
        }
        Ok(adopted)
    }
}

/// A write to the end: a statement that is on its way cannot be taken back, and its change has to be told.
impl<R: Rows> TaskStore for SharedTasks<R> {
    fn create(&self, task: NewTask, most: usize, now: Millis) -> TaskAnswer<'_, ()> {
        Box::pin(ToEnd::new(Arc::clone(&self.0).create(task, most, now)))
    }

    fn view<'a>(
        &'a self,
        key: &'a TaskKey,
        with_result: bool,
        now: Millis,
    ) -> TaskAnswer<'a, Option<StoredView>> {
        Box::pin(async move {
            let stored = retry(|| self.0.rows.view(key, with_result, now)).await?;
            let Some(stored) = stored else { return Ok(None) };
            let opened = self.0.opened(key, |open| {
                let result = stored.result.as_ref().map(|result| open(Field::Result, result)).transpose()?;
                Ok(StoredView { view: open(Field::View, &stored.view)?, result, ..stored })
            });
            opened.map(Some)
        })
    }

    fn read<'a>(&'a self, key: &'a TaskKey, now: Millis) -> TaskAnswer<'a, Option<StoredTask>> {
        Box::pin(async move {
            let Some(stored) = retry(|| self.0.rows.read(key, now)).await? else { return Ok(None) };
            let opened = self.0.opened(key, |open| {
                let (view, work) = (open(Field::View, &stored.view)?, open(Field::Work, &stored.work)?);
                Ok(StoredTask { view, work, ..stored })
            });
            opened.map(Some)
        })
    }

    fn load<'a>(&'a self, key: &'a TaskKey) -> TaskAnswer<'a, Option<TaskWork>> {
        Box::pin(async move {
            let Some((stored, pieces)) = retry(|| self.0.rows.load(key)).await? else { return Ok(None) };
            let opened = self.0.opened(key, |open| {
                let (work, call) = (open(Field::Work, &stored.work)?, open(Field::Call, &stored.call)?);
                let pieces = pieces.iter().map(|piece| open(Field::Journal(piece.number), &piece.bytes));
                Ok(TaskWork { work, call, journal: pieces.collect::<Answer<_>>()?, ..stored })
            });
            opened.map(Some)
        })
    }

    fn parts<'a>(&'a self, key: &'a TaskKey, from: u32, most: usize) -> TaskAnswer<'a, Vec<Chunk>> {
        Box::pin(async move {
            let stored = retry(|| self.0.rows.parts(key, from, most)).await?;
            self.0.opened(key, |open| {
                let open = |Chunk { number, bytes }: Chunk| {
                    Ok(Chunk { number, bytes: open(Field::Parts(number), &bytes)? })
                };
                stored.into_iter().map(open).collect()
            })
        })
    }

    fn write(&self, change: TaskChange, now: Millis) -> TaskAnswer<'_, bool> {
        Box::pin(async move { Ok(ToEnd::new(Arc::clone(&self.0).write(change, now)).await?) })
    }

    fn append<'a>(&'a self, key: &'a TaskKey, fence: u64, pieces: &'a [Chunk]) -> TaskAnswer<'a, bool> {
        Box::pin(async move {
            let (inner, key) = (Arc::clone(&self.0), key.clone());
            let pieces = inner.seals.sealing(&key).seal_pieces(Field::Journal, pieces)?;
            let append = async move { retry(|| inner.rows.append(&key, fence, &pieces)).await };
            Ok(ToEnd::new(append).await?)
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
        Box::pin(async move { Ok(waiting(&self.0.rows, (service, kinds), after, most, now).await?) })
    }

    fn take<'a>(&'a self, request: TakeRequest<'a>, now: Millis) -> TaskAnswer<'a, Vec<TakenTask>> {
        Box::pin(async move {
            let wish = Wish {
                service: *request.service,
                wanted: request.wanted.to_vec(),
                except: request.except.to_vec(),
                lease: request.lease,
            };
            Ok(retry(|| self.0.rows.take(&wish, now)).await?)
        })
    }

    fn give_back<'a>(&'a self, key: &'a TaskKey, fence: u64, now: Millis) -> TaskAnswer<'a, ()> {
        Box::pin(async move {
            let give_back = Arc::clone(&self.0).give_back(key.clone(), fence, now);
            Ok(ToEnd::new(give_back).await?)
        })
    }

    fn renewer(&self) -> Box<dyn LeaseRenewer> {
        self.0.rows.renewer()
    }

    fn expired<'a>(
        &'a self,
        service: &'a Digest,
        now: Millis,
        most: usize,
    ) -> TaskAnswer<'a, Vec<ExpiredTask>> {
        Box::pin(async move { Ok(retry(|| self.0.rows.expired(service, now, most)).await?) })
    }

    fn remove<'a>(&'a self, service: &'a Digest, tasks: &'a [(TaskId, u64)]) -> TaskAnswer<'a, ()> {
        Box::pin(async move {
            if tasks.is_empty() {
                return Ok(());
            }
            retry(|| self.0.rows.remove(service, tasks)).await?;
            for (id, version) in tasks {
                self.0.announce(id.clone(), version.saturating_add(1), false);
            }
            Ok(())
        })
    }

    fn list<'a>(
        &'a self,
        service: &'a Digest,
        owner: &'a TaskOwner,
        after: Option<&'a TaskId>,
        most: usize,
    ) -> TaskAnswer<'a, Vec<(TaskId, Bytes)>> {
        Box::pin(async move {
            let mut listed = retry(|| self.0.rows.list(service, owner, after, most)).await?;
            let mut stale = Vec::new();
            for (id, view) in &mut listed {
                let key = TaskKey { service: *service, owner: *owner, id: id.clone() };
                *view = self.0.seals.open(&key, Field::View, view, &mut stale).unwrap_or_else(|error| {
                    self.0.seals.log(id, &error);
                    Bytes::new()
                });
            }
            self.0.reseal(stale);
            Ok(listed)
        })
    }

    fn changes(&self) -> Box<dyn TaskChanges> {
        self.0.news.follow()
    }

    fn orphans<'a>(&'a self, after: Option<&'a TaskId>, most: usize) -> TaskAnswer<'a, Vec<OrphanTask>> {
        Box::pin(async move { Ok(retry(|| self.0.rows.orphans(after, most)).await?) })
    }

    fn remove_orphans(&self, now: Millis, most: usize) -> TaskAnswer<'_, usize> {
        Box::pin(async move { Ok(retry(|| self.0.rows.remove_orphans(now, most)).await?) })
    }

    fn orphan<'a>(&'a self, owner: &'a TaskOwner, id: &'a TaskId) -> TaskAnswer<'a, Option<OrphanTask>> {
        Box::pin(async move {
            let Some(stored) = retry(|| self.0.rows.orphan(owner, id)).await? else { return Ok(None) };
            let opened = self.0.seals.open_orphan(stored);
            opened.map(Some).map_err(|error| self.0.seals.unreadable(id, error))
        })
    }

    fn adopt(&self, task: AdoptedTask) -> TaskAnswer<'_, bool> {
        Box::pin(async move { Ok(ToEnd::new(Arc::clone(&self.0).adopt(task)).await?) })
    }
}
