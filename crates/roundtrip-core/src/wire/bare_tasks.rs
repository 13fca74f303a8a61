//! Tasks as SEP-2322 and revision 2025-11-25 have them: without their questions, result and error, which `tasks/result` gives.

use std::borrow::Cow;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::meta::key::RELATED_TASK;
use super::serde::{cow, null};
use super::{
    CallToolResult, InputRequests, MetaObject, Raw, RequestMeta, ResultComplete, ResultMeta, Task,
    TaskStatus, clip, json,
};

/// Name of SEP-2322's own tasks in the capabilities of client and server. It is Roundtrip's own, under Roundtrip's own prefix.
pub const TASKS_SEP_2322: &str = "dev.roundtrip/tasks-sep-2322";

/// A task without its questions, result and error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BareTask {
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
    pub ttl: Option<u64>,
    /// Time to wait between two `tasks/get`, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
}

impl From<Task> for BareTask {
    fn from(task: Task) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
        }
    }
}

impl From<BareTask> for Task {
    fn from(task: BareTask) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl,
            poll_interval_ms: task.poll_interval,
            input_requests: InputRequests::new(),
            result: None,
            error: None,
        }
    }
}

impl BareTask {
    /// Returns a task as 2025-11-25 has it: one whose tool has failed (`isError`) has failed.
    pub fn of_2025_11_25(task: Task) -> Self {
        let failure = task.result.as_ref().and_then(tool_failure);
        let mut bare = Self::from(task);
        if let Some(text) = failure {
            (bare.status, bare.status_message) = (TaskStatus::Failed, Some(text));
        }
        bare
    }
}

/// Returns the text of a tool's result that is a failure (`isError`).
pub fn tool_failure(result: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek {
        #[serde(default)]
        is_error: Option<bool>,
    }
    result.to::<Peek>().ok()?.is_error.filter(|is_error| *is_error)?;
    result.to::<CallToolResult>().ok().map(|result| clip(&result.text()).into_owned())
}

/// Result of a call that goes on as a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateBareTaskResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The task.
    pub task: BareTask,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Result of `tasks/get` and of `tasks/cancel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BareTaskResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The task.
    #[serde(flatten)]
    pub task: BareTask,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Result of `tasks/list`: one page of the caller's tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResult {
    /// The `resultType`: `complete`.
    #[serde(default)]
    pub result_type: ResultComplete,
    /// The tasks.
    pub tasks: Vec<BareTask>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Parameters of `tasks/result`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPayloadRequestParams<'a> {
    /// The `_meta` object.
    #[serde(borrow, rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Identifier of the task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// Answers to the questions that the same request has brought before. Only a server's own door to 2025-11-25 sets them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<&'a RawValue>,
    /// The wish for parts of the result, undecoded: `dev.roundtrip/stream`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<&'a RawValue>,
}

/// Parameters of `tasks/input_response`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskInputResponseRequestParams<'a> {
    /// The `_meta` object, which names the task.
    #[serde(rename = "_meta")]
    pub meta: RequestMeta<'a>,
    /// Identifier of the task, read from `_meta`.
    #[serde(skip)]
    pub task_id: Cow<'a, str>,
    /// Answers to open questions, by their keys.
    pub input_responses: &'a RawValue,
    /// The state of `tasks/result`, returned unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for TaskInputResponseRequestParams<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: RequestMeta<'a>,
            #[serde(borrow)]
            input_responses: &'a RawValue,
            #[serde(borrow, default, deserialize_with = "cow::option")]
            request_state: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Related<'a> {
            #[serde(borrow)]
            task_id: Cow<'a, str>,
        }
        let Params { meta, input_responses, request_state } = Params::deserialize(deserializer)?;
        let related = meta.get(RELATED_TASK).ok_or_else(|| {
            D::Error::custom(format!("`_meta` has to name the task under `{RELATED_TASK}`"))
        })?;
        let Related { task_id } = json::from_str(related.get())
            .map_err(|error| D::Error::custom(format!("`_meta`: `{RELATED_TASK}`: {error}")))?;
        Ok(Self { meta, task_id, input_responses, request_state })
    }
}

/// Returns the `_meta` that relates a message to a task.
pub fn related_task(id: &str) -> MetaObject {
    MetaObject::from_iter([(RELATED_TASK.to_owned(), json!({ "taskId": id }))])
}
