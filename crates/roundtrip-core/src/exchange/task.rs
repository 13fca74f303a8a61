//! A call that goes on as a task of the server (SEP-2663), as its client sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::flow::Flow;
use super::limits::pause;
use super::machine::{Action, Exchange, TaskRequest};
use super::params::Params;
use super::pending::Pending;
use crate::error::{Error, GaveUp, PeerMisbehaved, RequestName, TaskError};
use crate::wire::{
    CallTool, CreateTaskResult, GetTask, Implementation, InputRequests, Method, Raw, Task as WireTask,
    TaskStatus, clip, decode_complete,
};

/// Bounds of the time between two `tasks/get`, whatever the server says.
const PACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60 * 60));
/// Longest identifier of a task, in bytes. It goes into a header of every request about the task.
const LONGEST_ID: usize = 1024;
/// Time after the end of a task's time to live in which its server may still say how it ended.
const GRACE: Duration = Duration::from_secs(60);

/// State of a task between two requests, stored or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskState {
    /// The task as it was last seen, without questions, result and error.
    pub(super) seen: WireTask,
    /// Keys of all questions so far; true for those that were answered.
    #[serde(default)]
    keys: BTreeMap<String, bool>,
    /// Number of consecutive `tasks/get` that asked nothing.
    #[serde(default)]
    polls: u32,
    /// Total time of requests and pauses.
    #[serde(default)]
    waited: Duration,
    /// Time in which the task asked nothing but what was answered, since its last new question.
    #[serde(default)]
    stalled: Duration,
}

impl TaskState {
    fn new(seen: WireTask) -> Self {
        let (polls, waited, stalled) = (0, Duration::ZERO, Duration::ZERO);
        Self { seen: without_payload(seen), keys: BTreeMap::new(), polls, waited, stalled }
    }

    /// Returns the parameters of a request about the task.
    pub(super) fn params(&self) -> Params {
        [("taskId", Raw::from(Value::from(self.seen.task_id.as_str())))].into_iter().collect()
    }

    /// Marks questions as answered: they are not shown again.
    pub(super) fn settle(&mut self, keys: impl Iterator<Item = String>) {
        self.keys.extend(keys.map(|key| (key, true)));
    }

    /// Takes the questions that have no answer yet out of a task. The second value tells whether one of them is new.
    fn open_questions(&mut self, task: &mut WireTask) -> (InputRequests, bool) {
        let mut questions = std::mem::take(&mut task.input_requests);
        questions.retain(|key, _| self.keys.get(key) != Some(&true));
        let mut is_new = false;
        for key in questions.keys() {
            is_new |= self.keys.insert(key.clone(), false).is_none();
        }
        (questions, is_new)
    }

    /// Returns the pause before the next `tasks/get`: as the server says, within bounds, and not longer than the task is kept.
    fn pause(&self) -> Duration {
        let WireTask { status, poll_interval_ms, ttl_ms, .. } = &self.seen;
        // A task can be created with questions, or ended; there is nothing to wait for then.
        if self.polls == 0 && self.keys.is_empty() && *status != TaskStatus::Working {
            return Duration::ZERO;
        }
        let longest = ttl_ms.map_or(PACE.1, |ttl| Duration::from_millis(ttl / 2).clamp(PACE.0, PACE.1));
        poll_interval_ms.map_or_else(|| pause(self.polls), Duration::from_millis).clamp(PACE.0, longest)
    }

    /// Counts a `tasks/get` that asked nothing, and gives up what has outlived its time to live.
    fn count_poll(&mut self, took: Duration, flow: &Flow, method: &'static str) -> Result<(), Error> {
        self.waited = self.waited.saturating_add(took).saturating_add(self.pause());
        self.polls = self.polls.saturating_add(1);
        match self.seen.ttl_ms.map(Duration::from_millis) {
            Some(ttl) if self.waited > ttl.saturating_add(GRACE) => {
                Err(TaskError::Expired { request: flow.request_name(method), ttl }.into())
            }
            _ => Ok(()),
        }
    }

