//! The table: what a running handler has asked, and what it already knows.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use roundtrip_core::round::{Answer, Journal, Kind, Question};
use roundtrip_core::seal::{Digest, FlowId};
use roundtrip_core::wire::{ClientCapabilities, ErrorObject, InputRequest};

use super::error::AskError;
use super::trace::Trace;
use crate::server::traffic::Traffic;

/// One handler's questions and answers.
pub(crate) struct Table {
    inner: Mutex<Inner>,
    pub(crate) capabilities: ClientCapabilities,
    /// Whether the server wants flows to move on to another instance.
    traffic: Arc<Traffic>,
    trace: Option<Arc<Trace>>,
}

struct Inner {
    flow: FlowId,
    round: u32,
    journal: Journal,
    asked: Vec<Asked>,
    /// Answers that came with the request, for handlers that take them by key alone.
    unasked: Vec<(String, String)>,
    by_key_alone: bool,
    steps_running: usize,
    /// The handler wants to go on elsewhere, or later.
    handed_off: bool,
    closed: bool,
    wakers: Vec<Waker>,
}

/// A question on the table.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) key: Cow<'static, str>,
    pub(crate) pin: Digest,
    pub(crate) request: InputRequest,
    pub(crate) valid_for: Option<Duration>,
}

/// What is left when a round ends without a result.
#[derive(Debug)]
pub(crate) struct Suspended {
    pub(crate) journal: Journal,
    pub(crate) asked: Vec<Asked>,
    /// There is nothing to remember, and the handler wants no state for that.
    pub(crate) stateless: bool,
}

impl Table {
    /// A table for a round.
    pub(crate) fn new(
        (flow, round): (FlowId, u32),
        journal: Journal,
        unasked: Vec<(String, String)>,
        capabilities: ClientCapabilities,
        (traffic, trace): (&Arc<Traffic>, Option<&Arc<Trace>>),
    ) -> Self {
        let inner = Inner {
            flow,
            round,
            journal,
            asked: Vec::new(),
            unasked,
            by_key_alone: false,
            steps_running: 0,
            handed_off: false,
            closed: false,
            wakers: Vec::new(),
        };
        Self { inner: Mutex::new(inner), capabilities, traffic: Arc::clone(traffic), trace: trace.cloned() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is made in one step: a panic elsewhere cannot leave it half made.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn traced(&self, key: &str) {
        if let Some(trace) = &self.trace {
            trace.key(key);
        }
    }

    fn open(&self) -> Result<MutexGuard<'_, Inner>, AskError> {
        let inner = self.lock();
        if inner.closed { Err(AskError::Closed) } else { Ok(inner) }
    }

    pub(crate) fn flow(&self) -> FlowId {
        self.lock().flow
    }

    /// How many rounds there have been before this one.
    pub(crate) fn round(&self) -> u32 {
        self.lock().round
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.traffic.is_moving()
    }

    /// Inline: the answer to a question, or the question on the table. A key is used once a run.
    pub(crate) fn ask(
        &self,
        question: &Question,
        valid_for: Option<Duration>,
    ) -> Result<Option<Answer>, AskError> {
        let (key, pin) = (&question.key, question.pin());
        self.traced(key);
        let mut inner = self.open()?;
        if inner.asked.iter().any(|asked| asked.key == *key) {
            return Err(twice(key));
        }
        let mut problem = None;
        if let Some(found) = inner.journal.find(key) {
            if found.used {
                return Err(twice(key));
            }
            // Another question under a kept key: its answer does not count, all others do (A6).
            if matches!(found.kind, Kind::Given | Kind::Settled) && found.pin == pin {
                match Answer::read(question, found.value) {
                    Ok(answer) => {
                        inner.journal.settle(key);
                        return Ok(Some(answer));
                    }
                    Err(unusable) => problem = Some(unusable.0),
                }
            }
            inner.journal.forget(key);
        }
        self.lay(&mut inner, question, pin, valid_for, problem.as_deref())?;
        Ok(None)
    }

    /// By hand: the answer to a question, if there is one that fits.
    pub(crate) fn look_up(&self, question: &Question) -> Result<Option<Answer>, AskError> {
        let (key, pin) = (&question.key, question.pin());
        let mut inner = self.open()?;
        if inner.by_key_alone && inner.journal.peek(key).is_none() {
            let given = inner.unasked.iter().find(|(name, _)| name == key).map(|(_, answer)| answer.clone());
            if let Some(answer) = given {
                inner.journal.remember(Kind::Given, key, Some(pin), &answer);
            }
        }
        let Some(found) = inner.journal.peek(key) else { return Ok(None) };
        if !matches!(found.kind, Kind::Given | Kind::Settled) || found.pin != pin {
            return Ok(None);
        }
        let Ok(answer) = Answer::read(question, found.value) else { return Ok(None) };
        inner.journal.settle(key);
        Ok(Some(answer))
    }

    /// By hand: puts a question on the table, whatever has been answered.
    pub(crate) fn put(&self, question: &Question) -> Result<(), AskError> {
        let (key, pin) = (&question.key, question.pin());
        let mut inner = self.open()?;
        if inner.asked.iter().any(|asked| asked.key == *key) {
            return Err(twice(key));
        }
        let given = inner.journal.peek(key).filter(|found| found.kind == Kind::Given && found.pin == pin);
        let problem = given.and_then(|found| Answer::read(question, found.value).err());
        inner.journal.forget(key);
        self.lay(&mut inner, question, pin, None, problem.as_ref().map(|unusable| unusable.0.as_str()))
    }

    fn lay(
        &self,
        inner: &mut Inner,
        question: &Question,
        pin: Digest,
        valid_for: Option<Duration>,
        problem: Option<&str>,
    ) -> Result<(), AskError> {
        let needs = question.needs();
        if !self.capabilities.covers(&needs) {
            let error = ErrorObject::missing_capability(&needs);
            return Err(AskError::CannotAsk { key: question.key.to_string(), error });
        }
        let request = question.to_request(problem);
        inner.asked.push(Asked { key: question.key.clone(), pin, request, valid_for });
        Ok(())
    }

    /// Keeps the waker of a question that waits; fails once the round is over.
    pub(crate) fn wait(&self, cx: &mut Context<'_>) -> Result<(), AskError> {
        let mut inner = self.open()?;
        if !inner.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.wakers.push(cx.waker().clone());
        }
        Ok(())
    }

