//! Flows kept in a file: `--save` writes it, `roundtrip resume` reads it.

use std::collections::BTreeMap;
use std::path::Path;

use roundtrip::Pending;
use roundtrip::wire::{CallTool, GetPrompt, Method, ReadResource, json};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::ask;
use crate::exit::Failure;
use crate::printable::printable;
use crate::server::{Endpoint, address};
use crate::{files, mark};

/// Marks of the format.
const FORMAT: &str = "roundtrip-flow";
const VERSION: u32 = 1;

/// Content of a file: a flow between two rounds, and the way to its server. Headers are not kept: they are credentials.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: String,
    version: u32,
    server: Endpoint,
    /// The flow, as text: the mark is of this text.
    pending: Box<RawValue>,
    /// Mark of the user who has written the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

impl Content {
    /// Returns the text that is marked: all that decides on what is sent where.
    fn marked(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&(VERSION, &self.server, &self.pending))
    }
}

/// A flow that was read from a file.
pub(crate) struct Saved {
    pub(crate) server: Endpoint,
    pub(crate) flow: Flow,
    /// True if `--save` of this user has written the file, and nobody has changed it.
    pub(crate) is_ours: bool,
    /// Texts of all that is sent and asked, for people.
    pub(crate) request: Request,
}

/// Flow of a method that can be resumed.
pub(crate) enum Flow {
    Tool(Pending<CallTool>),
    Prompt(Pending<GetPrompt>),
    Resource(Pending<ReadResource>),
}

/// Method of a flow. Other members of it are ignored.
#[derive(Deserialize)]
struct Kind {
    method: String,
}

/// Parts of a flow that are sent or asked. They are read from the flow as it is resumed, and not from the file: no member of that is
/// taken in two ways.
#[derive(Deserialize)]
pub(crate) struct Request {
    method: String,
    flow: Call,
    questions: BTreeMap<String, Box<RawValue>>,
    answers: BTreeMap<String, Box<RawValue>>,
    state: Option<String>,
    task: Option<OfTask>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    params: Box<RawValue>,
    meta: Option<Box<RawValue>>,
    idempotency_key: Option<String>,
}

/// Task that the call has become.
#[derive(Deserialize)]
struct OfTask {
    seen: Seen,
    dialect: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    task_id: String,
}

impl OfTask {
    /// Returns the method of the next request. Answers go with it, where something was asked.
    fn method(&self, asks: bool) -> &'static str {
        match self.dialect.as_deref() {
            _ if !asks => "tasks/get",
            Some("sep-2322") => "tasks/input_response",
            _ => "tasks/update",
        }
    }
}

impl Request {
    fn of<M: Method>(pending: &Pending<M>) -> Result<Self, serde_json::Error> {
        json::from_str(to_raw_value(pending)?.get())
    }

    /// Returns the request, the answers that the file gives, and the questions that it asks, a text each.
    pub(crate) fn written(&self) -> Vec<String> {
        let call = format!("{} {}", self.method, self.flow.params);
        // Of a task, the answers are sent to it, and the call is not sent again.
        let request = match &self.task {
            Some(task) => {
                let method = task.method(!self.questions.is_empty());
                format!(
                    "{method} {:?}, of a task that a call is said to have become: {call}",
                    task.seen.task_id
                )
            }
            None => call,
        };
        let meta = self.flow.meta.iter().map(|meta| format!("with metadata {meta}"));
        let key = self.flow.idempotency_key.iter().map(|key| format!("with the idempotency key {key:?}"));
        let size = |state: &String| format!("with a state of {} characters", state.chars().count());
        let state = self.state.iter().map(size);
        let answers = self.answers.iter().map(|(key, answer)| format!("with the answer {key:?}: {answer}"));
        let open = self.questions.iter().filter(|(key, _)| !self.answers.contains_key(*key));
        let open = open
            .map(|(key, question)| format!("with your answer to {key:?}, which the file asks: {question}"));
        let parts = std::iter::once(request).chain(meta).chain(key).chain(state);
        parts.chain(answers).chain(open).collect()
    }
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{} holds no flow that can be resumed: {why}", file.display()))
}

