//! Errors of requests about tasks, and the reading of a task's view.

use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{
    ClientCapabilities, ErrorObject, JsonObject, TASKS_EXTENSION, Task, TaskStatus, clip,
};

use crate::server::outcome::sendable;
use crate::task::{Millis, Record, StoredView, TaskStoreError};

/// Returns whether a request declares the tasks extension.
pub(crate) fn declared(capabilities: &ClientCapabilities) -> bool {
    capabilities.extensions.contains_key(TASKS_EXTENSION)
}

/// Returns the error of a request that needs the tasks extension and does not declare it (-32021).
pub(crate) fn undeclared(subject: &str, capabilities: &ClientCapabilities) -> ErrorObject {
    let extensions = [(TASKS_EXTENSION.to_owned(), JsonObject::new())].into();
    let required = ClientCapabilities { extensions, ..ClientCapabilities::default() };
    ErrorObject::missing_capability(subject, capabilities, &required)
}

/// Returns the error of a task that has outlived its time to live.
pub(super) fn over() -> ErrorObject {
    ErrorObject::internal("the task's time to live is over")
}

/// Returns the error of a caller that has as many tasks as it may.
pub(super) fn too_many(most: usize) -> ErrorObject {
    ErrorObject::new(BUSY, format!("too many tasks at once: a caller may have {most}; wait for some to end"))
}

/// Returns the error of a store that failed. The reason is for the log.
pub(super) fn busy(error: &TaskStoreError) -> ErrorObject {
    match error {
        // A caller past its share is refused like any other past a limit: it must not fill the log.
        TaskStoreError::Full => tracing::debug!("the task store has no room for a caller"),
        _ => tracing::error!(error = error as &dyn std::error::Error, "the task store failed"),
    }
    ErrorObject::new(BUSY, "the server is busy: try again later")
}

/// Returns the error of a task that cannot be written or read. The reason is for the log.
pub(super) fn unwritable(error: &serde_json::Error) -> ErrorObject {
    tracing::error!(%error, "a task cannot be written");
    ErrorObject::internal("internal error")
}

/// Returns the error of a task that is not there, or is another's: both look the same (T5).
pub(super) fn unknown(id: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("params.taskId: no such task: {}", clip(id)))
}

/// Reads the view of a task as the extension has it, and adds the time after which it is worth another poll.
pub(super) fn read_view(stored: &StoredView) -> Result<Task, ErrorObject> {
    let mut task = bare_view(stored)?;
    // An answer that does not fit waits for the handler to ask again: until then there is nothing to show.
    if task.status == TaskStatus::InputRequired && task.input_requests.is_empty() {
        task.status = TaskStatus::Working;
    }
    task.error = task.error.map(sendable);
    Ok(task)
}

/// Reads a task as it is stored, and adds the time after which it is worth another poll.
pub(super) fn bare_view(stored: &StoredView) -> Result<Task, ErrorObject> {
    let task = Record::read_view(&stored.view, stored.result.as_deref(), Millis::now());
    task.map_err(|error| unwritable(&error))
}
