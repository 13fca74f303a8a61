//! Handlers: async functions, their parameters and their replies.

mod ask;
mod asked;
mod asking;
mod by_hand;
pub(crate) mod call;
mod caller;
pub(crate) mod extract;
mod finite;
pub(crate) mod function;
pub(crate) mod needs;
mod once;
pub(crate) mod parts;
pub(crate) mod reply;
mod resolve;
pub(crate) mod resolving;
mod strings;
pub(crate) mod tool_error;

pub use ask::{Ask, May};
pub use asked::Asked;
pub use asking::Asking;
pub use by_hand::Round;
pub use call::{Call, Rejection};
pub use caller::Caller;
pub use extract::{Args, Extension, FromCall, Log, Progress, ProgressStep, State, Status, Uri};
pub use function::{Function, Parameter, Parameters, ResolveFrom};
pub use needs::Needs;
pub use once::Step;
pub use parts::Parts;
pub use reply::{HandlerResult, IntoReply, Json, JsonWithText, ReadAt, Reply};
pub use resolve::{Resolve, Resolved};
pub use tool_error::{IntoFailure, ToolError};
