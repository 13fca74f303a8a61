//! A call that goes on as a task of the server (SEP-2663), as its client sees it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::dialect::TaskDialect;
use super::flow::Flow;
use super::machine::{Action, Exchange};
use super::params::Params;
use super::task_request::{TaskRequest, questions};
use super::task_state::{PACE, TaskState, brings_payload, malformed, without_payload};
use crate::error::{Error, RequestName};
use crate::wire::{
    CallTool, ErrorObject, Implementation, InputRequests, Method, Raw, ResultMeta, Task as WireTask,
    TaskStatus, json,
};

/// Longest identifier of a task, in bytes. It goes into a header of every request about the task.
const LONGEST_ID: usize = 1024;

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
        let state = Box::new(TaskState::new(seen, None));
        Self { flow: Flow::new(params), server: None, state, method: PhantomData }
    }
}

impl<M: Method> Task<M> {
    /// Makes a task of a flow. Of its parameters only the target is kept.
    pub(super) fn created(
        mut flow: Flow,
        (task, meta): (WireTask, ResultMeta),
        dialect: TaskDialect,
    ) -> Result<Self, Error> {
        let length = task.task_id.len();
        if !(1..=LONGEST_ID).contains(&length) {
            return malformed(format!(
                "a task has an id of {length} bytes, and 1 to {LONGEST_ID} are allowed"
            ));
        }
        flow.params.keep_target();
        flow.idempotency_key = None;
        (flow.polls, flow.polled) = (0, Duration::ZERO);
        let state = Box::new(TaskState::new(task, Some(dialect)));
        Ok(Self { flow, server: meta.server_info, state, method: PhantomData })
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

    /// Sets the dialect of the requests about the task, where it is not known: that of the call which became the task.
    #[must_use]
    pub fn in_dialect(mut self, dialect: TaskDialect) -> Self {
        self.state.dialect.get_or_insert(dialect);
        self
    }

    /// Returns the dialect of the requests about the task, where it is known.
    pub fn dialect(&self) -> Option<TaskDialect> {
        self.state.dialect
    }

    /// Returns whether the next request is one for what the task's status brings along, and due at once.
    pub fn payload_is_due(&self) -> bool {
        self.state.payload_is_due
    }

    /// Returns the number of looks in a row at which the task asked nothing.
    pub fn looks(&self) -> u32 {
        self.state.polls
    }

    /// Adds time that was spent waiting, beyond the pauses.
    pub fn waited(&mut self, more: Duration) {
        self.state.waited = self.state.waited.saturating_add(more);
    }

    /// Takes the task from a notification (`notifications/tasks`). One without what its status brings along is looked at next.
    ///
    /// # Errors
    /// Those of [`Exchange::reply`].
    pub fn notified(self, task: WireTask) -> Result<Action<M>, Error> {
        let Self { flow, server, mut state, .. } = self;
        let lacks = match task.status {
            TaskStatus::InputRequired => task.input_requests.is_empty(),
            TaskStatus::Completed => task.result.is_none(),
            TaskStatus::Failed => task.error.is_none(),
            TaskStatus::Working | TaskStatus::Cancelled => false,
        };
        if lacks || task.status == TaskStatus::Working {
            (state.seen, state.payload_is_due) = (without_payload(task), lacks);
            state.within_ttl(&flow, M::NAME)?;
            return Ok(Action::Wait(Self::going_on(flow, server, state)));
        }
        state.seen_as(task, flow, server, Duration::ZERO)
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

    /// Returns the next request: `tasks/get`, or `tasks/result` where that is [due](Self::payload_is_due) in SEP-2322's dialect.
    pub fn poll(self) -> Exchange<M> {
        let Self { flow, server, state, method } = self;
        let request = TaskRequest { params: state.params(), state, server, answered: Vec::new() };
        Exchange { flow, task: Some(request), method }
    }

    /// Returns `tasks/get`, whatever is due.
    pub fn look(mut self) -> Exchange<M> {
        self.state.payload_is_due = false;
        self.poll()
    }

    /// Takes a result of `tasks/get` and returns the task in full, ended or not.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] for a result that is not that of the task.
    pub fn observe(&mut self, result: &RawValue) -> Result<WireTask, Error> {
        let (task, _) = self.state.read(result)?;
        self.state.seen = without_payload(task.clone());
        self.state.payload_is_due = self.state.is_sep_2322() && brings_payload(task.status);
        Ok(task)
    }

    /// Adds what its status brings along to a task, given the outcome of `tasks/result`.
    pub fn observe_payload(&mut self, task: &mut WireTask, payload: Result<&RawValue, ErrorObject>) {
        self.state.payload_is_due = false;
        match payload {
            Ok(result) => match questions(result) {
                Some(asks) => task.input_requests = asks.input_requests,
                None => task.result = Some(result.into()),
            },
            Err(error) => task.error = Some(error),
        }
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
        let stored = Stored::<Flow, Option<Implementation>, Box<TaskState>>::deserialize(json::ByName::new(
            deserializer,
        ))?;
        if stored.method != M::NAME {
            let why = format!("this is a task of `{}`, not of `{}`", stored.method, M::NAME);
            return Err(de::Error::custom(why));
        }
        let Stored { flow, server, task: state, .. } = stored;
        Ok(Self { flow, server: server.map(Arc::new), state, method: PhantomData })
    }
}
