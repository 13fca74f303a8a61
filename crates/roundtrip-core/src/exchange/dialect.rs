//! Dialects of tasks that a client speaks with modern servers.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, PeerMisbehaved};
use crate::wire::{
    BareTaskResult, CreateBareTaskResult, Raw, ResultMeta, TASKS_EXTENSION, TASKS_SEP_2322, Task, json,
};

/// Parameter by which a call asks for a task in SEP-2322's dialect.
pub(super) const TASK: &str = "task";

/// Dialect of the requests that start tasks and are about them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TaskDialect {
    /// The extension `io.modelcontextprotocol/tasks` (SEP-2663): `tasks/get` and `tasks/update`. The server decides which calls
    /// become tasks.
    #[default]
    Extension,
    /// SEP-2322's own: `task` in `tools/call`, `tasks/get`, `tasks/result` and `tasks/input_response`.
    #[serde(rename = "sep-2322")]
    Sep2322,
}

impl TaskDialect {
    /// Returns the name of the dialect among the extensions of client and server.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Extension => TASKS_EXTENSION,
            Self::Sep2322 => TASKS_SEP_2322,
        }
    }
}

/// Reads the task of a call that asked for one; `None` if the result is another.
pub(super) fn created(result: &RawValue) -> Result<Option<(Task, ResultMeta)>, Error> {
    #[derive(Deserialize)]
    struct Peek {
        #[serde(default)]
        task: Option<Raw>,
    }
    if json::from_str::<Peek>(result.get()).is_ok_and(|peek| peek.task.is_none()) {
        return Ok(None);
    }
    let created: CreateBareTaskResult = read(result)?;
    Ok(Some((created.task.into(), created.meta)))
}

/// Reads the result of `tasks/get` in SEP-2322's dialect.
pub(super) fn shown(result: &RawValue) -> Result<(Task, ResultMeta), Error> {
    read::<BareTaskResult>(result).map(|shown| (shown.task.into(), shown.meta))
}

fn read<T: for<'de> Deserialize<'de>>(result: &RawValue) -> Result<T, Error> {
    json::from_str(result.get())
        .map_err(|error| PeerMisbehaved::MalformedResult(format!("a task: {error}")).into())
}
