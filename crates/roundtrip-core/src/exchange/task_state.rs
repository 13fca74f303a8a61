//! State of a task between two requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::dialect::{self, TaskDialect};
use super::flow::Flow;
use super::limits::pause;
use super::machine::Action;
use super::params::Params;
use super::pending::Pending;
use super::task::Task;
use crate::error::{Error, GaveUp, PeerMisbehaved, TaskError};
use crate::wire::{
    CreateTaskResult, GetTask, Implementation, InputRequests, Method, Raw, ResultMeta, Task as WireTask,
    TaskStatus, clip, decode_complete, json,
};

/// Bounds of the time between two `tasks/get`, whatever the server says.
pub(super) const PACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60 * 60));
/// Time after the end of a task's time to live in which its server may still say how it ended.
const GRACE: Duration = Duration::from_secs(60);

/// State of a task between two requests, stored or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskState {
    /// The task as it was last seen, without questions, result and error.
    pub(super) seen: WireTask,
    /// Dialect of the requests about it; `None` where only its identifier is known.
    #[serde(default)]
    pub(super) dialect: Option<TaskDialect>,
    /// True if its status has brought along what is to be asked for next.
    #[serde(default)]
    pub(super) payload_is_due: bool,
    /// Keys of all questions so far; true for those that were answered.
    #[serde(default)]
    keys: BTreeMap<String, bool>,
    /// Number of consecutive `tasks/get` that asked nothing.
    #[serde(default)]
    pub(super) polls: u32,
    /// Total time of requests and pauses.
    #[serde(default)]
    pub(super) waited: Duration,
    /// Time in which the task asked nothing but what was answered, since its last new question.
    #[serde(default)]
    stalled: Duration,
}

impl TaskState {
    pub(super) fn new(seen: WireTask, dialect: Option<TaskDialect>) -> Self {
        let (polls, waited, stalled) = (0, Duration::ZERO, Duration::ZERO);
        let (seen, keys, payload_is_due) = (without_payload(seen), BTreeMap::new(), false);
        Self { seen, dialect, payload_is_due, keys, polls, waited, stalled }
    }

    pub(super) fn is_sep_2322(&self) -> bool {
        self.dialect == Some(TaskDialect::Sep2322)
    }

    pub(super) fn id(&self) -> &str {
        &self.seen.task_id
    }

    /// Returns the parameters of a request about the task.
    pub(super) fn params(&self) -> Params {
        [("taskId", Raw::from(Value::from(self.seen.task_id.as_str())))].into_iter().collect()
    }

    /// Marks questions as answered: they are not shown again.
    pub(super) fn settle(&mut self, keys: impl Iterator<Item = String>) {
        self.keys.extend(keys.map(|key| (key, true)));
    }

    /// Returns the questions that have no answer yet. The second value tells whether one of them is new.
    pub(super) fn open_questions(&mut self, mut questions: InputRequests) -> (InputRequests, bool) {
        // The extension gives a question that is asked again a key of its own. SEP-2322 does not, and stops asking with the answer.
        if !self.is_sep_2322() {
            questions.retain(|key, _| self.keys.get(key) != Some(&true));
        }
        let mut is_new = false;
        for key in questions.keys() {
            is_new |= self.keys.insert(key.clone(), false) != Some(false);
        }
        (questions, is_new)
    }

    /// Notes that the task has asked something that can be answered.
    pub(super) fn progressed(&mut self) {
        (self.polls, self.stalled) = (0, Duration::ZERO);
    }

    /// Returns the pause before the next request: as the server says, within bounds, and not longer than the task is kept.
    pub(super) fn pause(&self) -> Duration {
        if self.payload_is_due {
            return if self.is_sep_2322() { Duration::ZERO } else { PACE.0 };
        }
        let WireTask { status, poll_interval_ms, ttl_ms, .. } = &self.seen;
        // A task can be created with questions, or ended; there is nothing to wait for then.
        if self.polls == 0 && self.keys.is_empty() && *status != TaskStatus::Working {
            return Duration::ZERO;
        }
        let longest = ttl_ms.map_or(PACE.1, |ttl| Duration::from_millis(ttl / 2).clamp(PACE.0, PACE.1));
        poll_interval_ms.map_or_else(|| pause(self.polls), Duration::from_millis).clamp(PACE.0, longest)
    }

    /// Counts a look at which the task asked nothing.
    pub(super) fn count_poll(
        &mut self,
        took: Duration,
        flow: &Flow,
        method: &'static str,
    ) -> Result<(), Error> {
        self.waited = self.waited.saturating_add(took).saturating_add(self.pause());
        self.polls = self.polls.saturating_add(1);
        self.within_ttl(flow, method)
    }

