//! The outcome of a call: a result, or the JSON-RPC error to answer with.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use roundtrip_core::wire::{
    CallTool, CallToolResult, ContentBlock, ErrorObject, INTERNAL_ERROR, Method as _, ServerResult,
};

/// Outcome of a call: its result, or the JSON-RPC error to answer with.
pub type Outcome = Result<ServerResult, ErrorObject>;

pub(crate) type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// End of a round: its outcome, or the future of it where the codec of `requestState` has to be waited for.
pub(crate) enum Conclusion {
    Now(Outcome),
    Later(OutcomeFuture),
}

/// Ends a call that does not converge (M21). A tool answers with a tool error, because a model can do something else instead.
pub(crate) fn given_up(method: &str, why: String) -> Outcome {
    tracing::warn!(method, why, "a call does not come to an end");
    if method == CallTool::NAME {
        return tool_error(why);
    }
    Err(ErrorObject::internal(why))
}

/// Returns an error of a handler as revision 2026-07-28 allows to send it: a code that it forbids becomes -32603, and the message
/// and the data stay (W10).
pub(crate) fn sendable(error: ErrorObject) -> ErrorObject {
    if !error.is_forbidden() {
        return error;
    }
    tracing::warn!(
        code = error.code,
        "the code of a handler's error is reserved by the specification, and -32603 is sent instead: use a positive code"
    );
    ErrorObject { code: INTERNAL_ERROR, ..error }
}

/// Returns the failed result of a tool, for the model to read.
pub(crate) fn tool_error(text: String) -> Outcome {
    let content = vec![ContentBlock::text(text)];
    Ok(ServerResult::CallTool(CallToolResult { content, is_error: Some(true), ..CallToolResult::default() }))
}

/// Returns the error that a peer gets when user code panicked. The details are for the log.
pub(crate) fn panicked() -> ErrorObject {
    tracing::error!("a handler panicked");
    ErrorObject::internal("internal error")
}

/// Runs user code. Returns `None` if it panics.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}
