//! [`Dialect`]: the extension, SEP-2322's own, and that of revision 2025-11-25, each a shape of the same tasks.

use std::time::Duration;

use roundtrip_core::wire::{
    BareTask, BareTaskResult, CallToolResult, CreateBareTaskResult, Era, ErrorObject, InputRequiredResult,
    ProtocolVersion, RequestMeta, ResultMeta, ServerResult, TASKS_EXTENSION, TASKS_SEP_2322, Task,
    TaskStatus, json, related_task,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::errors::{undeclared, unwritable};
use crate::server::outcome::Outcome;
use crate::server::when::When;
use crate::task::SHORTEST_POLL;

/// Shortest time that a task is kept, whatever its request says.
const SHORTEST: Duration = Duration::from_secs(1);

/// Dialect of a request about tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The extension `io.modelcontextprotocol/tasks` (SEP-2663).
    Extension,
    /// SEP-2322's own.
    Sep2322,
    /// The experimental tasks of revision 2025-11-25.
    Experimental,
}

/// Requests that may speak SEP-2322's dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sep2322 {
    /// None.
    #[default]
    Off,
    /// Those that declare it.
    Declared,
    /// Those that do not declare the extension.
    Undeclared,
}

impl Sep2322 {
    /// Returns the dialect that a request speaks. One that declares the extension speaks it alone.
    pub(crate) fn dialect(self, meta: &RequestMeta<'_>) -> Option<Dialect> {
        let declares = |name| meta.client_capabilities.extensions.contains_key(name);
        let version = meta.protocol_version.parse::<ProtocolVersion>().ok()?;
        match version.era() {
            Era::Modern if declares(TASKS_EXTENSION) => Some(Dialect::Extension),
            Era::Modern if self == Self::Undeclared => Some(Dialect::Sep2322),
            Era::Modern if self == Self::Declared && declares(TASKS_SEP_2322) => Some(Dialect::Sep2322),
            _ => version.has_experimental_tasks().then_some(Dialect::Experimental),
        }
    }

    /// Returns whether a request with such parameters, which need not fit otherwise, may use the methods of this dialect, or could
    /// by declaring it.
    pub(crate) fn is_open_to(self, params: Option<&RawValue>) -> bool {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: RequestMeta<'a>,
        }
        let params = params.and_then(|params| json::from_str::<Params<'_>>(params.get()).ok());
        self != Self::Off
            && params.is_none_or(|params| self.dialect(&params.meta) != Some(Dialect::Extension))
    }

    /// Returns the error of a call that cannot be a task, of a tool that has to be one.
    pub(crate) fn needs_task(self, meta: &RequestMeta<'_>) -> ErrorObject {
        let capabilities = &meta.client_capabilities;
        match self.dialect(meta) {
            Some(Dialect::Experimental) => not_so("this tool is called as a task: send `task`"),
            Some(Dialect::Sep2322) if capabilities.extensions.contains_key(TASKS_SEP_2322) => {
                ErrorObject::invalid_params("params.task: this tool is called as a task: send `task`")
            }
            _ => undeclared("this tool", capabilities),
        }
    }
}

/// Returns the error of 2025-11-25 for a call that is made as a task and may not be, or the reverse.
pub(crate) fn not_so(why: &'static str) -> ErrorObject {
    ErrorObject::new(roundtrip_core::wire::METHOD_NOT_FOUND, why)
}

/// Reads the time to live that a request asks for with `task`: at most `longest`, which is also that of one that names none.
/// A fraction of a millisecond is cut off.
fn ttl(task: &RawValue, longest: Duration) -> Result<Duration, ErrorObject> {
    #[derive(Deserialize)]
    struct Wish<'a> {
        #[serde(borrow, default)]
        ttl: Option<&'a RawValue>,
    }
    // serde would take an array for a struct.
    let wish = if task.get().starts_with('{') { json::from_str(task.get()).ok() } else { None };
    let Some(Wish { ttl }) = wish else {
        return Err(ErrorObject::invalid_params("params.task: an object such as {\"ttl\": 60000}"));
    };
    let Some(ttl) = ttl else { return Ok(longest) };
    // A number in JSON may be too large for a float, which then is infinite.
    match ttl.get().parse::<f64>() {
        Ok(millis) if millis >= 0.0 => {
            let wanted = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(longest);
            Ok(wanted.max(SHORTEST).min(longest))
        }
        _ => Err(ErrorObject::invalid_params("params.task.ttl: a number of milliseconds, not below zero")),
    }
}

