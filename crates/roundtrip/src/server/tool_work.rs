//! Work of a tool: its handler, and the check of its structured content.

use std::sync::Arc;

use roundtrip_core::wire::{CallToolResult, ErrorObject};

use super::handler::function::HandlerFuture;
use super::handler::reply::{HandlerOutcome, Reply};
use super::offer::entry::ToolEntry;
use super::run::runner::Work;
use crate::schema::Check;

/// Returns the work of a tool's handler, whose result is checked where its schema asks for it.
pub(super) fn tool_work(tool: &Arc<ToolEntry>, running: HandlerFuture<CallToolResult>) -> Work {
    match &tool.own.output {
        Some(Check::Compiled(_)) => Work::Tool(check_output(Arc::clone(tool), running)),
        _ => Work::Tool(running),
    }
}

/// A result that breaks the tool's own output schema is the server's failure, and must not reach the client.
fn check_output(
    tool: Arc<ToolEntry>,
    running: HandlerFuture<CallToolResult>,
) -> HandlerFuture<CallToolResult> {
    Box::pin(async move {
        let result = match running.await?.0 {
            HandlerOutcome::Complete(result) => result,
            other => return Ok(Reply(other)),
        };
        if result.is_error == Some(true) {
            return Ok(Reply::complete(result));
        }
        let problem = match (&result.structured_content, &tool.own.output) {
            (None, _) => Some("there is none".to_owned()),
            (Some(structured), Some(check)) => check.problems(&structured.to_value()),
            (Some(_), None) => None,
        };
        match problem {
            None => Ok(Reply::complete(result)),
            Some(problem) => {
                let tool = &tool.definition.name;
                tracing::error!(tool, problem, "structured content breaks the tool's output schema");
                Err(ErrorObject::internal(format!(
                    "the structured content of `{tool}` does not fit its output schema: {problem}"
                )))
            }
        }
    })
}