/// Writes a flow, with mode 0600: it holds arguments, answers and the server's state. It is marked as this user's.
pub(crate) fn write<M: Method>(file: &Path, server: &Endpoint, pending: &Pending<M>) -> Result<(), Failure> {
    let server = match server {
        // The flow may be resumed from another folder.
        Endpoint::Named { config, name, .. } => {
            let config = std::path::absolute(config).unwrap_or_else(|_| config.clone());
            Endpoint::named(&config, name.clone())
        }
        other => other.clone(),
    };
    let written = || {
        let pending = to_raw_value(pending)?;
        let mut content =
            Content { format: FORMAT.to_owned(), version: VERSION, server, pending, mark: None };
        content.mark = mark::mark(&content.marked()?);
        serde_json::to_string_pretty(&content)
    };
    files::write_private(file, &written().map_err(|error| unusable(file, &error))?)
}

/// Reads a flow. Files are trusted no more than a server: stored answers are compared with their questions again, a command is
/// not run unless the user says so, and a file that this user has not written sends nothing unless the user says so.
pub(crate) fn read(file: &Path) -> Result<Saved, Failure> {
    let unusable = |why: &dyn std::fmt::Display| unusable(file, why);
    let text = files::read_text(file)?;
    let content: Content = json::from_str(&text).map_err(|error| unusable(&error))?;
    if content.format != FORMAT || content.version != VERSION {
        let found = format!(
            "its format is `{}` {}, not `{FORMAT}` {VERSION}",
            printable(&content.format),
            content.version
        );
        return Err(unusable(&found));
    }
    if let Endpoint::Url(url) = &content.server {
        address::check(url).map_err(|why| unusable(&why))?;
    }
    let marked = content.marked().map_err(|error| unusable(&error))?;
    let is_ours = content.mark.as_ref().is_some_and(|mark| mark::is_ours(mark, &marked));
    let pending = content.pending.get();
    let kind: Kind = json::from_str(pending).map_err(|error| unusable(&error))?;
    let flow = match kind.method.as_str() {
        CallTool::NAME => json::from_str(pending).map(Flow::Tool),
        GetPrompt::NAME => json::from_str(pending).map(Flow::Prompt),
        ReadResource::NAME => json::from_str(pending).map(Flow::Resource),
        other => return Err(unusable(&format!("calls of `{}` are not resumed", printable(other)))),
    };
    let flow = flow.map_err(|error| unusable(&error))?;
    let request = match &flow {
        Flow::Tool(pending) => Request::of(pending),
        Flow::Prompt(pending) => Request::of(pending),
        Flow::Resource(pending) => Request::of(pending),
    };
    let request = request.map_err(|error| unusable(&error))?;
    Ok(Saved { server: content.server, flow, is_ours, request })
}

/// Creates the error of a call that stopped at a question because it was saved.
pub(crate) fn stopped<M: Method>(file: &Path, server: &Endpoint, pending: &Pending<M>) -> Failure {
    let shown = file.display().to_string();
    let words = server.words_to_resume(file);
    ask::stopped("the server asks:", pending)
        .with("saved", shown.clone())
        .note(format!("the call is kept in {shown}: go on with `{words}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listed::assert_read_by_name;

    #[test]
    fn a_list_is_not_taken_for_a_saved_flow() {
        for server in [json!({ "url": "https://a" }), json!({ "named": { "config": "c", "name": "n" } })] {
            let content = json!({
                "format": FORMAT, "version": VERSION, "server": server, "pending": 1, "mark": "m",
            });
            assert_read_by_name(&content, |file| json::from_str::<Content>(&file.to_string()).is_ok());
        }
        let flow = json!({
            "method": "tools/call", "flow": { "params": 1, "meta": 1, "idempotencyKey": "k" },
            "answers": { "a": 1 }, "questions": { "q": 1 }, "state": "s", "task": { "seen": { "taskId": "t" } },
        });
        assert_read_by_name(&flow, |flow| json::from_str::<Request>(&flow.to_string()).is_ok());
    }
}
