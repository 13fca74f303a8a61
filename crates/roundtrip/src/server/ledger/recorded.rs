//! Encoding of recorded replies.

use bytes::Bytes;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{
    CallToolResult, CreateBareTaskResult, CreateTaskResult, ErrorObject, GetPromptResult, INTERNAL_ERROR,
    InputRequiredResult, MISSING_REQUIRED_CLIENT_CAPABILITY, ReadResourceResult, ServerResult, json,
};
use serde::{Deserialize, Serialize};

use crate::server::outcome::Outcome;

/// A reply to record. It is read back as it was, so that hooks see no difference; the request's id is not part of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Recorded {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
    Asks(Box<InputRequiredResult>),
    Task(Box<CreateTaskResult>),
    /// A task of SEP-2322 or of revision 2025-11-25.
    BareTask(Box<CreateBareTaskResult>),
    Error(ErrorObject),
}

impl Recorded {
    /// Converts the outcome of a round into a record, or returns it unchanged if the client may try again.
    #[expect(clippy::result_large_err, reason = "it is no error, and goes on to be sent")]
    pub(super) fn of(outcome: Outcome) -> Result<Self, Outcome> {
        Ok(match outcome {
            Ok(ServerResult::CallTool(result)) => Self::Tool(result),
            Ok(ServerResult::GetPrompt(result)) => Self::Prompt(result),
            Ok(ServerResult::ReadResource(result)) => Self::Resource(result),
            Ok(ServerResult::InputRequired(result)) => Self::Asks(result),
            Ok(ServerResult::CreateTask(result)) => Self::Task(result),
            Ok(ServerResult::CreateBareTask(result)) => Self::BareTask(result),
            Err(error) if !can_be_tried_again(&error) => Self::Error(error),
            other => return Err(other),
        })
    }

    pub(super) fn write(&self) -> Result<Bytes, serde_json::Error> {
        // A slice of the right size: it may be kept for long.
        serde_json::to_vec(self).map(|reply| reply.into_boxed_slice().into())
    }

    pub(super) fn read(reply: &[u8]) -> Outcome {
        json::from_slice::<Self>(reply).map_or_else(
            |error| {
                tracing::error!(%error, "a recorded reply cannot be read");
                Err(ErrorObject::internal("internal error"))
            },
            Self::into_outcome,
        )
    }

    pub(super) fn into_outcome(self) -> Outcome {
        match self {
            Self::Tool(result) => Ok(ServerResult::CallTool(result)),
            Self::Prompt(result) => Ok(ServerResult::GetPrompt(result)),
            Self::Resource(result) => Ok(ServerResult::ReadResource(result)),
            Self::Asks(result) => Ok(ServerResult::InputRequired(result)),
            Self::Task(result) => Ok(ServerResult::CreateTask(result)),
            Self::BareTask(result) => Ok(ServerResult::CreateBareTask(result)),
            Self::Error(error) => Err(error),
        }
    }
}

/// Returns whether the same request may succeed later.
fn can_be_tried_again(error: &ErrorObject) -> bool {
    matches!(error.code, INTERNAL_ERROR | MISSING_REQUIRED_CLIENT_CAPABILITY | BUSY)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::listed::assert_read_by_name;

    /// Returns whether a stored reply is read.
    fn is_read(reply: &Value) -> bool {
        match Recorded::read(reply.to_string().as_bytes()) {
            Ok(_) => true,
            Err(error) => error.code != INTERNAL_ERROR,
        }
    }

    #[test]
    fn a_list_is_not_taken_for_a_recorded_reply() {
        let text = || json!({ "type": "text", "text": "a", "annotations": { "priority": 1 } });
        let task = || json!({ "taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "" });
        let page = json!({ "mode": "url", "message": "m", "url": "https://a" });
        let mut whole_task = task();
        whole_task["resultType"] = json!("task");
        for reply in [
            json!({ "tool": { "content": [text()], "resultType": "complete" } }),
            json!({ "prompt": { "messages": [{ "role": "user", "content": text() }] } }),
            json!({ "resource": { "contents": [{ "uri": "a:b", "text": "t" }] } }),
            json!({ "asks": { "resultType": "input_required", "requestState": "s",
                "inputRequests": { "k": { "method": "elicitation/create", "params": page } } } }),
            json!({ "task": whole_task }),
            json!({ "bareTask": { "resultType": "complete", "task": task() } }),
            json!({ "error": { "code": -32602, "message": "m" } }),
        ] {
            assert_read_by_name(&reply, is_read);
        }
    }
}
