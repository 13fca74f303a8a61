//! Client errors sorted by who must act, and the one mapping from a JSON-RPC error to an HTTP status.

mod blame;
mod refusal;
mod request_name;
mod retry_after;
mod text;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use blame::{ApiMisuse, GaveUp, PeerIncompatible, PeerMisbehaved, TaskError, Unreachable};
pub use refusal::{HttpRefusal, ServerRejection};
pub use request_name::RequestName;
pub use text::debug_as_text;

use serde_json::{Value, json};

use crate::auth;
use crate::wire::{
    ErrorObject, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY, PARSE_ERROR, ToolFailure, UNSUPPORTED_PROTOCOL_VERSION,
};

/// JSON-RPC error code of our own for "too many at once, try again later". It lies outside the range JSON-RPC reserves.
pub const BUSY: i64 = 503;

/// JSON-RPC error code of our own for a caller past its rate limit. `data.retryAfterMs` has the time to wait.
pub const RATE_LIMITED: i64 = 429;

/// JSON-RPC error code of our own for a prompt or resource whose question the user refused. Tools tell the model
/// instead. A call that needs other scopes has this code too ([`insufficient_scope`]): `data.reason` tells them apart.
pub const DECLINED: i64 = 403;

/// JSON-RPC error code of our own for a request without a usable access token.
pub const UNAUTHORIZED: i64 = 401;

/// `data.reason` of a call whose caller lacks scopes.
const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

/// `data.reason` of a request that has waited for a task for as long as it may.
const TASK_RUNS: &str = "task_runs";

/// Builds the error of a request that has waited for a task for as long as it may. The task is fine, and so is the server: over HTTP
/// its status is 200, so that a load balancer does not take the instance for a sick one.
///
/// ```
/// use roundtrip_core::error::{BUSY, Stage, http_status, task_runs};
///
/// assert_eq!((task_runs().code, http_status(&task_runs(), Stage::Call)), (BUSY, 200));
/// ```
pub fn task_runs() -> ErrorObject {
    let error = ErrorObject::new(BUSY, "the task has not ended yet: ask again");
    error.with_data(json!({ "reason": TASK_RUNS }))
}

/// Returns whether the `data.reason` of an error is this one.
fn has_reason(error: &ErrorObject, reason: &str) -> bool {
    error.data.as_ref().and_then(|data| data.get("reason")).and_then(Value::as_str) == Some(reason)
}

/// Builds the error of a call whose caller's token lacks scopes. `scope` names all that the call needs, separated by
/// spaces.
///
/// ```
/// use roundtrip_core::error::{Stage, http_status, insufficient_scope, needed_scope};
///
/// let error = insufficient_scope("files:read files:write");
/// assert_eq!(needed_scope(&error), Some("files:read files:write"));
/// assert_eq!(http_status(&error, Stage::Call), 403);
/// ```
pub fn insufficient_scope(scope: &str) -> ErrorObject {
    let message = format!("this call needs a token with the scopes `{scope}`");
    let data = json!({ "reason": INSUFFICIENT_SCOPE, "scope": scope });
    ErrorObject::new(DECLINED, message).with_data(data)
}

/// Returns the scopes that a call needs, if its error is that the caller's token lacks some.
pub fn needed_scope(error: &ErrorObject) -> Option<&str> {
    let is_scope = error.code == DECLINED && has_reason(error, INSUFFICIENT_SCOPE);
    error.data.as_ref().filter(|_| is_scope)?.get("scope").and_then(Value::as_str)
}

/// Stage of a request at which an error arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading the request: it is not one the server can serve.
    Request,
    /// Running the call: the request was fine.
    Call,
}

/// Returns the HTTP status of an error answer.
///
/// A mistake in the *request* has the status the specification gives it. A call that ran and failed is still
/// a successful exchange of messages: clients that find a 4xx may take the server for one of another era.
pub fn http_status(error: &ErrorObject, stage: Stage) -> u16 {
    match error.code {
        METHOD_NOT_FOUND => 404,
        PARSE_ERROR
        | INVALID_REQUEST
        | HEADER_MISMATCH
        | MISSING_REQUIRED_CLIENT_CAPABILITY
        | UNSUPPORTED_PROTOCOL_VERSION => 400,
        INVALID_PARAMS if stage == Stage::Request => 400,
        BUSY if has_reason(error, TASK_RUNS) => 200,
        BUSY => 503,
        DECLINED if needed_scope(error).is_some() => 403,
        RATE_LIMITED => 429,
        _ => 200,
    }
}

