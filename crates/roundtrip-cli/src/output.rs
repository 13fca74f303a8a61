//! Results, printed for people or as JSON.

use std::fmt::Arguments;
use std::io::Write as _;

use anstyle::Style;
use roundtrip::client::Kind;
use roundtrip::wire::{
    CallToolResult, ContentBlock, GetPromptResult, InputRequest, ReadResourceResult, ResourceContents, Task,
};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::printable::{printable, printable_json, printable_lines};

/// Writes to standard output at once. A reader that has gone wants no more, and that is no error.
pub(crate) fn write(text: Arguments<'_>) {
    let mut out = anstream::stdout().lock();
    if out.write_fmt(text).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Writes a line to standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use out;

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) {
    out!("{}", printable_json(value, true));
}

/// Prints the result of a tool, except what has been printed of it in parts.
///
/// # Errors
/// If the tool failed.
pub(crate) fn tool(result: &CallToolResult, in_parts: &str) -> Result<(), Failure> {
    let whole = result.text();
    match whole.strip_prefix(in_parts).filter(|_| !in_parts.is_empty()) {
        Some(rest) => out!("{}", printable_lines(rest)),
        None => content(result),
    }
    failed(result)
}

/// Returns the error of a tool that failed; its text is the result's.
pub(crate) fn failed(result: &CallToolResult) -> Result<(), Failure> {
    if result.is_error == Some(true) { Err(Failure::told(Exit::Failed)) } else { Ok(()) }
}

fn content(result: &CallToolResult) {
    for part in &result.content {
        out!("{}", block(part));
    }
    if result.content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        json(&structured.to_value());
    }
}

/// Shows one block of content.
pub(crate) fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => printable_lines(&text.text),
        ContentBlock::Image(image) => blob("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => blob("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[resource {}]", printable(&link.uri)),
        ContentBlock::Resource(resource) => contents(&resource.resource),
        other => printable_json(other, true),
    }
}

fn blob(what: &str, mime_type: &str, base64: &str) -> String {
    format!("[{what} of type {}, {} bytes]", printable(mime_type), base64.len() / 4 * 3)
}

/// Shows the contents of a resource.
fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => printable_lines(&text.text),
        ResourceContents::Blob(bytes) => {
            blob("resource", bytes.mime_type.as_deref().unwrap_or("unknown"), &bytes.blob)
        }
    }
}

/// Prints the messages of a prompt.
pub(crate) fn prompt(result: &GetPromptResult) {
    let dim = Style::new().dimmed();
    for message in &result.messages {
        let role = format!("{:?}", message.role).to_lowercase();
        out!("{dim}{role}:{dim:#} {}", block(&message.content));
    }
}

/// Prints the contents of a resource.
pub(crate) fn resource(result: &ReadResourceResult) {
    for part in &result.contents {
        out!("{}", contents(part));
    }
}

/// Prints a task.
pub(crate) fn task(task: &Task, as_json: bool) {
    if as_json {
        return json(task);
    }
    out!("{}  {}", printable(&task.task_id), task.status);
    if let Some(message) = &task.status_message {
        out!("  {}", printable(message));
    }
    for (key, question) in &task.input_requests {
        let text = match question {
            InputRequest::Elicit(params) => params.message(),
            _ => "",
        };
        out!("  asks {} ({}): {}", printable(key), Kind::of(question), printable(text));
    }
    if let Some(error) = &task.error {
        out!("  failed: {}", printable(&error.to_string()));
    }
}
