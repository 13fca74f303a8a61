//! Results, printed for people or as JSON.

use std::fmt::Arguments;
use std::io::{self, Write as _};
use std::sync::OnceLock;

use anstyle::Style;
use roundtrip::client::Kind;
use roundtrip::wire::{
    CallToolResult, ContentBlock, GetPromptResult, InputRequest, ReadResourceResult, ResourceContents, Task,
    join_part,
};
use serde::Serialize;
use tokio::sync::Notify;

use crate::ask::terminal;
use crate::exit::{Exit, Failure};
use crate::printable::{printable, printable_json, printable_lines};
use crate::rows::Screen;

/// First error of standard output.
static BROKEN: OnceLock<io::Error> = OnceLock::new();
/// Tells the work under way that standard output is broken.
static TOLD: Notify = Notify::const_new();

/// Writes to standard output at once. Nothing is written after an error, with which the command ends.
pub(crate) fn write(text: Arguments<'_>) {
    if is_broken() {
        return;
    }
    let mut out = anstream::stdout().lock();
    if let Err(error) = out.write_fmt(text).and_then(|()| out.flush())
        && BROKEN.set(error).is_ok()
    {
        TOLD.notify_one();
    }
}

/// Returns whether standard output has failed: the command reports that at its end.
pub(crate) fn is_broken() -> bool {
    BROKEN.get().is_some()
}

/// Waits until standard output is broken.
pub(crate) async fn broken() {
    TOLD.notified().await;
}

/// Returns the outcome of a command, which has failed if its output is lost. A reader that has gone wants no more, and that is
/// no error. A terminal that has gone interrupts the command, whichever part of it notices first.
pub(crate) fn written(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match BROKEN.get() {
        None => outcome,
        Some(_) if matches!(&outcome, Err(failure) if failure.exit == Exit::Interrupted) => outcome,
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Some(error) if terminal::is_hang_up(error) => Err(Failure::told(Exit::Interrupted)),
        Some(error) => Err(Failure::new(Exit::Failed, format!("standard output cannot be written: {error}"))),
    }
}

/// Writes a line to standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) use out;

/// Writes a line to standard error, which may have gone with its terminal.
macro_rules! err {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*)) };
}

pub(crate) use err;

/// Writes a line to standard error. What is lost there is no error, as nobody could be told of it.
pub(crate) fn tell(line: Arguments<'_>) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) {
    out!("{}", printable_json(value, true));
}

/// Content that has been printed in parts, joined as in the result.
#[derive(Debug, Default)]
pub(crate) struct Printed(Vec<ContentBlock>);

impl Printed {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text that the last line ends with, which is not complete.
    fn open_text(&self) -> Option<&str> {
        self.0.last().and_then(ContentBlock::as_text)
    }

    /// Returns whether the cursor is behind text.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.open_text().is_some_and(|text| !text.is_empty() && !text.ends_with('\n'))
    }

    /// Prints a part behind those before it. Blocks are on lines of their own.
    pub(crate) fn print(&mut self, part: ContentBlock) {
        let (shown, is_text, was_text) = (block(&part), part.as_text().is_some(), self.open_text().is_some());
        let before = self.0.len();
        join_part(&mut self.0, part);
        let begin = if was_text && self.0.len() > before { "\n" } else { "" };
        let end = if is_text { "" } else { "\n" };
        write(format_args!("{begin}{shown}{end}"));
    }

    /// Prints the rest of a result. Returns `false` if it does not begin with these parts.
    fn print_rest(&self, content: &[ContentBlock]) -> bool {
        let Some((last, before)) = self.0.split_last() else { return false };
        let Some((whole, behind)) = content.strip_prefix(before).and_then(<[_]>::split_first) else {
            return false;
        };
        match (last.as_text(), whole.as_text()) {
            (Some(printed), Some(text)) => match text.strip_prefix(printed) {
                Some(rest) => out!("{}", printable_lines(rest)),
                None => return false,
            },
            _ if last == whole => {}
            _ => return false,
        }
        blocks(behind);
        true
    }
}

/// Prints the result of a tool, except what has been printed of it in parts.
///
/// # Errors
/// If the tool failed.
pub(crate) fn tool(result: &CallToolResult, printed: &Printed) -> Result<(), Failure> {
    if !printed.print_rest(&result.content) {
        if printed.is_inside_line() {
            out!("");
        }
        content(result);
    }
    failed(result)
}

/// Returns the error of a tool that failed; its text is the result's.
pub(crate) fn failed(result: &CallToolResult) -> Result<(), Failure> {
    if result.is_error == Some(true) { Err(Failure::told(Exit::Failed)) } else { Ok(()) }
}

fn content(result: &CallToolResult) {
    blocks(&result.content);
    if result.content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        json(&structured.to_value());
    }
}

fn blocks(content: &[ContentBlock]) {
    for part in content {
        out!("{}", block(part));
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
    let row = |lead: &str, text: &str| out!("{}", Screen::Out.rows(lead, &printable(text)));
    row("task ", &format!("{}  {}", task.task_id, task.status));
    if let Some(message) = &task.status_message {
        row("  ", message);
    }
    for (key, question) in &task.input_requests {
        let text = match question {
            InputRequest::Elicit(params) => params.message(),
            _ => "",
        };
        row("  asks ", &format!("{key} ({}): {text}", Kind::of(question)));
    }
    if let Some(error) = &task.error {
        row("  failed: ", &error.to_string());
    }
}
