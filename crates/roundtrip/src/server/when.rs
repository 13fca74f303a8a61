//! [`When`]: the moment at which a call becomes a task.

use std::time::Duration;

/// Moment at which a call of a tool becomes a task, for clients that declare the tasks extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// At once. For other clients it runs inside the call.
    Offered,
    /// At once. Other clients are refused (-32021).
    Required,
    /// Once it has taken this long, or where its handler says so ([`Ask::detach`](crate::Ask::detach)). For other clients it
    /// stays inside the call.
    After(Duration),
}