/// Error of a client's call, sorted by who has to do something about it. An enum inside says what it is.
///
/// `Debug` prints the text, as `main` and `unwrap` show `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Your code asked for something that cannot be done.
    #[error("{0}")]
    ApiMisuse(ApiMisuse),

    /// The peer cannot do this: another version, a capability it lacks.
    #[error("the peer cannot do this: {0}")]
    PeerIncompatible(PeerIncompatible),

    /// The peer sent something that breaks the protocol.
    #[error("the peer broke the protocol: {0}")]
    PeerMisbehaved(PeerMisbehaved),

    /// The peer answered with a JSON-RPC error.
    #[error("the server answered: {0}")]
    Rejected(ServerRejection),

    /// The server refused the request by its HTTP status: for lack of credentials, for one.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),

    /// A person has to sign in, and the client has no way to send one to a browser: open the URL, and pass the callback URL to
    /// [`Pending::answered`](auth::Pending::answered). Any process can finish it.
    #[error("sign in at {}", .0.url().without_query())]
    SignIn(Box<auth::Pending>),

    /// No token could be got: the authorization server, or the person at it, refused, or did not answer in time.
    #[error("{0}")]
    NotAuthorized(Box<auth::AuthError>),

    /// The peer could not be reached, or the connection ended before the answer.
    #[error("{why}")]
    Unreachable {
        /// Kind of failure, with its text.
        why: Unreachable,
        /// Tells whether the request may have reached the server.
        sent: Sent,
        /// Error of the transport. It is not the `source()`: its text is in `why` already.
        cause: Option<Box<dyn StdError + Send + Sync>>,
    },

    /// The call could have gone on, but not within the bounds it was given.
    #[error("gave up: {0}")]
    GaveUp(GaveUp),

    /// The call became a task, which ended with neither a result nor an error, or is lost.
    #[error("{0}")]
    Task(TaskError),

    /// A handler of yours failed, or refused, with this error.
    #[error(transparent)]
    Handler(Box<dyn StdError + Send + Sync>),

    /// The tool ran and failed ([`CallToolResult::into_result`](crate::wire::CallToolResult::into_result)).
    #[error("{0}")]
    Tool(ToolFailure),

    /// The client was closed, or dropped: before the call, or while it was under way. In the latter case the request may
    /// have reached the server.
    #[error("the client has been closed")]
    Closed,

    /// No answer in time. The request under way has been cancelled; a task that the call became goes on at the server.
    #[error("no answer to {request} within {after:?}")]
    Timeout {
        /// Request that was not answered.
        request: RequestName,
        /// Time that it was given.
        after: Duration,
    },
}

/// Tells whether a request may have reached the server before the connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It cannot have: sending again is safe.
    No,
    /// It may have: sending again may run it twice.
    Maybe,
}

/// Errors of a transport of your own.
///
/// ```
/// use std::time::Duration;
///
/// use roundtrip_core::error::{Error, RequestName, Sent, Unreachable};
///
/// let request = RequestName::new("tools/call", Some("book".into()));
/// let refused = Error::unreachable(Unreachable::NoConnection("connection refused".into()), Sent::No);
/// assert_eq!(refused.about(&request).to_string(), "`tools/call` of `book` was not sent: connection refused");
/// let ended = Error::closed_by_server("the pipe was closed", Sent::Maybe);
/// assert_eq!(ended.about(&request).to_string(), "`tools/call` of `book` got no answer: the pipe was closed");
/// let late = Error::timeout(request, Duration::from_secs(60));
/// assert_eq!(late.to_string(), "no answer to `tools/call` of `book` within 60s");
/// assert!(matches!(Error::handler(late), Error::Timeout { .. }));     // stays what it is
/// ```
impl Error {
    /// Builds the error of a connection that failed without a cause to name.
    pub fn unreachable(why: Unreachable, sent: Sent) -> Self {
        Self::Unreachable { why, sent, cause: None }
    }

    /// Builds the error of a connection that the server closed, or that ended with it.
    pub fn closed_by_server(message: impl Into<String>, sent: Sent) -> Self {
        Self::unreachable(Unreachable::Closed(message.into()), sent)
    }

    /// Builds the error of a request that was not answered in time.
    pub fn timeout(request: impl Into<RequestName>, after: Duration) -> Self {
        Self::Timeout { request: request.into(), after }
    }

    /// Names the request in an error of its connection, which says nothing of requests by itself.
    pub fn about(self, request: &RequestName) -> Self {
        match self {
            Self::Unreachable { why, sent, cause } => {
                let fate = match sent {
                    Sent::No => "was not sent",
                    Sent::Maybe => "got no answer",
                };
                Self::Unreachable { why: why.after(&format!("{request} {fate}")), sent, cause }
            }
            other => other,
        }
    }

    /// Builds the error of a handler. One of our own errors stays as it is.
    pub fn handler(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        error.into().downcast::<Self>().map_or_else(Self::Handler, |own| *own)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
}

/// Implements `From` for the enums inside, so that call sites need not name the blame twice.
macro_rules! from_inside {
    ($($blame:ident),*) => {
        $(
            impl From<$blame> for Error {
                fn from(inside: $blame) -> Self {
                    Self::$blame(inside)
                }
            }
        )*
    };
}

from_inside!(ApiMisuse, PeerIncompatible, PeerMisbehaved, GaveUp);

impl From<TaskError> for Error {
    fn from(error: TaskError) -> Self {
        Self::Task(error)
    }
}

/// Sorts an error of a sign-in by who has to act.
impl From<auth::AuthError> for Error {
    fn from(error: auth::AuthError) -> Self {
        match error.blame() {
            auth::AuthBlame::Peer => PeerMisbehaved::Authorization(Box::new(error)).into(),
            auth::AuthBlame::Settings => ApiMisuse::Authorization(Box::new(error)).into(),
            auth::AuthBlame::Unreachable => {
                let why = Unreachable::NoConnection(error.to_string());
                Self::Unreachable { why, sent: Sent::No, cause: Some(Box::new(error)) }
            }
            auth::AuthBlame::SignIn | auth::AuthBlame::Refused => Self::NotAuthorized(Box::new(error)),
        }
    }
}

impl From<auth::CallbackError> for Error {
    fn from(error: auth::CallbackError) -> Self {
        auth::AuthError::from(error).into()
    }
}

/// Sorts a JSON-RPC error by its code and data.
impl From<ErrorObject> for Error {
    fn from(error: ErrorObject) -> Self {
        Self::Rejected(error.into())
    }
}

impl From<ToolFailure> for Error {
    fn from(failure: ToolFailure) -> Self {
        Self::Tool(failure)
    }
}

impl From<HttpRefusal> for Error {
    fn from(refusal: HttpRefusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests;
