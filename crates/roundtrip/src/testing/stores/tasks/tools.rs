//! Tasks of a service that no other check has, and operations that have to succeed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::Digest;

use super::super::{Checked, broken, failed, random, within};
use crate::task::{
    Chunk, Due, Millis, NewTask, StoredTask, StoredView, TakeRequest, TakenTask, TaskAnswer, TaskChange,
    TaskId, TaskKey, TaskOwner, TaskStore, TaskStoreError, TaskWork, Waiting,
};

/// More than any account here has.
pub(super) const MANY: usize = 1_000;
/// Length of a lease that does not end during a check.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) type Instance = Arc<dyn TaskStore>;

/// Two instances of a store, and a service.
pub(super) struct Site {
    pub(super) one: Instance,
    pub(super) other: Instance,
    pub(super) service: Digest,
}

/// Awaits an operation that has to succeed.
pub(super) async fn asked<T>(rule: &'static str, answer: TaskAnswer<'_, T>) -> Checked<T> {
    within(rule, answer).await?.or_else(|error| failed(rule, &error))
}

pub(super) fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; Digest::LEN])
}

/// Returns a piece with a number.
pub(super) fn piece(number: u32, bytes: impl Into<Bytes>) -> Chunk {
    Chunk { number, bytes: bytes.into() }
}

impl Site {
    pub(super) fn new([one, other]: &[Instance; 2], service: [u8; Digest::LEN]) -> Self {
        Self { one: Arc::clone(one), other: Arc::clone(other), service: Digest::from_bytes(service) }
    }

    pub(super) fn both(&self) -> [&Instance; 2] {
        [&self.one, &self.other]
    }

    /// Makes a task that is due at once, of kind 1 and account 1, with its own owner.
    pub(super) fn task(&self) -> Checked<NewTask> {
        let owner = TaskOwner::from_bytes(random()?);
        Ok(NewTask {
            key: TaskKey { service: self.service, owner, id: TaskId::new(random()?) },
            account: digest(1),
            kind: digest(1),
            lease: None,
            expires: None,
            call: Bytes::from_static(b"call"),
            view: Bytes::from_static(b"view"),
            work: Bytes::from_static(b"work"),
            journal: None,
        })
    }

    pub(super) async fn create(&self, rule: &'static str, task: &NewTask) -> Checked {
        asked(rule, self.one.create(task.clone(), MANY, Millis::now())).await
    }

    /// Creates a task that is due, or that this process has a lease on, and returns its key.
    pub(super) async fn created(&self, rule: &'static str, lease: Option<Duration>) -> Checked<TaskKey> {
        let task = NewTask { lease, ..self.task()? };
        self.create(rule, &task).await?;
        Ok(task.key)
    }

    pub(super) async fn read(&self, rule: &'static str, key: &TaskKey) -> Checked<StoredTask> {
        let found = asked(rule, self.other.read(key, Millis::now())).await?;
        found.map_or_else(|| broken(rule, "a task is not there".into()), Ok)
    }

    pub(super) async fn view(&self, rule: &'static str, key: &TaskKey) -> Checked<StoredView> {
        let found = asked(rule, self.other.view(key, true, Millis::now())).await?;
        found.map_or_else(|| broken(rule, "a view is not there".into()), Ok)
    }

    pub(super) async fn load(&self, rule: &'static str, key: &TaskKey) -> Checked<TaskWork> {
        let found = asked(rule, self.other.load(key)).await?;
        found.map_or_else(|| broken(rule, "the work of a task is not there".into()), Ok)
    }

    /// Returns a change that changes nothing.
    pub(super) async fn change(&self, rule: &'static str, key: &TaskKey) -> Checked<TaskChange> {
        let StoredTask { key, version, view, work, .. } = self.read(rule, key).await?;
        Ok(TaskChange {
            key,
            version,
            due: Due::AsBefore,
            is_live: true,
            expires: None,
            view,
            work,
            result: None,
            journal: Vec::new(),
            replaces_journal: false,
            parts: Vec::new(),
        })
    }

    /// Changes a task that no other has changed.
    pub(super) async fn write(&self, rule: &'static str, change: TaskChange) -> Checked {
        if !asked(rule, self.one.write(change, Millis::now())).await? {
            return broken(rule, "a task of the stored version is not changed".into());
        }
        Ok(())
    }

    /// Ends a task.
    pub(super) async fn end(&self, rule: &'static str, key: &TaskKey) -> Checked {
        let change = TaskChange { is_live: false, ..self.change(rule, key).await? };
        self.write(rule, change).await
    }

    /// Returns the accounts that wait, of kind 1.
    pub(super) async fn waiting(&self, rule: &'static str) -> Checked<Vec<Waiting>> {
        asked(rule, self.other.waiting(&self.service, &[digest(1)], None, MANY, Millis::now())).await
    }

    /// Takes tasks of kind 1 and account 1.
    pub(super) async fn take(
        &self,
        rule: &'static str,
        most: usize,
        lease: Duration,
    ) -> Checked<Vec<TakenTask>> {
        let wanted = [(Waiting { kind: digest(1), account: digest(1) }, most)];
        let request = TakeRequest { service: &self.service, wanted: &wanted, except: &[], lease };
        asked(rule, self.other.take(request, Millis::now())).await
    }

    /// Takes the one task that is due.
    pub(super) async fn taken(&self, rule: &'static str, lease: Duration) -> Checked<TakenTask> {
        let mut taken = self.take(rule, MANY, lease).await?;
        match (taken.pop(), taken.len()) {
            (Some(task), 0) => Ok(task),
            (_, more) => broken(rule, format!("one task is due, and {more} more or none are taken")),
        }
    }

    /// Checks that no task can be taken.
    pub(super) async fn none_is_due(&self, rule: &'static str, when: &str) -> Checked {
        let (waiting, taken) = (self.waiting(rule).await?, self.take(rule, MANY, HOUR).await?);
        if !waiting.is_empty() || !taken.is_empty() {
            return broken(
                rule,
                format!("{} accounts wait and {} tasks are taken {when}", waiting.len(), taken.len()),
            );
        }
        Ok(())
    }

    pub(super) async fn append(
        &self,
        rule: &'static str,
        task: &TakenTask,
        pieces: &[Chunk],
    ) -> Checked<bool> {
        asked(rule, self.one.append(&task.key, task.fence, pieces)).await
    }

    pub(super) async fn remove(&self, rule: &'static str, key: &TaskKey) -> Checked {
        let version = self.read(rule, key).await?.version;
        asked(rule, self.one.remove(&self.service, &[(key.id.clone(), version)])).await
    }

    /// Tries to create a task of an account that has `most` of them.
    pub(super) async fn is_too_many(&self, rule: &'static str, task: NewTask, most: usize) -> Checked {
        match within(rule, self.one.create(task, most, Millis::now())).await? {
            Err(TaskStoreError::TooMany) => Ok(()),
            Ok(()) => broken(rule, format!("more than {most} are created")),
            Err(error) => failed(rule, &error),
        }
    }
}
