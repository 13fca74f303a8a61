//! [`Record`]: the lifecycle of a task. Pure state: it reads no clock and touches no store.

mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::FlowId;
use roundtrip_core::wire::{InputRequests, Raw, Task, TaskStatus, json, tool_failure};
use serde::{Deserialize, Serialize};

use self::questions::OpenQuestion;

use super::ended::Ended;
use super::rows::{Chunk, Due, TaskChange, TaskKey};
use super::view::{View, left_for};
use super::{Millis, TaskId, parts};

/// Time for which a task that outlived its time to live can still be read as failed.
const GRACE: Duration = Duration::from_secs(60);
/// Longest status message, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// A task: its state between two runs of its handler, besides its call and its journal, which are stored apart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of its tool.
    tool: String,
    status: TaskStatus,
    message: Option<String>,
    created: Millis,
    updated: Millis,
    ttl: Option<u64>,
    flow: [u8; 16],
    /// Number of runs that have ended without a result.
    rounds: u32,
    /// Number of those in a row that waited for something outside, up to the last.
    #[serde(default)]
    waits: u32,
    /// Number of times that new questions were shown.
    #[serde(default)]
    batches: u32,
    /// Number of runs in a row that have neither shown nor settled anything, nor waited for something outside.
    #[serde(default)]
    idle: u32,
    /// True if this run has shown or settled something.
    #[serde(skip)]
    has_advanced: bool,
    questions: Vec<OpenQuestion>,
    /// Keys that have been sent to the client, and are not those of open questions.
    spent: BTreeSet<String>,
    /// Answers to open questions that the handler has not read yet, by the keys of the questions.
    answers: BTreeMap<String, Raw>,
    /// True if a worker is to stop.
    cancelled: bool,
    /// Reason why processes have left it to others, if they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<String>,
    /// True if its handler waits for answers, and has set state.
    #[serde(default)]
    stateful: bool,
    /// Parts of its result so far: their number, and their bytes.
    #[serde(default)]
    parts: (u32, usize),
    /// The text of its result, in short, if that is a failure of its tool: at 2025-11-25 the task has failed, then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// Digest of the OAuth client that answers have to come from, if it is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    /// Its result or its error, from when it has ended until that is stored.
    #[serde(skip)]
    result: Option<Bytes>,
}