    /// Counts a `tasks/get` that asked nothing but what was answered. A server may take a while to see an answer, within a bound.
    fn count_stall(&mut self, took: Duration, flow: &Flow, method: &'static str) -> Result<(), Error> {
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
        mut flow: Flow,
        server: Option<Arc<Implementation>>,
        (result, took): (&RawValue, Duration),
    ) -> Result<Action<M>, Error> {
        let (mut task, info) = self.read(result)?;
        let server = info.or(server);
        match task.status {
            TaskStatus::Completed => return completed::<M>(task.result.as_ref()).map(Action::Done),
            TaskStatus::Failed => return Err(failed(task)),
            TaskStatus::Cancelled => {
                let message = task.status_message.map(|message| clip(&message).into());
                return Err(TaskError::Cancelled { request: flow.request_name(M::NAME), message }.into());
            }
            TaskStatus::Working => self.seen = without_payload(task),
            TaskStatus::InputRequired => {
                let (questions, is_new) = self.open_questions(&mut task);
                self.seen = without_payload(task);
                if !questions.is_empty() {
                    if is_new {
                        flow.count_round(M::NAME, questions.len())?;
                    }
                    (self.polls, self.stalled) = (0, Duration::ZERO);
                    return Ok(Action::Ask(Pending::of_task(flow, server, questions, self)));
                }
                self.count_stall(took, &flow, M::NAME)?;
            }
        }
        self.count_poll(took, &flow, M::NAME)?;
        Ok(Action::Wait(Task { flow, server, state: self, method: PhantomData }))
    }

    /// Reads the result of `tasks/get`: the task, and the server's `serverInfo`.
    fn read(&self, result: &RawValue) -> Result<(WireTask, Option<Arc<Implementation>>), Error> {
        let read = decode_complete::<GetTask>(result).map(|read| (read.task, read.meta)).or_else(|error| {
            // Some of the specification's examples have the type of a created task here.
            let read = serde_json::from_str::<CreateTaskResult>(result.get());
            read.map(|read| (read.task, read.meta)).map_err(|_| error)
        });
        let (task, meta) = read.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))?;
        if task.task_id != self.seen.task_id {
            return malformed("`tasks/get` was answered with another task");
        }
        Ok((task, meta.server_info))
    }
}

