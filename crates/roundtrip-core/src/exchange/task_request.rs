//! Requests about a task, and what their replies lead to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::flow::Flow;
use super::machine::Action;
use super::params::Params;
use super::pending::Pending;
use super::task::Task;
use super::task_state::TaskState;
use crate::error::{BUSY, Error, PeerMisbehaved, TaskError};
use crate::wire::{
    CallTool, GetTask, Implementation, InputRequiredResult, Method, RoundResult, TaskInputResponse,
    TaskPayload, TaskStatus, UpdateTask, decode_complete, decode_round_result,
};

/// A request about a task: one that answers questions, one for the payload of its status, or `tasks/get`.
#[derive(Debug, Clone)]
pub(super) struct TaskRequest {
    pub(super) state: Box<TaskState>,
    pub(super) server: Option<Arc<Implementation>>,
    pub(super) params: Params,
    /// Keys of the questions that it answers.
    pub(super) answered: Vec<String>,
}

impl TaskRequest {
    pub(super) fn method(&self) -> &'static str {
        match (self.answered.is_empty(), self.state.is_sep_2322()) {
            (true, true) if self.state.payload_is_due => TaskPayload::NAME,
            (true, _) => GetTask::NAME,
            (false, true) => TaskInputResponse::NAME,
            (false, false) => UpdateTask::NAME,
        }
    }

    /// Returns whether an error of the server is that of the task's call.
    pub(super) fn is_error_of_task(&self) -> bool {
        self.method() == TaskPayload::NAME && self.state.seen.status == TaskStatus::Failed
    }

    /// Returns whether an error only says that the task is no longer as it was seen: it was answered, ended or cancelled by another
    /// client. Should the server have forgotten it, `tasks/get` says so.
    pub(super) fn has_moved_on(&self, error: &Error) -> bool {
        match (self.method(), error) {
            (TaskPayload::NAME | TaskInputResponse::NAME, Error::Task(TaskError::Unknown { .. })) => true,
            (TaskPayload::NAME, Error::Timeout { .. }) => true,
            (TaskPayload::NAME, Error::Rejected(refusal)) => refusal.error().code == BUSY,
            _ => false,
        }
    }

    /// Looks at the task again after a pause, within the bound of tasks that make no progress.
    pub(super) fn look_again<M: Method>(self, flow: &Flow) -> Result<Action<M>, Error> {
        let Self { mut state, server, answered, .. } = self;
        state.payload_is_due = false;
        // Should the same be asked again, it counts as another round.
        state.settle(answered.into_iter());
        // Counted as a look, so that there is a pause before the next.
        state.count_poll(Duration::ZERO, flow, M::NAME)?;
        state.count_stall(Duration::ZERO, flow, M::NAME)?;
        Ok(Action::Wait(Task::going_on(flow.clone(), server, state)))
    }

    pub(super) fn reply<M: Method>(
        self,
        flow: Flow,
        result: &RawValue,
        took: Duration,
    ) -> Result<Action<M>, Error> {
        let method = self.method();
        let Self { mut state, server, answered, .. } = self;
        match method {
            GetTask::NAME => return state.reply(flow, server, (result, took)),
            TaskPayload::NAME => return payload(state, flow, server, (result, took)),
            _ => {}
        }
        decode_complete::<UpdateTask>(result)
            .map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))?;
        state.settle(answered.into_iter());
        Ok(Action::Wait(Task::going_on(flow, server, state)))
    }
}

/// Takes the result of `tasks/result`: that of the call, or questions.
fn payload<M: Method>(
    mut state: Box<TaskState>,
    mut flow: Flow,
    server: Option<Arc<Implementation>>,
    (result, took): (&RawValue, Duration),
) -> Result<Action<M>, Error> {
    state.payload_is_due = false;
    let asks = match decode_complete::<M>(result) {
        Ok(result) => return Ok(Action::Done(result)),
        Err(error) => questions(result).ok_or_else(|| PeerMisbehaved::MalformedResult(error.to_string()))?,
    };
    let (questions, is_new) = state.open_questions(asks.input_requests);
    if questions.is_empty() {
        state.count_stall(took, &flow, M::NAME)?;
        state.count_poll(took, &flow, M::NAME)?;
        return Ok(Action::Wait(Task::going_on(flow, server, state)));
    }
    if is_new {
        flow.count_round(M::NAME, questions.len())?;
    }
    state.progressed();
    let server = asks.meta.server_info.or(server);
    Ok(Action::Ask(Pending::of_task(flow, server, questions, state, asks.request_state)))
}

/// Returns the questions of a `tasks/result`; `None` if it has none.
pub(super) fn questions(result: &RawValue) -> Option<InputRequiredResult> {
    match decode_round_result::<CallTool>(result) {
        Ok(RoundResult::InputRequired(asks)) => Some(asks),
        _ => None,
    }
}
