//! Tasks of 2025-11-25, served in the words of the extension: `tasks/get` brings along what `tasks/result` gives, and
//! `tasks/update` answers the requests on its stream.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::wire::{
    BareTask, CallTool, CancelTask, CreateBareTaskResult, CreateTaskResult, ErrorObject, GetTask,
    GetTaskResult, INVALID_PARAMS, InputRequests, Method as _, Raw, Task, TaskAcknowledgedResult, TaskStatus,
    UpdateTask,
};
use serde_json::json;
use tokio::time::timeout;

use super::call::{Event, OpenCall};
use super::link::{SessionFailure, SessionLink};
use super::open_calls::OpenCalls;
use super::request::{Request, TASK_ID, encoded};
use super::session::Session;
use super::task_support::TASK;
use crate::client::{Error, PeerMisbehaved};

/// Longest wait for the questions of a task that is `input_required`: the server may ask them elsewhere.
const ASKING: Duration = Duration::from_secs(5);

/// Longest wait for the result of an ended task on the stream that was open before its end: some servers miss the end there, and
/// answer a new request at once.
const ENDED: Duration = Duration::from_secs(2);

/// Questions of a task, or its result or error.
enum Payload {
    Asks(InputRequests),
    Answer(Result<Raw, ErrorObject>),
}

/// Returns the request of a call that is made as a task: one of a tool that has to be, or that may be and is to be.
pub(super) async fn as_task<L: SessionLink>(
    session: &Arc<Session<L>>,
    request: &Request,
) -> Result<Option<Request>, SessionFailure> {
    let (offers, wish) = (request.hello.caller.offers_tasks, request.hello.caller.task);
    if !session.has_tasks || !offers || request.method != CallTool::NAME {
        return Ok(None);
    }
    let tool = request.params.get("name").and_then(|name| name.to::<String>().ok());
    let Some(tool) = tool else { return Ok(None) };
    let is_task = match session.task_support(&tool, &request.hello.caller.limits).await? {
        Some(is_required) => is_required || wish.is_wanted,
        None => false,
    };
    let ttl = wish.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let task = ttl.map_or_else(|| json!({}), |ttl| json!({ "ttl": ttl }));
    Ok(is_task.then(|| request.with(TASK, task.into())))
}

/// Returns the result of a call that asked for a task, as the extension has it. One that is no task is left as it came.
pub(super) fn created(result: &Raw) -> Result<Option<Raw>, Error> {
    let Ok(created) = result.to::<CreateBareTaskResult>() else { return Ok(None) };
    encoded(Raw::of(&CreateTaskResult::from(Task::from(created.task)))).map(Some)
}

/// Serves a request about a task; `None` if it is none, or the server has no tasks.
pub(super) async fn serve<L: SessionLink>(
    open_calls: &Arc<OpenCalls<L>>,
    session: &Arc<Session<L>>,
    request: &Request,
) -> Result<Option<Raw>, SessionFailure> {
    let id = request.params.get(TASK_ID).filter(|_| session.has_tasks);
    let Some(id) = id.and_then(|id| id.to::<String>().ok()) else { return Ok(None) };
    let tasks = Tasks { open_calls, session, request, id: &id };
    let acknowledged = || encoded(Raw::of(&TaskAcknowledgedResult::default()));
    Ok(match request.method {
        GetTask::NAME => Some(encoded(Raw::of(&GetTaskResult::from(tasks.get().await?)))?),
        UpdateTask::NAME => {
            tasks.update().await?;
            Some(acknowledged()?)
        }
        CancelTask::NAME => {
            open_calls.let_task_go(&id);
            session.aside(CancelTask::NAME, json!({ TASK_ID: id })).await?;
            Some(acknowledged()?)
        }
        _ => None,
    })
}

/// A request about one task.
struct Tasks<'a, L: SessionLink> {
    open_calls: &'a Arc<OpenCalls<L>>,
    session: &'a Arc<Session<L>>,
    request: &'a Request,
    id: &'a str,
}

