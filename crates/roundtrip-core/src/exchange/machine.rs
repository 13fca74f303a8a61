//! The state machine: a request, and the action that its reply leads to.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;

use super::dialect::{self, TASK, TaskDialect};
use super::flow::Flow;
use super::limits::FlowLimits;
use super::params::Params;
use super::pending::Pending;
use super::task::Task;
use super::task_request::TaskRequest;
use crate::error::{Error, PeerMisbehaved, RequestName, ServerRejection, TaskError};
use crate::wire::{
    CallTool, CreateTaskResult, GetPrompt, INVALID_PARAMS, InputRequiredResult, MayAsk, Method, ReadResource,
    ResultError, RoundResult, TaskInputResponse, TaskPayload, decode_complete, decode_round_result,
};

/// The next request of a flow.
#[derive(Debug)]
#[must_use = "an exchange does nothing until its request is sent"]
pub struct Exchange<M> {
    pub(super) flow: Flow,
    /// Request about the task that the call goes on as.
    pub(super) task: Option<TaskRequest>,
    pub(super) method: PhantomData<fn() -> M>,
}

/// Next action of the client after a reply.
#[derive(Debug)]
#[must_use = "the flow goes on only when the action is taken"]
pub enum Action<M: Method> {
    /// The flow has ended with this result.
    Done(M::Result),
    /// The server asks: answer every question and continue with [`Pending::resume`].
    Ask(Pending<M>),
    /// The server asks nothing: wait this long and continue with [`Pending::resume`].
    Pause(Duration, Pending<M>),
    /// The call goes on as a task: wait for as long as [`Task::pause_after`] says and continue with [`Task::poll`].
    Wait(Task<M>),
}

impl<M: Method> Exchange<M> {
    /// Creates the first request of a flow. The parameters are those of the method, without `_meta`.
    pub fn new(params: Params) -> Self {
        Self { flow: Flow::new(params), task: None, method: PhantomData }
    }

    /// Sets the limits of the flow.
    pub fn limits(mut self, limits: FlowLimits) -> Self {
        self.flow.limits = limits;
        self
    }

    /// Adds members to the `_meta` of every request of the flow.
    pub fn with_meta(mut self, meta: Params) -> Self {
        self.flow.meta = meta;
        self
    }

    /// Sets the flow's idempotency key, by which a server tells a request sent twice from two requests.
    pub fn idempotency_key(mut self, key: Option<String>) -> Self {
        self.flow.idempotency_key = key;
        self
    }