impl Dialect {
    /// Returns the time to live of the task that a call asks for; `None` if it asks for none.
    pub(crate) fn ttl(
        self,
        task: Option<&RawValue>,
        longest: Duration,
    ) -> Result<Option<Duration>, ErrorObject> {
        match (self, task) {
            (Self::Extension, _) => Ok(Some(longest)),
            (_, None) => Ok(None),
            (_, Some(task)) => ttl(task, longest).map(Some),
        }
    }

    /// Returns when a call becomes a task. At 2025-11-25 one that asks for a task gets one.
    pub(crate) fn when(self, when: When) -> When {
        if self == Self::Experimental { When::Required } else { when }
    }

    /// Returns the result of a call that has become a task.
    pub(super) fn created(self, task: Task, tool: &str) -> ServerResult {
        if self == Self::Extension {
            return ServerResult::CreateTask(Box::new(task.into()));
        }
        let mut task = self.bare(task);
        let created = || format!("Task has been created for {tool} tool invocation.");
        task.status_message.get_or_insert_with(created);
        let (result_type, meta) = (Default::default(), ResultMeta::default());
        ServerResult::CreateBareTask(Box::new(CreateBareTaskResult { result_type, task, meta }))
    }

    /// Returns the result of `tasks/get` and `tasks/cancel`.
    pub(super) fn shown(self, task: Task) -> ServerResult {
        let (result_type, task, meta) = (Default::default(), self.bare(task), ResultMeta::default());
        ServerResult::BareTask(Box::new(BareTaskResult { result_type, task, meta }))
    }

    /// Returns a task without its questions, result and error. A state that its handler has not described is described as
    /// SEP-2322 does.
    pub(super) fn bare(self, task: Task) -> BareTask {
        let mut bare = match self {
            Self::Experimental => BareTask::of_2025_11_25(task),
            Self::Extension | Self::Sep2322 => task.into(),
        };
        let described = match bare.status {
            TaskStatus::InputRequired => Some("Input Required to Proceed call tasks/result"),
            TaskStatus::Completed => Some("Task has been completed successfully, call tasks/result"),
            TaskStatus::Cancelled => Some("Task has been cancelled by request."),
            TaskStatus::Working | TaskStatus::Failed => None,
        };
        bare.status_message = bare.status_message.or(described.map(str::to_owned));
        bare.poll_interval.get_or_insert(SHORTEST_POLL);
        bare
    }

    /// Returns the result of `tasks/result`: the questions, the result or the error of a task.
    pub(super) fn payload(task: Task, request_state: Option<String>) -> Outcome {
        let related = related_task(&task.task_id);
        match task.status {
            TaskStatus::Completed => {
                let result = task.result.ok_or_else(|| ErrorObject::internal("the result is gone"))?;
                let mut result: CallToolResult = result.to().map_err(|error| unwritable(&error))?;
                result.is_error.get_or_insert(false);
                result.meta.extra.extend(related);
                Ok(ServerResult::CallTool(result))
            }
            TaskStatus::Failed => {
                Err(task.error.unwrap_or_else(|| ErrorObject::internal("the task has failed")))
            }
            TaskStatus::Cancelled => {
                Err(ErrorObject::invalid_params("params.taskId: the task was cancelled"))
            }
            TaskStatus::Working | TaskStatus::InputRequired => {
                Ok(ServerResult::InputRequired(Box::new(InputRequiredResult {
                    input_requests: task.input_requests,
                    request_state,
                    meta: related.into(),
                    ..InputRequiredResult::default()
                })))
            }
        }
    }
}