impl<L: SessionLink> Tasks<'_, L> {
    /// Returns the task in full.
    async fn get(&self) -> Result<Task, SessionFailure> {
        let shown = self.session.aside(GetTask::NAME, json!({ TASK_ID: self.id })).await?;
        let misfit =
            |error: serde_json::Error| PeerMisbehaved::MalformedResult(format!("`tasks/get`: {error}"));
        let mut task = Task::from(shown.to::<BareTask>().map_err(|error| Error::from(misfit(error)))?);
        let asks = match task.status {
            // A task of another id is refused by the caller.
            _ if task.task_id != self.id => return Ok(task),
            TaskStatus::InputRequired => true,
            TaskStatus::Completed | TaskStatus::Failed => false,
            TaskStatus::Working => return self.with_questions(task).await,
            TaskStatus::Cancelled => return Ok(task),
        };
        match self.payload(asks).await? {
            Payload::Asks(questions) => task.input_requests = questions,
            // It has moved on: the next look tells.
            Payload::Answer(Err(error)) if asks && error.code == INVALID_PARAMS => {}
            // The extension tells a tool that failed from a call that did.
            Payload::Answer(Ok(result)) => (task.status, task.result) = (TaskStatus::Completed, Some(result)),
            Payload::Answer(Err(error)) => (task.status, task.error) = (TaskStatus::Failed, Some(error)),
        }
        Ok(task)
    }

    /// Returns a task that works, with the questions that have come on the stream of its result: some servers ask the next one there,
    /// and say that the task works because the one before it was answered.
    async fn with_questions(&self, mut task: Task) -> Result<Task, SessionFailure> {
        let Some(mut call) = self.open_calls.take_for_task(self.id).await else { return Ok(task) };
        match timeout(Duration::ZERO, next(&mut call)).await {
            Ok(Ok(Payload::Asks(questions))) => {
                (task.status, task.input_requests) = (TaskStatus::InputRequired, questions);
            }
            // It has ended meanwhile, or the stream has: the next look tells, and asks for the result again.
            Ok(Ok(Payload::Answer(_)) | Err(_)) => return Ok(task),
            Err(_) => {}
        }
        self.open_calls.keep_for_task(self.id, call)?;
        Ok(task)
    }

    /// Returns what the status of the task brings along.
    async fn payload(&self, asks: bool) -> Result<Payload, SessionFailure> {
        if asks && let Some(questions) = self.open_calls.questions_of_task(self.id) {
            return Ok(Payload::Asks(questions));
        }
        if let Some(call) = self.open_calls.take_for_task(self.id).await {
            let kept = self.read(call, asks);
            let kept = if asks { Ok(kept.await) } else { timeout(ENDED, kept).await };
            if let Ok(Ok(payload)) = kept {
                return Ok(payload);
            }
        }
        let request = self.request.for_result_of(self.id);
        let opening = self.session.call(&request);
        let opened = if asks { timeout(ASKING, opening).await.ok() } else { Some(opening.await) };
        // Some servers send nothing before there is something to say.
        let Some(call) = opened else { return Ok(Payload::Asks(InputRequests::new())) };
        Ok(self.read(call?, asks).await?)
    }

    /// Reads a `tasks/result` up to its answer or its next questions, with which it is kept: it goes on after them.
    async fn read(&self, mut call: OpenCall<L>, asks: bool) -> Result<Payload, Error> {
        let payload = match timeout(ASKING, next(&mut call)).await {
            Ok(payload) => payload?,
            Err(_) if asks => Payload::Asks(InputRequests::new()),
            // It has ended, and its result is on its way.
            Err(_) => next(&mut call).await?,
        };
        if matches!(payload, Payload::Asks(_)) {
            self.open_calls.keep_for_task(self.id, call)?;
        }
        Ok(payload)
    }

    /// Answers questions of the task. Those that another process was asked come again on a stream of this one's.
    async fn update(&self) -> Result<(), SessionFailure> {
        let mut call = match self.open_calls.take_for_task(self.id).await {
            Some(call) => call,
            None => {
                let mut call = self.session.call(&self.request.for_result_of(self.id)).await?;
                let asked = timeout(ASKING, next(&mut call)).await;
                match asked {
                    Ok(Ok(Payload::Answer(_))) => return Ok(()),
                    Ok(Err(error)) => return Err(error.into()),
                    Ok(Ok(Payload::Asks(_))) | Err(_) => call,
                }
            }
        };
        call.answer_some(&self.request.answers).await?;
        Ok(self.open_calls.keep_for_task(self.id, call)?)
    }
}

/// Returns the answer of a call, or its next questions.
async fn next<L: SessionLink>(call: &mut OpenCall<L>) -> Result<Payload, Error> {
    loop {
        match call.event().await? {
            Event::Notification(_) => {}
            Event::Answer(answer) => return Ok(Payload::Answer(answer)),
            Event::Asks(questions) => return Ok(Payload::Asks(questions)),
        }
    }
}
