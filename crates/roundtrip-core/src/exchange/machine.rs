//! The state machine: a request, and the action that its reply leads to.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::flow::Flow;
use super::limits::FlowLimits;
use super::params::Params;
use super::pending::Pending;
use super::task::{Task, TaskState};
use crate::error::{Error, PeerMisbehaved, RequestName, TaskError};
use crate::wire::{
    CallTool, CreateTaskResult, GetPrompt, GetTask, INVALID_PARAMS, Implementation, InputRequiredResult,
    MayAsk, Method, ReadResource, ResultError, RoundResult, UpdateTask, decode_complete, decode_round_result,
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

/// A request about a task: `tasks/update` where it answers questions, and `tasks/get` otherwise.
#[derive(Debug, Clone)]
pub(super) struct TaskRequest {
    pub(super) state: Box<TaskState>,
    pub(super) server: Option<Arc<Implementation>>,
    pub(super) params: Params,
    /// Keys of the questions that it answers.
    pub(super) answered: Vec<String>,
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
            Some(request) if request.answered.is_empty() => GetTask::NAME,
            Some(_) => UpdateTask::NAME,
        }
    }

    /// Returns whether the request is about the task that the call goes on as.
    pub fn is_about_task(&self) -> bool {
        self.task.is_some()
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
            Error::Rejected(refusal) if self.task.is_some() && refusal.error().code == INVALID_PARAMS => {
                TaskError::Unknown { request: self.request_name(), error: Box::new(refusal.error().clone()) }
                    .into()
            }
            other => other,
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
        let incomplete = match decode_complete::<M>(result) {
            Ok(result) => return Ok(Action::Done(result)),
            Err(error) => incomplete(M::NAME, result, error),
        };
        let asks = match incomplete.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))? {
            Incomplete::Asks(asks) => asks,
            Incomplete::Task(created) => return Task::created(self.flow, *created).map(Action::Wait),
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

impl TaskRequest {
    fn reply<M: Method>(self, flow: Flow, result: &RawValue, took: Duration) -> Result<Action<M>, Error> {
        let Self { mut state, server, answered, .. } = self;
        if answered.is_empty() {
            return state.reply(flow, server, (result, took));
        }
        decode_complete::<UpdateTask>(result)
            .map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))?;
        state.settle(answered.into_iter());
        Ok(Action::Wait(Task::going_on(flow, server, state)))
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
