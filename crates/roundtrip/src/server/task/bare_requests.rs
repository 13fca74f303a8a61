//! `tasks/get`, `tasks/result`, `tasks/input_response`, `tasks/cancel` and `tasks/list` of SEP-2322 and of revision 2025-11-25.

#[cfg(feature = "legacy")]
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::error::task_runs;
use roundtrip_core::round::read_responses;
use roundtrip_core::wire::{
    ErrorObject, ListTasksResult, ServerResult, Task, TaskAcknowledgedResult, TaskStatus, related_task,
};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::caller::TaskCaller;
use super::dialect::Dialect;
#[cfg(feature = "legacy")]
use super::errors::read_view;
use super::errors::{bare_view, busy, unknown, unwritable};
use super::part_sender::PartSender;
use super::request_state::TaskState;
use super::service::TaskService;
use crate::server::outcome::Outcome;
#[cfg(feature = "legacy")]
use crate::server::peer::Principal;
#[cfg(feature = "legacy")]
use crate::task::TaskOwner;
use crate::task::{Millis, Record, TaskId, TaskKey};

/// Longest time that `tasks/result` waits in SEP-2322's dialect: shorter than most proxies do.
const WAIT: Duration = Duration::from_secs(50);
/// Longest time that `tasks/cancel` waits for a step to end.
const CANCEL: Duration = Duration::from_secs(40);
/// Time after which a task is looked at again, even if no change was announced.
const LOOK: Duration = Duration::from_secs(5);
/// Most tasks on a page of `tasks/list`.
const PAGE: usize = 50;
/// Most of them that are read at once: each may have many questions.
const FEW: usize = 5;

impl TaskService {
    /// Returns a task, without what its status brings along.
    pub(crate) async fn get_bare(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        dialect: Dialect,
        mut parts: Option<PartSender>,
    ) -> Outcome {
        let key = self.known_key(&caller, &id)?;
        self.poll(&caller, &key, false, parts.as_mut()).await.map(|task| dialect.shown(task))
    }

    /// Waits until a task asks or has ended, and returns its questions, its result or its error.
    pub(crate) async fn payload(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        (dialect, state): (Dialect, TaskState),
        answers: Option<Box<RawValue>>,
        mut parts: Option<PartSender>,
    ) -> Outcome {
        if let Some(answers) = answers.filter(|_| dialect == Dialect::Experimental) {
            let answers = read_responses(&answers)?;
            self.change(&caller, &id, |record, _, now| caller.answer(record, &answers, now)).await?;
        }
        let within = (dialect == Dialect::Sep2322).then_some(WAIT);
        let is = |task: &Task| task.status.is_terminal() || asks(task);
        let mut task = self.once(&caller, &id, within, is, parts.as_mut()).await?;
        if task.status.is_terminal() {
            // Only now is the result read, and once.
            task = self.poll(&caller, &self.known_key(&caller, &id)?, true, None).await?;
        }
        let state = match dialect {
            Dialect::Sep2322 if asks(&task) => self.state(&caller, &id, &state).await?,
            _ => None,
        };
        Dialect::payload(task, state)
    }

    /// Takes answers to a task's questions.
    pub(crate) async fn respond(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        responses: Box<RawValue>,
        (state, echoed): (TaskState, Option<String>),
    ) -> Outcome {
        let responses = read_responses(&responses)?;
        if let Some(token) = &echoed {
            state.open(&id, token).await?;
        }
        let answer = |record: &mut Record, _: bool, now| {
            if record.has_ended() {
                return Err(ended(record.status(), "takes no answers"));
            }
            if echoed.is_none() && record.asks_with_state() {
                return Err(TaskState::missing());
            }
            caller.answer(record, &responses, now)
        };
        self.change(&caller, &id, answer).await?;
        let meta = related_task(&id).into();
        Ok(ServerResult::TaskAcknowledged(TaskAcknowledgedResult { meta, ..Default::default() }))
    }

    /// Cancels a task, and returns it once it has ended: a step that runs ends first.
    pub(crate) async fn cancel_bare(
        self: Arc<Self>,
        caller: TaskCaller,
        id: String,
        dialect: Dialect,
    ) -> Outcome {
        let cancel = |record: &mut Record, is_held: bool, now| {
            if record.has_ended() {
                return Err(ended(record.status(), "cannot be cancelled"));
            }
            let open = !record.is_cancelled();
            record.cancel(is_held, now);
            Ok(open)
        };
        self.change(&caller, &id, cancel).await?;
        let task = self.once(&caller, &id, Some(CANCEL), |task| task.status.is_terminal(), None).await?;
        if task.status != TaskStatus::Cancelled {
            return Err(ended(task.status, "cannot be cancelled"));
        }
        Ok(dialect.shown(task))
    }

