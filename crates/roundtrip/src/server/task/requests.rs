//! `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::error::BUSY;
use roundtrip_core::round::read_responses;
#[cfg(feature = "legacy")]
use roundtrip_core::wire::TaskStatus;
use roundtrip_core::wire::{ErrorObject, ServerResult, TaskAcknowledgedResult};
use serde_json::value::RawValue;

use super::caller::TaskCaller;
use super::errors::{busy, read_view, unknown, unwritable};
use super::part_sender::PartSender;
use super::service::TaskService;
use crate::server::outcome::Outcome;
#[cfg(feature = "legacy")]
use crate::server::peer::Principal;
use crate::task::{Millis, Record, StoredTask, TaskId, TaskOwner};

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
            let view = self.store.0.view(&caller.owner, &id).await.map_err(|error| busy(&error))?;
            if let Some(view) = view
                && caller.may_use(&view).is_ok()
                && !known.iter().any(|(other, _)| *other == id)
            {
                known.push((id, view));
            }
        }
        Ok(known)
    }

    /// Begins to announce the changes of these tasks to the subscriptions that watch them, which are open by now. One that
    /// has changed since it was looked at is announced at once.
    pub(crate) async fn watch(&self, owner: TaskOwner, seen: Vec<(TaskId, Bytes)>) {
        for (id, view) in seen {
            self.watch_one(id.clone(), owner);
            let now = self.store.0.view(&owner, &id).await;
            if !matches!(now, Ok(Some(now)) if now == view) {
                self.announce(&id).await;
            }
        }
    }

    /// Begins to announce the changes of a task that a caller has just created, and what has changed since.
    #[cfg(feature = "legacy")]
    pub(crate) async fn follow(&self, principal: Option<&Principal>, id: &str) {
        let Some(id) = TaskId::parse(id) else { return };
        let owner = TaskOwner::new(principal.map(Principal::as_str));
        self.watch_one(id.clone(), owner);
        let view = self.store.0.view(&owner, &id).await.ok().flatten();
        if view.is_some_and(|view| read_view(&view).is_ok_and(|task| task.status != TaskStatus::Working)) {
            self.announce(&id).await;
        }
    }

    /// Returns a task with what its status brings along, and sends parts of its result before it.
    pub(crate) async fn get(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        parts: Option<PartSender>,
    ) -> Outcome {
        let parsed = TaskId::parse(&id).ok_or_else(|| unknown(&id))?;
        let view = self.store.0.view(&caller.owner, &parsed).await.map_err(|error| busy(&error))?;
        let view = view.ok_or_else(|| unknown(&id))?;
        caller.may_use(&view)?;
        let task = read_view(&view)?;
        if let Some(mut parts) = parts {
            parts.send(&view).await;
        }
        Ok(ServerResult::GetTask(Box::new(task.into())))
    }

    /// Takes answers to a task's questions.
    pub(crate) async fn update(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        responses: Box<RawValue>,
    ) -> Outcome {
        let responses = read_responses(&responses)?;
        self.change(&caller, &id, |record, _, now| record.answer(&responses, now)).await?;
        Ok(acknowledged())
    }

    /// Cancels a task: at once where none works on it, else as soon as its worker hears of it.
    pub(crate) async fn cancel(self: Arc<Self>, caller: TaskCaller, id: String) -> Outcome {
        let cancel = |record: &mut Record, is_held: bool, now| {
            let open = !record.has_ended() && !record.is_cancelled();
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
        let parsed = TaskId::parse(id).ok_or_else(|| unknown(id))?;
        for _ in 0..TRIES {
            let stored = self.store.0.read(&caller.owner, &parsed).await.map_err(|error| busy(&error))?;
            let mut stored = stored.ok_or_else(|| unknown(id))?;
            caller.may_use(&stored.view)?;
            let mut record = Record::read(&stored).map_err(|error| unwritable(&error))?;
            let (now, is_held) = (Millis::now(), is_held(&stored, &record));
            if !change(&mut record, is_held, now)? {
                return Ok(());
            }
            // A worker that has it keeps it, and finds the change.
            let due = if is_held { stored.due } else { record.is_runnable().then_some(now) };
            record.put(&mut stored, due).map_err(|error| unwritable(&error))?;
            if self.store.0.write(stored).await.map_err(|error| busy(&error))? {
                return Ok(());
            }
        }
        Err(ErrorObject::new(BUSY, "the task changes too often: try again later"))
    }
}

/// Returns whether a worker has a task: one that waits for answers is due for none.
fn is_held(stored: &StoredTask, record: &Record) -> bool {
    stored.fence > 0 && stored.due.is_some_and(|due| due > Millis::now()) && !record.has_ended()
}

fn acknowledged() -> ServerResult {
    ServerResult::TaskAcknowledged(TaskAcknowledgedResult::default())
}
