//! [`Record`]: the lifecycle of a task. Pure state: it reads no clock and touches no store.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::round::{Journal, fits};
use roundtrip_core::seal::{Digest, FlowId};
use roundtrip_core::wire::{ErrorObject, InputRequest, InputRequests, Raw, Task, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call::TaskCall;
use super::parts::TaskParts;
use super::view::{View, prefixed, split};
use super::{Millis, StoredTask, TaskId, TaskOwner};

/// Time for which a task that outlived its time to live can still be read as failed.
const GRACE: Duration = Duration::from_secs(60);
/// Largest journal, in bytes.
const LARGEST_JOURNAL: usize = 4 * 1024 * 1024;
/// Longest status message, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// A question that is open in a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenQuestion {
    /// Its key for the client: no two requests of a task share one.
    wire: String,
    /// Its key for the handler.
    key: String,
    request: InputRequest,
}

/// A question that the handler asks, under its own key.
pub(crate) type NewQuestion = (Cow<'static, str>, InputRequest);

/// End of a task.
#[derive(Debug)]
pub(crate) enum Ended {
    Completed(Raw),
    Failed(ErrorObject),
    Cancelled,
}

/// A task: its state between two runs of its handler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of its tool.
    tool: String,
    status: TaskStatus,
    message: Option<String>,
    created: Millis,
    updated: Millis,
    ttl: Option<u64>,
    /// `None` once it has ended.
    call: Option<TaskCall>,
    flow: [u8; 16],
    /// Number of runs that have ended without a result.
    rounds: u32,
    /// Number of those in a row that waited for something outside, up to the last.
    #[serde(default)]
    waits: u32,
    questions: Vec<OpenQuestion>,
    /// Keys that have been sent to the client, and are not those of open questions.
    spent: BTreeSet<String>,
    /// Answers to open questions that the handler has not read yet, by the keys of the questions.
    answers: BTreeMap<String, Raw>,
    /// True if a worker is to stop.
    cancelled: bool,
    result: Option<Raw>,
    error: Option<ErrorObject>,
    #[serde(skip)]
    journal: Vec<u8>,
    /// Parts of its result so far. They are stored with the view.
    #[serde(skip)]
    parts: TaskParts,
}

impl Record {
    /// Creates a task that works.
    pub(crate) fn new(
        (tool, call): (String, TaskCall),
        flow: FlowId,
        now: Millis,
        ttl: Option<Duration>,
    ) -> Self {
        Self {
            tool,
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            call: Some(call),
            flow: *flow.as_bytes(),
            rounds: 0,
            waits: 0,
            questions: Vec::new(),
            spent: BTreeSet::new(),
            answers: BTreeMap::new(),
            cancelled: false,
            result: None,
            error: None,
            journal: Vec::new(),
            parts: TaskParts::default(),
        }
    }