    /// Returns the method of the request: that of the call, or one about the task that the call goes on as.
    pub fn method(&self) -> &'static str {
        match &self.task {
            None => M::NAME,
            Some(request) => request.method(),
        }
    }

    /// Returns whether the request is about the task that the call goes on as.
    pub fn is_about_task(&self) -> bool {
        self.task.is_some()
    }

    /// Returns whether the request is one for the result of a task, or for its questions: `tasks/result`.
    pub fn is_for_payload(&self) -> bool {
        self.method() == TaskPayload::NAME
    }

    /// Returns the dialect of a request about a task; `None` where the task's is not known, and for other requests.
    pub fn dialect(&self) -> Option<TaskDialect> {
        self.task.as_ref().and_then(|request| request.state.dialect)
    }

    /// Returns the task that the request has to name in `_meta`: in SEP-2322's dialect, answers do.
    pub fn related_task(&self) -> Option<&str> {
        let request = self.task.as_ref().filter(|request| request.method() == TaskInputResponse::NAME);
        request.map(|request| request.state.id())
    }

    /// Asks for a task with the parameter `task`, as SEP-2322's dialect does, to be kept for a while if the caller says so.
    pub fn ask_for_task(&mut self, ttl: Option<Duration>) {
        let millis = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let wanted = millis.map_or_else(|| json!({}), |ttl| json!({ "ttl": ttl }));
        self.flow.params.set(TASK, Some(wanted.into()));
    }

    /// Returns the name of the call, for errors.
    pub fn request_name(&self) -> RequestName {
        self.flow.request_name(M::NAME)
    }

    /// Returns the parameters to send: the original ones, and in a retry the `inputResponses` and `requestState` of
    /// the round before, where that had any. Those of a request about a task have its `taskId`.
    pub fn params(&self) -> &Params {
        self.task.as_ref().map_or(&self.flow.params, |request| &request.params)
    }

    /// Returns the caller's additions to `_meta`.
    pub fn meta(&self) -> &Params {
        &self.flow.meta
    }

    /// Returns the idempotency key of this request: the flow's key and the number of the request. It is the same each
    /// time this request is sent, and differs from that of every other request of the flow.
    pub fn request_key(&self) -> Option<String> {
        let key = self.flow.idempotency_key.as_ref()?;
        Some(format!("{key}.{}", self.flow.rounds))
    }

    /// Returns whether the request hands a `requestState` back.
    pub fn has_state(&self) -> bool {
        self.flow.params.get("requestState").is_some()
    }

    /// Returns the first request of the flow begun anew: without answers and without `requestState`. Its rounds go on being
    /// counted, so that the limits hold for all of them and no two requests have the same key.
    pub fn restart(&self) -> Self {
        let mut flow = self.flow.clone();
        for member in ["inputResponses", "requestState"] {
            flow.params.set(member, None);
        }
        flow.rounds = flow.rounds.saturating_add(1);
        flow.polls = 0;
        Self { flow, task: None, method: PhantomData }
    }

    /// Names the error of a request about a task that the server does not know.
    pub fn failed(&self, error: Error) -> Error {
        match error {
            Error::Rejected(refusal)
                if self.task.as_ref().is_some_and(|request| !request.is_error_of_task())
                    && !matches!(refusal, ServerRejection::StateRejected(_))
                    && refusal.error().code == INVALID_PARAMS =>
            {
                TaskError::Unknown { request: self.request_name(), error: Box::new(refusal.error().clone()) }
                    .into()
            }
            other => other,
        }
    }

    /// Takes an error of the request. Some say no more than that the task has moved on: it is looked at again then.
    ///
    /// # Errors
    /// Any other error, as it came.
    pub fn refused(self, error: Error) -> Result<Action<M>, Error> {
        match self.task {
            Some(request) if request.has_moved_on(&error) => request.look_again(&self.flow),
            _ => Err(error),
        }
    }

    /// Takes the result of the request, and the time it took.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] for a result this method cannot have and for more questions than one round may ask,
    /// [`Error::GaveUp`] where the flow has gone as far as it may; for a task the error that it ended with.
    pub fn reply(mut self, result: &RawValue, took: Duration) -> Result<Action<M>, Error> {
        if let Some(request) = self.task {
            return request.reply(self.flow, result, took);
        }
        if self.flow.params.get(TASK).is_some()
            && let Some(created) = dialect::created(result)?
        {
            return Task::created(self.flow, created, TaskDialect::Sep2322).map(Action::Wait);
        }
        let incomplete = match decode_complete::<M>(result) {
            Ok(result) => return Ok(Action::Done(result)),
            Err(error) => incomplete(M::NAME, result, error),
        };
        let asks = match incomplete.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))? {
            Incomplete::Asks(asks) => asks,
            Incomplete::Task(created) => {
                let CreateTaskResult { task, meta, .. } = *created;
                return Task::created(self.flow, (task, meta), TaskDialect::Extension).map(Action::Wait);
            }
        };
        if asks.input_requests.is_empty() {
            let pause = self.flow.count_poll(M::NAME, took)?;
            Ok(Action::Pause(pause, Pending::new(self.flow, asks)))
        } else {
            self.flow.count_round(M::NAME, asks.input_requests.len())?;
            Ok(Action::Ask(Pending::new(self.flow, asks)))
        }
    }
}

/// Derived, this would want a method to be cloned that has nothing to clone.
impl<M> Clone for Exchange<M> {
    fn clone(&self) -> Self {
        Self { flow: self.flow.clone(), task: self.task.clone(), method: PhantomData }
    }
}

/// Result of a call that goes on.
enum Incomplete {
    Asks(InputRequiredResult),
    Task(Box<CreateTaskResult>),
}

/// Decodes a result that is not a complete one; `error` says why it is not.
fn incomplete(
    method: &'static str,
    result: &RawValue,
    error: ResultError,
) -> Result<Incomplete, ResultError> {
    fn of<M: MayAsk>(result: &RawValue, error: ResultError) -> Result<Incomplete, ResultError> {
        match decode_round_result::<M>(result)? {
            RoundResult::InputRequired(asks) => Ok(Incomplete::Asks(asks)),
            RoundResult::Task(created) => Ok(Incomplete::Task(created)),
            RoundResult::Complete(_) => Err(error),
        }
    }
    match method {
        CallTool::NAME => of::<CallTool>(result, error),
        GetPrompt::NAME => of::<GetPrompt>(result, error),
        ReadResource::NAME => of::<ReadResource>(result, error),
        _ => Err(error),
    }
}