fn malformed<T>(why: impl Into<String>) -> Result<T, Error> {
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

fn without_payload(mut task: WireTask) -> WireTask {
    task.input_requests.clear();
    (task.result, task.error) = (None, None);
    task
}

/// A call that goes on as a task of the server.
///
/// It serialises as JSON, so that any process can look after the task, and it holds neither arguments nor answers, but what the
/// caller added to `_meta`. Its [identifier](Self::id) may be all that a server without authentication asks for: store it as
/// safely as that.
pub struct Task<M = CallTool> {
    flow: Flow,
    server: Option<Arc<Implementation>>,
    state: Box<TaskState>,
    method: PhantomData<fn() -> M>,
}

impl Task {
    /// Creates the handle of a tool's task from its identifier, where nothing else was kept of it.
    pub fn new(tool: impl Into<String>, id: impl Into<String>) -> Self {
        let params: Params = [("name", Raw::from(Value::from(tool.into())))].into_iter().collect();
        let seen = WireTask {
            task_id: id.into(),
            status: TaskStatus::Working,
            status_message: None,
            created_at: String::new(),
            last_updated_at: String::new(),
            ttl_ms: None,
            poll_interval_ms: None,
            input_requests: InputRequests::new(),
            result: None,
            error: None,
        };
        let state = Box::new(TaskState::new(seen));
        Self { flow: Flow::new(params), server: None, state, method: PhantomData }
    }
}

impl<M: Method> Task<M> {
    /// Makes a task of a flow. Of its parameters only the target is kept.
    pub(super) fn created(mut flow: Flow, created: CreateTaskResult) -> Result<Self, Error> {
        let length = created.task.task_id.len();
        if !(1..=LONGEST_ID).contains(&length) {
            return malformed(format!(
                "a task has an id of {length} bytes, and 1 to {LONGEST_ID} are allowed"
            ));
        }
        flow.params.keep_target();
        flow.idempotency_key = None;
        (flow.polls, flow.polled) = (0, Duration::ZERO);
        let state = Box::new(TaskState::new(created.task));
        Ok(Self { flow, server: created.meta.server_info, state, method: PhantomData })
    }

    /// Builds the task of a request about it.
    pub(super) fn going_on(flow: Flow, server: Option<Arc<Implementation>>, state: Box<TaskState>) -> Self {
        Self { flow, server, state, method: PhantomData }
    }

    /// Sets the greatest number of questions at once, in place of the one it was stored with.
    #[must_use]
    pub fn max_questions(mut self, questions: usize) -> Self {
        self.flow.limits.questions = questions;
        self
    }

    /// Returns the identifier of the task.
    pub fn id(&self) -> &str {
        &self.state.seen.task_id
    }

    /// Returns the target of the call: a tool by name.
    pub fn target(&self) -> Option<String> {
        self.flow.params.target(M::NAME)
    }

    /// Returns the name of the call, for errors.
    pub fn request_name(&self) -> RequestName {
        self.flow.request_name(M::NAME)
    }

    /// Returns the task as it was last seen, without questions, result and error.
    pub fn last_seen(&self) -> &WireTask {
        &self.state.seen
    }

    /// Returns the server's `serverInfo` (self-reported).
    pub fn server(&self) -> Option<&Arc<Implementation>> {
        self.server.as_ref()
    }

    /// Returns the caller's additions to `_meta`.
    pub fn meta(&self) -> &Params {
        &self.flow.meta
    }

    /// Returns the parameters of a request about the task.
    pub fn params(&self) -> Params {
        self.state.params()
    }

    /// Returns the pause before the next `tasks/get`, given the time that has passed since the last one.
    pub fn pause_after(&self, passed: Duration) -> Duration {
        let pause = self.state.pause();
        pause.saturating_sub(passed).max(pause.min(PACE.0))
    }

    /// Returns the next request: `tasks/get`.
    pub fn poll(self) -> Exchange<M> {
        let Self { flow, server, state, method } = self;
        let request = TaskRequest { params: state.params(), state, server, answered: Vec::new() };
        Exchange { flow, task: Some(request), method }
    }

    /// Takes a result of `tasks/get` and returns the task in full, ended or not.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] for a result that is not that of the task.
    pub fn observe(&mut self, result: &RawValue) -> Result<WireTask, Error> {
        let (task, _) = self.state.read(result)?;
        self.state.seen = without_payload(task.clone());
        Ok(task)
    }
}

impl<M> Clone for Task<M> {
    fn clone(&self) -> Self {
        let (flow, server, state) = (self.flow.clone(), self.server.clone(), self.state.clone());
        Self { flow, server, state, method: PhantomData }
    }
}

/// Shows no identifier, which may be all that it takes to reach the task.
impl<M: Method> fmt::Debug for Task<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("method", &M::NAME)
            .field("target", &self.target())
            .field("status", &self.state.seen.status)
            .finish_non_exhaustive()
    }
}

/// The stored form of [`Task`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<F, I, T> {
    method: String,
    flow: F,
    server: I,
    task: T,
}

impl<M: Method> Serialize for Task<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (server, task) = (self.server.as_deref(), &*self.state);
        Stored { method: M::NAME.to_owned(), flow: &self.flow, server, task }.serialize(serializer)
    }
}

impl<'de, M: Method> Deserialize<'de> for Task<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::<Flow, Option<Implementation>, Box<TaskState>>::deserialize(deserializer)?;
        if stored.method != M::NAME {
            let why = format!("this is a task of `{}`, not of `{}`", stored.method, M::NAME);
            return Err(de::Error::custom(why));
        }
        let Stored { flow, server, task: state, .. } = stored;
        Ok(Self { flow, server: server.map(Arc::new), state, method: PhantomData })
    }
}