    pub(crate) fn call(&self) -> Option<&TaskCall> {
        self.call.as_ref()
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

    pub(crate) fn journal(&self) -> &[u8] {
        &self.journal
    }

    /// Returns the error of a task that remembers too much.
    pub(crate) fn overflow(&self) -> Option<ErrorObject> {
        let size = self.journal.len();
        (size > LARGEST_JOURNAL).then(|| {
            ErrorObject::internal(format!(
                "the task has to remember {size} bytes, and may remember {LARGEST_JOURNAL}: keep large values elsewhere"
            ))
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status.is_terminal()
    }

    pub(crate) fn status(&self) -> TaskStatus {
        self.status
    }

    /// Returns whether it waits for answers to a handler that has set state of its own.
    pub(crate) fn asks_with_state(&self) -> bool {
        let journal = || Journal::decode(&self.journal);
        self.status == TaskStatus::InputRequired && journal().is_ok_and(|journal| journal.state().is_some())
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

    /// Takes a client's answers. Those to questions that are not open are ignored, and so is a second one (T4). Returns whether
    /// any counts.
    ///
    /// # Errors
    /// -32602 if they are larger, with those that wait, than a task may remember.
    pub(crate) fn answer(
        &mut self,
        responses: &[(Cow<'_, str>, &RawValue)],
        now: Millis,
    ) -> Result<bool, ErrorObject> {
        // A client may send as many as fit into a message, and a handler may ask for every entry of a list.
        let open: HashSet<&str> = self.questions.iter().map(|question| &*question.wire).collect();
        let mut any = false;
        for (wire, answer) in responses.iter().filter(|(wire, _)| open.contains(&**wire)) {
            if let Entry::Vacant(place) = self.answers.entry(wire.to_string()) {
                place.insert(Raw::from(*answer));
                any = true;
            }
        }
        let size: usize = self.answers.values().map(|answer| answer.get().len()).sum();
        if size > LARGEST_JOURNAL {
            return Err(ErrorObject::invalid_params(format!(
                "params.inputResponses: {size} bytes, and a task may remember {LARGEST_JOURNAL}"
            )));
        }
        if any {
            self.updated = now;
            if self.status == TaskStatus::InputRequired {
                self.status = self.waiting_status();
            }
        }
        Ok(any)
    }

    /// Takes over what clients have changed in the stored record since it was read: answers, and the wish to cancel.
    pub(crate) fn take_over(&mut self, stored: Self) {
        self.cancelled |= stored.cancelled;
        for (wire, answer) in stored.answers {
            if !self.spent.contains(&wire) {
                self.answers.entry(wire).or_insert(answer);
            }
        }
    }

    /// Returns the status of a task that has not ended: it asks as long as a question has no answer that fits (T23).
    fn waiting_status(&self) -> TaskStatus {
        let answered = |question: &OpenQuestion| {
            let own = self.answers.get(&question.wire);
            own.is_some_and(|answer| fits(&question.request, answer.get()))
        };
        if self.questions.iter().all(answered) { TaskStatus::Working } else { TaskStatus::InputRequired }
    }

    /// Returns the answers for the handler as `inputResponses`, under the keys it asked with.
    pub(crate) fn responses(&self) -> Vec<(&str, &Raw)> {
        let answered = |question: &OpenQuestion| self.answers.get(&question.wire);
        self.questions.iter().filter_map(|asked| Some((&*asked.key, answered(asked)?))).collect()
    }

    /// Begins a run with the answers there are: they are used up, whether or not they fit.
    pub(crate) fn begin(&mut self) {
        let answered = std::mem::take(&mut self.answers);
        self.questions.retain(|question| !answered.contains_key(&question.wire));
        self.spent.extend(answered.into_keys());
    }

    /// Sets the number of runs in a row that have waited for something outside.
    pub(crate) fn set_waits(&mut self, waits: u32) {
        self.waits = waits;
    }

    /// Keeps the journal of a run that goes on. A handler that does is not waiting for its questions.
    pub(crate) fn keep(&mut self, journal: Vec<u8>, now: Millis) {
        self.journal = journal;
        self.updated = now;
        self.status = TaskStatus::Working;
    }

    /// Ends a run with the questions of its handler. One that is asked as before keeps its key; any other gets a key that was
    /// never used in this task. A task that was cancelled meanwhile ends here: there is no worker to do so later.
    pub(crate) fn park(&mut self, journal: Vec<u8>, asked: Vec<NewQuestion>, now: Millis) {
        if self.cancelled {
            return self.end(Ended::Cancelled, now);
        }
        self.journal = journal;
        self.rounds = self.rounds.saturating_add(1);
        self.updated = now;
        let before = std::mem::take(&mut self.questions);
        let mut used = std::mem::take(&mut self.spent);
        used.extend(before.iter().map(|question| question.wire.clone()));
        let mut before: HashMap<String, OpenQuestion> =
            before.into_iter().map(|question| (question.key.clone(), question)).collect();
        for (key, request) in asked {
            let same = before.remove(&*key).filter(|question| question.request == request);
            self.questions.push(same.unwrap_or_else(|| {
                let wire = new_key(&key, &used);
                used.insert(wire.clone());
                OpenQuestion { wire, key: key.into_owned(), request }
            }));
        }
        for question in &self.questions {
            used.remove(&question.wire);
        }
        self.spent = used;
        self.status = self.waiting_status();
    }

    /// Sets the description of its state.
    pub(crate) fn set_message(&mut self, message: &str, now: Millis) {
        self.message = Some(clipped(message).to_owned());
        self.updated = now;
    }

    /// Returns the parts of its result so far.
    pub(crate) fn parts(&self) -> &TaskParts {
        &self.parts
    }

    /// Adds parts of its result, the first of which has this number.
    pub(crate) fn add_parts(&mut self, first: u32, parts: &[Raw], now: Millis) {
        self.parts.add(first, parts);
        self.updated = now;
    }

    /// Asks the worker to stop; a task that none works on ends at once.
    pub(crate) fn cancel(&mut self, is_held: bool, now: Millis) {
        if self.has_ended() {
            return;
        }
        if is_held {
            self.cancelled = true;
        } else {
            self.end(Ended::Cancelled, now);
        }
    }

    /// Ends the task. What only its workers needed is dropped.
    pub(crate) fn end(&mut self, how: Ended, now: Millis) {
        if self.has_ended() {
            return;
        }
        self.updated = now;
        self.call = None;
        self.journal = Vec::new();
        self.questions.clear();
        self.answers.clear();
        self.spent.clear();
        match how {
            Ended::Completed(result) => (self.status, self.result) = (TaskStatus::Completed, Some(result)),
            Ended::Failed(error) => {
                self.message = Some(clipped(&error.message).to_owned());
                (self.status, self.error) = (TaskStatus::Failed, Some(error));
            }
            Ended::Cancelled => self.status = TaskStatus::Cancelled,
        }
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
            status_message: self.message.clone(),
            created_at: self.created.to_string(),
            last_updated_at: self.updated.to_string(),
            ttl_ms: self.ttl,
            poll_interval_ms: None,
            input_requests: questions,
            result: self.result.clone(),
            error: self.error.clone(),
        }
    }

    /// Reads the record of a stored task.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a record.
    pub(crate) fn read(stored: &StoredTask) -> Result<Self, serde_json::Error> {
        let (head, journal) = split(&stored.work);
        let mut record: Self = serde_json::from_slice(head)?;
        record.journal = journal.to_vec();
        record.parts = TaskParts::read(View::split(&stored.view).parts);
        Ok(record)
    }

    /// Returns the bytes of the record, and of its view, for the store.
    fn write(&self, id: &TaskId) -> Result<(Bytes, Bytes), serde_json::Error> {
        let mut work = Vec::new();
        prefixed(&mut work, &serde_json::to_vec(self)?);
        work.extend_from_slice(&self.journal);
        let task = serde_json::to_vec(&self.view(id))?;
        let (tool, parts) = (self.tool.as_bytes(), self.parts.as_bytes());
        let view = View { updated: self.updated, tool, task: &task, parts };
        Ok((view.joined().into(), work.into()))
    }

    /// Reads the view of a stored task, with the time after which it is worth another look.
    ///
    /// # Errors
    /// Fails if the bytes are not those of a view.
    pub(crate) fn read_view(view: &[u8], now: Millis) -> Result<Task, serde_json::Error> {
        let view = View::split(view);
        let mut task: Task = serde_json::from_slice(view.task)?;
        if !task.status.is_terminal() {
            task.poll_interval_ms = Some(view.poll_interval(now));
        }
        Ok(task)
    }

    /// Returns the parts of a stored task's result from a number on.
    pub(crate) fn read_parts(view: &[u8], from: u32) -> impl Iterator<Item = Raw> {
        TaskParts::from(View::split(view).parts, from)
    }

    /// Returns the name of a stored task's tool.
    pub(crate) fn tool_of(view: &[u8]) -> &str {
        std::str::from_utf8(View::split(view).tool).unwrap_or_default()
    }

    /// Returns a new task for the store: with a fence of 1 a worker has it until `due`, with 0 any may take it from then on.
    pub(crate) fn stored(
        &self,
        id: &TaskId,
        (owner, account): (TaskOwner, Digest),
        (fence, due): (u64, Millis),
    ) -> Result<StoredTask, serde_json::Error> {
        let (view, work) = self.write(id)?;
        Ok(StoredTask {
            id: id.clone(),
            owner,
            account,
            version: 0,
            fence,
            is_live: true,
            due: Some(due),
            expires: self.expires(),
            view,
            work,
        })
    }

    /// Puts the record into its stored form. `due` is `None` where there is nothing for a worker to do.
    pub(crate) fn put(&self, stored: &mut StoredTask, due: Option<Millis>) -> Result<(), serde_json::Error> {
        (stored.view, stored.work) = self.write(&stored.id)?;
        stored.is_live = !self.has_ended();
        stored.due = due.filter(|_| !self.has_ended());
        stored.expires = self.removable();
        Ok(())
    }
}

/// Returns a key for the client that no request of the task has had: `party`, then `party~2`.
fn new_key(key: &str, used: &BTreeSet<String>) -> String {
    if !used.contains(key) {
        return key.to_owned();
    }
    (2u32..).map(|n| format!("{key}~{n}")).find(|wire| !used.contains(wire)).unwrap_or_default()
}

fn clipped(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST_MESSAGE)]
}