    /// Returns a page of the caller's tasks, without those that it may not use now.
    pub(crate) async fn list(
        self: Arc<Self>,
        caller: TaskCaller,
        cursor: Option<String>,
        dialect: Dialect,
    ) -> Outcome {
        let no_cursor =
            || ErrorObject::invalid_params("params.cursor: not one that this server has given out");
        let after = cursor.map(|cursor| TaskId::parse(&cursor).ok_or_else(no_cursor)).transpose()?;
        let (mut tasks, mut last, mut is_end, now) = (Vec::new(), after, false, Millis::now());
        for _ in 0..PAGE / FEW {
            let few = self.few(&caller, last.as_ref(), FEW).await?;
            let usable = few.iter().filter(|(_, view)| caller.may_use(view).is_ok());
            let read = usable.filter_map(|(_, view)| Record::read_view(view, None, now).ok());
            tasks.extend(read.map(|task| dialect.bare(task)));
            is_end = few.len() < FEW;
            last = few.into_iter().next_back().map(|(id, _)| id).or(last);
            if is_end {
                break;
            }
        }
        let has_more = !is_end && !self.few(&caller, last.as_ref(), 1).await?.is_empty();
        let next_cursor = last.filter(|_| has_more).map(|id| id.to_string());
        Ok(ServerResult::ListTasks(ListTasksResult { tasks, next_cursor, ..ListTasksResult::default() }))
    }

    /// Reads the tasks of a caller behind one, without their results.
    async fn few(
        &self,
        caller: &TaskCaller,
        after: Option<&TaskId>,
        most: usize,
    ) -> Result<Vec<(TaskId, Bytes)>, ErrorObject> {
        let listed = self.store.0.list(&self.service, &caller.owner, after, most).await;
        listed.map_err(|error| busy(&error))
    }

    /// Reads a task as it is, and sends new parts of its result.
    async fn poll(
        &self,
        caller: &TaskCaller,
        key: &TaskKey,
        with_result: bool,
        parts: Option<&mut PartSender>,
    ) -> Result<Task, ErrorObject> {
        let stored = self.view(key, with_result).await?.ok_or_else(|| unknown(key.id.as_str()))?;
        caller.may_use(&stored.view)?;
        if let Some(parts) = parts {
            parts.send(&self.store, key).await.map_err(|error| busy(&error))?;
        }
        let mut task = bare_view(&stored)?;
        self.describe_wait(caller, &stored, &mut task);
        Ok(task)
    }

    /// Waits until a task `is` so, and sends parts of its result as they are stored. Nothing is lost if the request is given up meanwhile.
    async fn once(
        &self,
        caller: &TaskCaller,
        id: &str,
        within: Option<Duration>,
        is: impl Fn(&Task) -> bool,
        mut parts: Option<&mut PartSender>,
    ) -> Result<Task, ErrorObject> {
        let key = self.known_key(caller, id)?;
        let end = within.map(|within| Instant::now() + within);
        let waiting = self.waiters.wait(&key.id);
        loop {
            // Before the task is read, so that no change is missed.
            let mut changed = pin!(waiting.changed.notified());
            changed.as_mut().enable();
            let task = self.poll(caller, &key, false, parts.as_deref_mut()).await?;
            let now = Instant::now();
            if is(&task) {
                return Ok(task);
            }
            if end.is_some_and(|end| now >= end) {
                return Err(task_runs());
            }
            let again = now + LOOK;
            tokio::select! {
                () = changed => {}
                () = sleep_until(end.map_or(again, |end| end.min(again))) => {}
            }
        }
    }

    /// Waits until a task asks for something else than these keys, has ended, or is gone. Returns the keys of its open questions.
    #[cfg(feature = "legacy")]
    pub(crate) async fn asks_other(
        &self,
        principal: Option<&Principal>,
        id: &str,
        keys: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let Some(id) = TaskId::parse(id) else { return BTreeSet::new() };
        let key = self.key(TaskOwner::new(principal.map(Principal::as_str)), id);
        let waiting = self.waiters.wait(&key.id);
        loop {
            // Before the task is read, so that no change is missed.
            let mut changed = pin!(waiting.changed.notified());
            changed.as_mut().enable();
            // A store that fails is asked again.
            if let Ok(stored) = self.store.0.view(&key, false, Millis::now()).await {
                let open = stored.as_ref().and_then(|stored| read_view(stored).ok());
                let open: BTreeSet<String> =
                    open.map(|task| task.input_requests.into_keys().collect()).unwrap_or_default();
                if open != *keys {
                    return open;
                }
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(Instant::now() + LOOK) => {}
            }
        }
    }

    /// Seals `requestState` for a task whose handler has set state.
    async fn state(
        &self,
        caller: &TaskCaller,
        id: &str,
        state: &TaskState,
    ) -> Result<Option<String>, ErrorObject> {
        let stored = self.read(&self.known_key(caller, id)?).await.map_err(|error| busy(&error))?;
        let stored = stored.ok_or_else(|| unknown(id))?;
        let record = Record::read(&stored.work).map_err(|error| unwritable(&error))?;
        if record.asks_with_state() { state.seal(id, &record).await.map(Some) } else { Ok(None) }
    }
}

/// Returns whether a task has a question that waits for its answer.
fn asks(task: &Task) -> bool {
    task.status == TaskStatus::InputRequired && !task.input_requests.is_empty()
}

/// Returns the error of a request that a task which has ended refuses.
fn ended(status: TaskStatus, refuses: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("params.taskId: the task {refuses}: it is `{status}` already"))
}