    /// Takes a question off the table that nobody waits for any more.
    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().asked.retain(|asked| asked.key != key);
    }

    /// What a step came to in an earlier round: its value, or the failure it was told to remember.
    pub(crate) fn step(&self, key: &str) -> Result<Option<Result<String, String>>, AskError> {
        self.traced(key);
        match self.open()?.journal.find(key) {
            None => Ok(None),
            Some(found) if found.used => Err(twice(key)),
            Some(found) => match found.kind {
                Kind::Step => Ok(Some(Ok(found.value.to_owned()))),
                Kind::Failed => Ok(Some(Err(found.value.to_owned()))),
                _ => Err(twice(key)),
            },
        }
    }

    /// A step begins: until it ends, the handler is not dropped.
    pub(crate) fn begin_step(self: &Arc<Self>) -> StepGuard {
        self.lock().steps_running += 1;
        StepGuard(Arc::clone(self))
    }

    pub(crate) fn remember(&self, kind: Kind, key: &str, value: &str) {
        self.lock().journal.remember(kind, key, None, value);
    }

    /// Whether a place has been passed in an earlier round.
    pub(crate) fn passed(&self, key: &str) -> Result<bool, AskError> {
        match self.open()?.journal.find(key) {
            None => Ok(false),
            Some(found) if found.used || found.kind != Kind::Passed => Err(twice(key)),
            Some(_) => Ok(true),
        }
    }

    /// Ends the round here, with nothing to ask.
    pub(crate) fn hand_off(&self) {
        self.lock().handed_off = true;
    }

    pub(crate) fn set_state(&self, json: &str) {
        self.lock().journal.set_state(json);
    }

    pub(crate) fn state(&self) -> Option<String> {
        self.lock().journal.state().map(str::to_owned)
    }

    pub(crate) fn by_key_alone(&self) {
        self.lock().by_key_alone = true;
    }

    /// If the handler waits for nothing but answers: what the round comes to. Closes the table.
    pub(crate) fn suspend(&self) -> Option<Suspended> {
        let mut inner = self.lock();
        let waiting = !inner.asked.is_empty() || inner.handed_off;
        if !waiting || inner.steps_running > 0 || inner.closed {
            return None;
        }
        inner.closed = true;
        let journal = std::mem::take(&mut inner.journal);
        let stateless = inner.by_key_alone && journal.is_empty();
        let suspended = Suspended { journal, asked: std::mem::take(&mut inner.asked), stateless };
        wake_all(inner);
        Some(suspended)
    }

    /// The round is over. Whoever kept an `Ask` is told, and not left to hang.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        wake_all(inner);
    }
}

fn wake_all(mut inner: MutexGuard<'_, Inner>) {
    let wakers = std::mem::take(&mut inner.wakers);
    drop(inner);
    wakers.into_iter().for_each(Waker::wake);
}

fn twice(key: &str) -> AskError {
    AskError::Misuse(format!(
        "the key `{key}` is used twice in one flow: give each question and step its own"
    ))
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("flow", &self.flow())
            .field("round", &self.round())
            .finish_non_exhaustive()
    }
}

/// A step that is running.
#[derive(Debug)]
pub(crate) struct StepGuard(Arc<Table>);

impl Drop for StepGuard {
    fn drop(&mut self) {
        self.0.lock().steps_running -= 1;
    }
}
