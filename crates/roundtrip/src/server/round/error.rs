//! [`AskError`]: reasons why a question has no usable answer.

use roundtrip_core::error::DECLINED;
use roundtrip_core::wire::ErrorObject;
use serde_json::json;

/// Reason why a question has no answer. Through `?`, a refusal becomes a tool error that the model can read (A4), and
/// everything else the JSON-RPC error it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The user declined.
    #[error("the user declined to answer `{key}`")]
    Declined {
        /// The question's key.
        key: String,
    },
    /// The user dismissed the question.
    #[error("the user dismissed `{key}` without an answer")]
    Cancelled {
        /// The question's key.
        key: String,
    },
    /// The peer was asked, and there is no answer: it failed, or did not answer in time.
    #[error("there is no answer to `{key}`: {reason}")]
    Unanswered {
        /// The question's key.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The client did not declare that it can be asked this (M7), or cannot be asked at all. See [`Ask::may`](crate::Ask::may).
    #[error("{}", .error.message)]
    CannotAsk {
        /// The question's key.
        key: String,
        /// The error for the client, such as -32021 with the missing capability.
        error: ErrorObject,
    },
    /// The handler asked in a way that cannot work, such as twice under one key. This is a bug in the handler.
    #[error("{0}")]
    Misuse(String),
    /// The round is over: this `Ask` outlived its handler.
    #[error(
        "the round is over: an `Ask` must not outlive its handler, so await it there instead of in a spawned task"
    )]
    Closed,
}

impl AskError {
    /// Returns the JSON-RPC error, if it is not for the model to read.
    pub(crate) fn protocol(&self) -> Option<ErrorObject> {
        match self {
            Self::Declined { .. } | Self::Cancelled { .. } | Self::Unanswered { .. } => None,
            Self::CannotAsk { error, .. } => Some(error.clone()),
            Self::Misuse(_) | Self::Closed => {
                tracing::error!(error = %self, "a handler asks in a way that cannot work");
                Some(ErrorObject::internal(self.to_string()))
            }
        }
    }
}

/// Prompts and resources have no tool errors: there, a refusal is an error of our own code.
impl From<AskError> for ErrorObject {
    fn from(error: AskError) -> Self {
        if let Some(error) = error.protocol() {
            return error;
        }
        let declined = Self::new(DECLINED, error.to_string());
        // The code alone may be anything's "forbidden": clients tell a declined question by the reason.
        match error {
            AskError::Declined { .. } => declined.with_data(json!({ "reason": "declined" })),
            AskError::Cancelled { .. } => declined.with_data(json!({ "reason": "cancelled" })),
            _ => declined,
        }
    }
}
