//! Tasks: the extension `io.modelcontextprotocol/tasks` (SEP-2663).

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::serde::null;
use super::{
    ErrorObject, InputRequests, NotificationMeta, Raw, RequestMeta, ResultComplete, ResultMeta, ResultTask,
    json,
};

/// Name of the tasks extension in the capabilities of client and server.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The call is being processed.
    Working,
    /// The task asks, and waits for answers.
    InputRequired,
    /// The call has a result; also one of a tool that failed (`isError`).
    Completed,
    /// The call ended with a JSON-RPC error.
    Failed,
    /// The task was cancelled before it ended.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the task has ended: its status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns the status as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task, with the questions, the result or the error that its status brings along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Identifier of the task.
    pub task_id: String,
    /// Its status.
    pub status: TaskStatus,
    /// Description of its state, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Time of its creation, in ISO 8601.
    pub created_at: String,
    /// Time of its last change, in ISO 8601.
    pub last_updated_at: String,
    /// Time that it is kept from its creation on, in milliseconds; without end where `null`.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// Time to wait between two `tasks/get`, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// Open questions of a task that is `input_required`.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "InputRequests::is_empty")]
    pub input_requests: InputRequests,
    /// Result of a task that is `completed`: that of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Raw>,
    /// Error of a task that has `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

/// Result that carries a task. `T` is its `resultType`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult<T> {
    /// The `resultType`.
    pub result_type: T,
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", skip_serializing_if = "ResultMeta::is_empty")]
    pub meta: ResultMeta,
}

impl<T: Default> From<Task> for TaskResult<T> {
    fn from(task: Task) -> Self {
        Self { result_type: T::default(), task, meta: ResultMeta::default() }
    }
}

/// Result of a call that goes on as a task.
pub type CreateTaskResult = TaskResult<ResultTask>;

/// Result of `tasks/get`.
pub type GetTaskResult = TaskResult<ResultComplete>;

// A flattened struct is buffered where it is read, and text that is kept as it came cannot be: the result is read in two
// passes.
impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for TaskResult<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Beside<T: Default> {
            // Some servers leave it out (W8).
            #[serde(default)]
            result_type: T,
            #[serde(rename = "_meta", default, deserialize_with = "null::or_default")]
            meta: ResultMeta,
        }
        let (Beside { result_type, meta }, task) = beside(deserializer)?;
        Ok(Self { result_type, task, meta })
    }
}

/// Parameters of `tasks/get` and `tasks/cancel`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Identifier of the task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// The wish for parts of the result, undecoded: `dev.roundtrip/stream`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<&'a RawValue>,
}

/// Parameters of `tasks/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTaskRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Identifier of the task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// Answers to open questions, by their keys.
    #[serde(borrow)]
    pub input_responses: &'a RawValue,
}

/// Result of `tasks/update` and of `tasks/cancel`: an acknowledgement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAcknowledgedResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Parameters of `notifications/tasks`: the task as `tasks/get` would return it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskNotificationParams {
    /// The `_meta` object.
    #[serde(rename = "_meta", skip_serializing_if = "NotificationMeta::is_empty")]
    pub meta: NotificationMeta,
    /// The task.
    #[serde(flatten)]
    pub task: Task,
}

impl<'de> Deserialize<'de> for TaskNotificationParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Beside {
            #[serde(rename = "_meta", default, deserialize_with = "null::or_default")]
            meta: NotificationMeta,
        }
        let (Beside { meta }, task) = beside(deserializer)?;
        Ok(Self { meta, task })
    }
}

/// Reads an object as a task, and as what stands beside the task's members.
fn beside<'de, D: Deserializer<'de>, B: DeserializeOwned>(deserializer: D) -> Result<(B, Task), D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let beside = json::from_str(raw.get()).map_err(D::Error::custom)?;
    let task = json::from_str(raw.get()).map_err(D::Error::custom)?;
    Ok((beside, task))
}