    /// Gives up what has outlived its time to live.
    pub(super) fn within_ttl(&self, flow: &Flow, method: &'static str) -> Result<(), Error> {
        match self.seen.ttl_ms.map(Duration::from_millis) {
            Some(ttl) if self.waited > ttl.saturating_add(GRACE) => {
                Err(TaskError::Expired { request: flow.request_name(method), ttl }.into())
            }
            _ => Ok(()),
        }
    }

    /// Counts a `tasks/get` that asked nothing but what was answered. A server may take a while to see an answer, within a bound.
    pub(super) fn count_stall(
        &mut self,
        took: Duration,
        flow: &Flow,
        method: &'static str,
    ) -> Result<(), Error> {
        self.stalled = self.stalled.saturating_add(took).saturating_add(self.pause());
        if self.stalled > flow.limits.polling {
            let (request, allowed) = (flow.request_name(method), flow.limits.polling);
            return Err(GaveUp::PolledTooLong { request, allowed }.into());
        }
        Ok(())
    }

    /// Takes the result of `tasks/get`.
    pub(super) fn reply<M: Method>(
        mut self: Box<Self>,
        flow: Flow,
        server: Option<Arc<Implementation>>,
        (result, took): (&RawValue, Duration),
    ) -> Result<Action<M>, Error> {
        let (task, info) = self.read(result)?;
        let server = info.or(server);
        if !self.is_sep_2322() || !brings_payload(task.status) {
            return self.seen_as(task, flow, server, took);
        }
        // Its questions, its result or its error are the next request's.
        (self.seen, self.payload_is_due) = (without_payload(task), true);
        Ok(Action::Wait(Task::going_on(flow, server, self)))
    }

    /// Takes the task as the server has shown it, in full.
    pub(super) fn seen_as<M: Method>(
        mut self: Box<Self>,
        mut task: WireTask,
        mut flow: Flow,
        server: Option<Arc<Implementation>>,
        took: Duration,
    ) -> Result<Action<M>, Error> {
        self.payload_is_due = false;
        match task.status {
            TaskStatus::Completed => return completed::<M>(task.result.as_ref()).map(Action::Done),
            TaskStatus::Failed => return Err(failed(task)),
            TaskStatus::Cancelled => {
                let message = task.status_message.map(|message| clip(&message).into());
                return Err(TaskError::Cancelled { request: flow.request_name(M::NAME), message }.into());
            }
            TaskStatus::Working => self.seen = without_payload(task),
            TaskStatus::InputRequired => {
                let (questions, is_new) = self.open_questions(std::mem::take(&mut task.input_requests));
                self.seen = without_payload(task);
                if !questions.is_empty() {
                    if is_new {
                        flow.count_round(M::NAME, questions.len())?;
                    }
                    self.progressed();
                    return Ok(Action::Ask(Pending::of_task(flow, server, questions, self, None)));
                }
                self.count_stall(took, &flow, M::NAME)?;
            }
        }
        self.count_poll(took, &flow, M::NAME)?;
        Ok(Action::Wait(Task::going_on(flow, server, self)))
    }

    /// Reads the result of `tasks/get`: the task, and the server's `serverInfo`.
    pub(super) fn read(&self, result: &RawValue) -> Result<(WireTask, Option<Arc<Implementation>>), Error> {
        let (task, meta) = if self.is_sep_2322() { dialect::shown(result)? } else { shown(result)? };
        if task.task_id != self.seen.task_id {
            return malformed("`tasks/get` was answered with another task");
        }
        Ok((task, meta.server_info))
    }
}

/// Reads the result of `tasks/get` in the extension.
fn shown(result: &RawValue) -> Result<(WireTask, ResultMeta), Error> {
    let read = decode_complete::<GetTask>(result).map(|read| (read.task, read.meta)).or_else(|error| {
        // Some of the specification's examples have the type of a created task here.
        let read = json::from_str::<CreateTaskResult>(result.get());
        read.map(|read| (read.task, read.meta)).map_err(|_| error)
    });
    read.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()).into())
}

/// Returns whether a status brings along something that SEP-2322 gives by `tasks/result`.
pub(super) fn brings_payload(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed)
}

pub(super) fn malformed<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(PeerMisbehaved::MalformedResult(why.into()).into())
}

/// Decodes the result of a task's call.
fn completed<M: Method>(result: Option<&Raw>) -> Result<M::Result, Error> {
    let Some(result) = result else { return malformed("a task is `completed` without a `result`") };
    decode_complete::<M>(result.as_ref())
        .map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()).into())
}

/// Returns the error of a task's call.
fn failed(task: WireTask) -> Error {
    match task.error {
        Some(error) => error.into(),
        None => PeerMisbehaved::MalformedResult("a task has `failed` without an `error`".to_owned()).into(),
    }
}

pub(super) fn without_payload(mut task: WireTask) -> WireTask {
    task.input_requests.clear();
    (task.result, task.error) = (None, None);
    task
}