impl Record {
    /// Creates a task that works.
    pub(crate) fn new(tool: String, flow: FlowId, now: Millis, ttl: Option<Duration>) -> Self {
        Self {
            tool,
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            flow: *flow.as_bytes(),
            rounds: 0,
            waits: 0,
            batches: 0,
            idle: 0,
            has_advanced: false,
            questions: Vec::new(),
            spent: BTreeSet::new(),
            answers: BTreeMap::new(),
            cancelled: false,
            left: None,
            stateful: false,
            parts: (0, 0),
            failure: None,
            client: None,
            result: None,
        }
    }

    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    pub(crate) fn flow(&self) -> FlowId {
        FlowId::new(self.flow)
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Returns the number of runs in a row that have waited for something outside.
    pub(crate) fn waits(&self) -> u32 {
        self.waits
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status.is_terminal()
    }

    pub(crate) fn status(&self) -> TaskStatus {
        self.status
    }

    /// Returns whether it waits for answers to a handler that has set state of its own.
    pub(crate) fn asks_with_state(&self) -> bool {
        self.status == TaskStatus::InputRequired && self.stateful
    }

    /// Returns whether a worker is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Returns whether the handler would find something new: an answer, or nothing to wait for.
    pub(crate) fn is_runnable(&self) -> bool {
        !self.has_ended() && (self.questions.is_empty() || !self.answers.is_empty())
    }

    /// Returns the end of its time to live.
    pub(crate) fn expires(&self) -> Option<Millis> {
        self.ttl.map(|ttl| self.created.plus(Duration::from_millis(ttl)))
    }

    /// Notes what it waits for: this process leaves it to others (T16). Returns whether that is news.
    pub(crate) fn leave(&mut self, why: &str, now: Millis) -> bool {
        let why = clipped(why);
        if self.left.as_deref() == Some(why) {
            return false;
        }
        (self.left, self.updated) = (Some(why.to_owned()), now);
        true
    }

    /// Sets the number of runs in a row that have waited for something outside.
    pub(crate) fn set_waits(&mut self, waits: u32) {
        self.waits = waits;
    }

    /// Sets the description of its state.
    pub(crate) fn set_message(&mut self, message: &str, now: Millis) {
        self.message = Some(clipped(message).to_owned());
        self.updated = now;
    }

    /// Returns the number of the parts of its result so far, and their bytes.
    pub(crate) fn parts(&self) -> (u32, usize) {
        self.parts
    }

    /// Sets the number of the parts of its result so far, and their bytes.
    pub(super) fn set_parts(&mut self, count: u32, bytes: usize) {
        self.parts = (count, bytes);
    }

    /// Adds parts of its result, the first of which has this number. Returns those that are new, as a piece to be stored.
    pub(crate) fn add_parts(&mut self, first: u32, parts: &[Raw], now: Millis) -> Option<Chunk> {
        let (known, bytes) = self.parts;
        let new = parts.get(usize::try_from(known.saturating_sub(first)).ok()?..)?;
        let piece = parts::join(new)?;
        self.parts =
            (known.saturating_add(u32::try_from(new.len()).ok()?), bytes.saturating_add(piece.len()));
        self.updated = now;
        Some(Chunk { number: known, bytes: piece })
    }

    /// Asks the worker to stop; a task that none works on ends at once.
    pub(crate) fn cancel(&mut self, is_held: bool, now: Millis) {
        if self.has_ended() {
            return;
        }
        if is_held {
            self.cancelled = true;
        } else {
            self.end(&Ended::Cancelled, now);
        }
    }

    /// Ends the task. What only its workers needed is dropped.
    pub(crate) fn end(&mut self, how: &Ended, now: Millis) {
        if self.has_ended() {
            return;
        }
        self.updated = now;
        self.questions.clear();
        self.answers.clear();
        self.spent.clear();
        self.left = None;
        self.status = match how {
            Ended::Completed(_) => TaskStatus::Completed,
            Ended::Failed(error) => {
                self.message = Some(clipped(&error.message).to_owned());
                TaskStatus::Failed
            }
            Ended::Cancelled => TaskStatus::Cancelled,
        };
        self.set_failure(Some(how));
        self.result = how.encoded();
    }

    /// Keeps the text of a result in short, if that is a failure of its tool.
    pub(super) fn set_failure(&mut self, ended: Option<&Ended>) {
        self.failure = match ended {
            Some(Ended::Completed(result)) => tool_failure(result),
            _ => None,
        };
    }

    /// Returns the time from which it may be removed: the end of its time to live, or a little later if it has ended only then.
    fn removable(&self) -> Option<Millis> {
        let expires = self.expires()?;
        let late = self.has_ended() && self.updated >= expires;
        Some(if late { self.updated.plus(GRACE) } else { expires })
    }

    /// Returns the task as clients see it.
    fn view(&self, id: &TaskId) -> Task {
        let open = self.questions.iter().filter(|question| !self.answers.contains_key(&question.wire));
        let questions: InputRequests = match self.status {
            TaskStatus::InputRequired => {
                open.map(|question| (question.wire.clone(), question.request.clone())).collect()
            }
            _ => InputRequests::new(),
        };
        Task {
            task_id: id.as_str().to_owned(),
            status: self.status,
            status_message: self.left.as_deref().map(left_for).or_else(|| self.message.clone()),
            created_at: self.created.to_string(),
            last_updated_at: self.updated.to_string(),
            ttl_ms: self.ttl,
            poll_interval_ms: None,
            input_requests: questions,
            result: self.failure.as_deref().map(in_short),
            error: None,
        }
    }

    /// Reads the record of a stored task.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a record.
    pub(crate) fn read(work: &[u8]) -> Result<Self, serde_json::Error> {
        json::from_slice(work)
    }

    /// Returns the bytes of the task as clients see it, and of the record, for the store.
    pub(crate) fn write(&self, id: &TaskId) -> Result<(Bytes, Bytes), serde_json::Error> {
        let task = serde_json::to_vec(&self.view(id))?;
        let view = View { updated: self.updated, tool: self.tool.as_bytes(), task: &task };
        Ok((view.joined().into(), serde_json::to_vec(self)?.into()))
    }

    /// Returns the change that stores the record in place of a version. `due` is ignored once the task has ended.
    pub(crate) fn change(
        &self,
        key: &TaskKey,
        version: u64,
        due: Due,
    ) -> Result<TaskChange, serde_json::Error> {
        let (view, work) = self.write(&key.id)?;
        let is_live = !self.has_ended();
        Ok(TaskChange {
            key: key.clone(),
            version,
            due: if is_live { due } else { Due::Never },
            is_live,
            expires: self.removable(),
            view,
            work,
            result: self.result.clone(),
            journal: Vec::new(),
            replaces_journal: false,
            parts: Vec::new(),
        })
    }

    /// Reads a stored task as clients see it, with its result if that was read, and with the time after which it is worth another
    /// poll.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a task.
    pub(crate) fn read_view(
        view: &[u8],
        result: Option<&[u8]>,
        now: Millis,
    ) -> Result<Task, serde_json::Error> {
        let view = View::split(view);
        let mut task: Task = json::from_slice(view.task)?;
        if !task.status.is_terminal() {
            task.poll_interval_ms = Some(view.poll_interval(now));
        }
        match result.map(Ended::decode).transpose()? {
            Some(Ended::Completed(result)) => task.result = Some(result),
            Some(Ended::Failed(error)) => task.error = Some(error),
            Some(Ended::Cancelled) | None => {}
        }
        Ok(task)
    }

    /// Returns the name of a stored task's tool.
    pub(crate) fn tool_of(view: &[u8]) -> &str {
        std::str::from_utf8(View::split(view).tool).unwrap_or_default()
    }
}

/// Returns a failure of a tool in place of its result, which is stored apart.
fn in_short(failure: &str) -> Raw {
    Raw::from(serde_json::json!({ "content": [{ "type": "text", "text": failure }], "isError": true }))
}

fn clipped(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST_MESSAGE)]
}
