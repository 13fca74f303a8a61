//! Handlers: async functions, their parameters and their replies.

pub(crate) mod call;
pub(crate) mod extract;
pub(crate) mod function;
pub(crate) mod reply;
mod strings;

pub use call::{Call, Rejection};
pub use extract::{Args, Caller, Extension, FromCall, Log, Progress, ProgressStep, State, Uri};
pub use function::{Function, Parameter, Parameters};
pub use reply::{HandlerResult, IntoFailure, IntoReply, Json, ReadAt, Reply, ToolError};
