//! Errors of handlers.

#[cfg(feature = "anyhow")]
use std::any::Any;
use std::error::Error;

use roundtrip_core::wire::{CallToolResult, ContentBlock, ErrorObject, json};

use crate::server::round::AskError;

/// An error for the model: the tool ran and failed, or refused its arguments.
///
/// Everything people return as an error becomes one with `?`: any [`std::error::Error`], a boxed one, a text, and with
/// the feature `anyhow` an `anyhow::Error` (without the feature too, but see below). **The model reads its display text**, not
/// its sources. An [`ErrorObject`] stays the JSON-RPC error it is, also as the source of another error.
///
/// Prompts and resources have no failed results: there it becomes an internal error with the same text, and a declined
/// question the error for that.
///
/// Without the feature `anyhow`, an [`ErrorObject`] or an [`AskError`] that went through an `anyhow::Error` without a context
/// is a text for the model like any other.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    failure: Failure,
    remembered: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Failure {
    Tool(Vec<ContentBlock>),
    /// A question without an answer, and the text that says so.
    Asked(AskError, String),
    Protocol(ErrorObject),
}

impl ToolError {
    /// Creates an error that says what went wrong and what to do about it.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_content(vec![ContentBlock::text(message)])
    }

    /// Creates an error with content of any kind.
    pub fn with_content(content: Vec<ContentBlock>) -> Self {
        Failure::Tool(content).into()
    }

    /// Makes this failure of a step of [`Ask::once`](crate::Ask::once) final: later rounds fail the same way without
    /// running the step again. A JSON-RPC error is not kept: it ends the call.
    #[must_use]
    pub fn remembered(mut self) -> Self {
        self.remembered = true;
        self
    }

    /// Returns the failure as the journal keeps it, if it is to be remembered.
    pub(crate) fn to_remember(&self) -> Option<String> {
        match &self.failure {
            _ if !self.remembered => None,
            Failure::Tool(content) => serde_json::to_string(content).ok(),
            Failure::Asked(_, text) => serde_json::to_string(&[ContentBlock::text(text)]).ok(),
            Failure::Protocol(_) => None,
        }
    }

    pub(crate) fn recall(json: &str) -> Self {
        Self::with_content(json::from_str(json).unwrap_or_default()).remembered()
    }

    /// Returns the failed result that the model reads, or the JSON-RPC error.
    pub(crate) fn into_result(self) -> Result<CallToolResult, ErrorObject> {
        let content = match self.failure {
            Failure::Tool(content) => content,
            Failure::Asked(_, text) => vec![ContentBlock::text(text)],
            Failure::Protocol(error) => return Err(error),
        };
        Ok(CallToolResult { content, is_error: Some(true), ..Default::default() })
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        Self { failure, remembered: false }
    }
}

/// Prompts and resources have no tool errors: there, a failure is an internal error.
impl From<ToolError> for ErrorObject {
    fn from(error: ToolError) -> Self {
        match error.failure {
            Failure::Protocol(error) => error,
            Failure::Asked(error, _) => error.into(),
            Failure::Tool(content) => {
                let text: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
                Self::internal(text.join("; "))
            }
        }
    }
}

/// Whatever can be boxed as an error: the types that `?` is used with.
impl<E: Into<Box<dyn Error + Send + Sync>> + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        #[cfg(feature = "anyhow")]
        if let Some(error) = (&error as &dyn Any).downcast_ref::<anyhow::Error>() {
            return of_chain(error.as_ref());
        }
        of_chain(&*error.into())
    }
}

/// Creates the error of an error and its sources. Handlers use one `?` for everything: an error of the protocol among them must
/// not turn into text for the model.
fn of_chain(error: &(dyn Error + 'static)) -> ToolError {
    let mut next = Some(error);
    while let Some(inner) = next {
        if let Some(protocol) = inner.downcast_ref::<ErrorObject>() {
            return Failure::Protocol(protocol.clone()).into();
        }
        if let Some(asked) = inner.downcast_ref::<AskError>() {
            let protocol = asked.protocol().map(Failure::Protocol);
            return protocol.unwrap_or_else(|| Failure::Asked(asked.clone(), error.to_string())).into();
        }
        next = inner.source();
    }
    ToolError::new(error.to_string())
}

/// An error a handler can return: [`ToolError`], and whatever becomes one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler's error",
    note = "handlers fail with any `std::error::Error`, `anyhow::Error`, `Box<dyn Error + Send + Sync>`, `String`, \
            `ToolError` or `ErrorObject`"
)]
pub trait IntoFailure {
    /// Converts the error.
    fn into_failure(self) -> ToolError;
}

impl<E: Into<ToolError>> IntoFailure for E {
    fn into_failure(self) -> ToolError {
        self.into()
    }
}
