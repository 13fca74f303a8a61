//! `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::error::BUSY;
use roundtrip_core::round::read_responses;
#[cfg(feature = "legacy")]
use roundtrip_core::wire::TaskStatus;
use roundtrip_core::wire::{ErrorObject, ServerResult, Task, TaskAcknowledgedResult};
use serde_json::value::RawValue;

use super::caller::TaskCaller;
use super::errors::{busy, read_view, unknown, unwritable};
use super::part_sender::PartSender;
use super::service::TaskService;
use crate::server::outcome::Outcome;
#[cfg(feature = "legacy")]
use crate::server::peer::Principal;
use crate::task::{
    Due, Millis, Record, StoredTask, StoredView, TaskId, TaskKey, TaskOwner, TaskStoreError, written_task,
};

/// Most tasks that one subscription may watch.
const MOST_WATCHED: usize = 100;
/// Most times that a client's change is tried against those of others.
const TRIES: usize = 100;

impl TaskService {
    /// Returns those of these ids that are tasks of the caller which it may use, each with its view.
    pub(crate) async fn known(
        &self,
        caller: &TaskCaller,
        ids: &[String],
    ) -> Result<Vec<(TaskId, Bytes)>, ErrorObject> {
        if ids.len() > MOST_WATCHED {
            let problem =
                format!("params.notifications.taskIds: at most {MOST_WATCHED} tasks in one subscription");
            return Err(ErrorObject::invalid_params(problem));
        }
        let mut known: Vec<(TaskId, Bytes)> = Vec::new();
        for id in ids.iter().filter_map(|id| TaskId::parse(id)) {
            if let Some(stored) = self.view(&self.key(caller.owner, id.clone()), false).await?
                && caller.may_use(&stored.view).is_ok()
                && !known.iter().any(|(other, _)| *other == id)
            {
                known.push((id, stored.view));
            }
        }
        Ok(known)
    }

    /// Begins to announce the changes of these tasks to the subscriptions that watch them, which are open by now. One that
    /// has changed since it was looked at is announced at once.
    pub(crate) async fn watch(&self, owner: TaskOwner, seen: Vec<(TaskId, Bytes)>) {
        for (id, view) in seen {
            let key = self.key(owner, id);
            self.announcer.watch(key.clone());
            match self.store.0.view(&key, false, Millis::now()).await {
                // One that had ended when it was first looked at does not change any more.
                Ok(Some(now)) if now.view == view => {
                    if read_view(&now).is_ok_and(|task| task.status.is_terminal()) {
                        self.announcer.forget(&key.id);
                    }
                }
                _ => self.announcer.changed(&key.id),
            }
        }
    }

    /// Begins to announce the changes of a task that a caller has just created, and what has changed since.
    #[cfg(feature = "legacy")]
    pub(crate) async fn follow(&self, principal: Option<&Principal>, id: &str) {
        let Some(id) = TaskId::parse(id) else { return };
        let key = self.key(TaskOwner::new(principal.map(Principal::as_str)), id);
        self.announcer.watch(key.clone());
        let stored = self.store.0.view(&key, false, Millis::now()).await.ok().flatten();
        if stored
            .is_some_and(|stored| read_view(&stored).is_ok_and(|task| task.status != TaskStatus::Working))
        {
            self.announcer.changed(&key.id);
        }
    }

    /// Returns a task with what its status brings along, and sends parts of its result before it.
    pub(crate) async fn get(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        parts: Option<PartSender>,
    ) -> Outcome {
        let key = self.known_key(&caller, &id)?;
        let stored = self.view(&key, true).await?.ok_or_else(|| unknown(&id))?;
        caller.may_use(&stored.view)?;
        let shown = match written_task(&stored, Millis::now()) {
            Some(task) => ServerResult::WrittenTask(Box::new(task)),
            None => {
                let mut task = read_view(&stored)?;
                self.describe_wait(&caller, &stored, &mut task);
                ServerResult::GetTask(Box::new(task.into()))
            }
        };
        if let Some(mut parts) = parts {
            parts.send(&self.store, &key).await.map_err(|error| busy(&error))?;
        }
        Ok(shown)
    }

    /// Describes what a task waits for, if no process works on it.
    pub(super) fn describe_wait(&self, caller: &TaskCaller, stored: &StoredView, task: &mut Task) {
        let message = task.status_message.take();
        // A process that works on no tasks does not know why others do not.
        let queued =
            || (stored.is_waiting && !self.places.has_any()).then(|| "waiting for a worker".to_owned());
        task.status_message = caller.waits_for(stored).or(message).or_else(queued);
    }

    /// Returns the key of the task that a request names.
    pub(super) fn known_key(&self, caller: &TaskCaller, id: &str) -> Result<TaskKey, ErrorObject> {
        let parsed = TaskId::parse(id).ok_or_else(|| unknown(id))?;
        Ok(self.key(caller.owner, parsed))
    }

    /// Takes answers to a task's questions.
    pub(crate) async fn update(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        responses: Box<RawValue>,
    ) -> Outcome {
        let responses = read_responses(&responses)?;
        self.change(&caller, &id, |record, _, now| caller.answer(record, &responses, now)).await?;
        Ok(acknowledged())
    }

    /// Cancels a task: at once where none works on it, else as soon as its worker hears of it.
    pub(crate) async fn cancel(self: Arc<Self>, caller: TaskCaller, id: String) -> Outcome {
        let cancel = |record: &mut Record, is_held: bool, now| {
            // A worker that has heard of it may be gone.
            let is_heard = record.is_cancelled() && is_held;
            let open = !record.has_ended() && !is_heard;
            record.cancel(is_held, now);
            Ok(open)
        };
        self.change(&caller, &id, cancel).await?;
        Ok(acknowledged())
    }

    /// Makes a client's change, if it is one, however often others change the task meanwhile.
    pub(super) async fn change(
        &self,
        caller: &TaskCaller,
        id: &str,
        change: impl Fn(&mut Record, bool, Millis) -> Result<bool, ErrorObject>,
    ) -> Result<(), ErrorObject> {
        let key = self.known_key(caller, id)?;
        for _ in 0..TRIES {
            let stored = self.read(&key).await.map_err(|error| busy(&error))?;
            let stored = stored.ok_or_else(|| unknown(id))?;
            caller.may_use(&stored.view)?;
            let mut record = Record::read(&stored.work).map_err(|error| unwritable(&error))?;
            let now = Millis::now();
            if !change(&mut record, stored.is_held, now)? {
                return Ok(());
            }
            // A worker that has it keeps it, and finds the change.
            let due = match (stored.is_held, record.is_runnable()) {
                (true, _) => Due::AsBefore,
                (false, true) => Due::After(Duration::ZERO),
                (false, false) => Due::Never,
            };
            let change = record.change(&key, stored.version, due).map_err(|error| unwritable(&error))?;
            if self.store.0.write(change, now).await.map_err(|error| busy(&error))? {
                return Ok(());
            }
        }
        Err(ErrorObject::new(BUSY, "the task changes too often: try again later"))
    }

    /// Reads a task, of an earlier release too.
    pub(super) async fn read(&self, key: &TaskKey) -> Result<Option<StoredTask>, TaskStoreError> {
        let adopts = self.adopts();
        match self.store.0.read(key, Millis::now()).await? {
            None if adopts && self.adopt_one(key).await? => self.store.0.read(key, Millis::now()).await,
            stored => Ok(stored),
        }
    }
}

fn acknowledged() -> ServerResult {
    ServerResult::TaskAcknowledged(TaskAcknowledgedResult::default())
}
