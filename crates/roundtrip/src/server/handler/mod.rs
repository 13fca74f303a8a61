//! Handlers: async functions, their parameters and their replies.

pub(crate) mod call;
pub(crate) mod extract;
pub(crate) mod function;
pub(crate) mod reply;
mod strings;
pub(crate) mod tool_error;

pub use call::{Call, Rejection};
pub use extract::{Args, Caller, Extension, FromCall, Log, Progress, ProgressStep, State, Uri};
pub use function::{Function, Parameter, Parameters};
pub use reply::{Answer, IntoReply, Json, ReadAt, Reply};
pub use tool_error::{IntoFailure, ToolError};
