//! [`RoundState`]: journal, open questions and running steps of one round.

mod again;
mod kept;
mod live;
mod may;
mod park;
mod resolvers;
mod shown;
mod steps;
mod suspend;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use roundtrip_core::round::{
    Journal, Kind, Pin, Question, SentNotifications, Settled, Unusable, read_responses,
};
use roundtrip_core::seal::FlowId;
use roundtrip_core::wire::{ClientCapabilities, InputRequest, InputResponses, Raw};
use serde_json::value::RawValue;

pub(crate) use park::Parked;
pub(crate) use steps::Begun;
pub(crate) use suspend::{Suspended, Suspension};

use super::error::AskError;
use super::keeper::{Detachment, Keeper};
use super::shown::Shown;
use super::trace::{Branch, Trace};
use crate::lock::lock;
use crate::server::delivery::{Delivery, LiveQuestion, Reentry};
use crate::server::limits::Admission;

/// Most questions that are open at once. More than these fit into no state, and a client's list may be longer.
const MAX_ASKED: usize = 4_096;

/// State shared by a handler's `Ask` futures and its runner: journal, open questions, running `once` steps.
pub(crate) struct RoundState {
    inner: Mutex<Inner>,
    capabilities: ClientCapabilities,
    questions: Delivery,
    reentry: Option<Arc<Reentry>>,
    /// Knows whether the server wants flows to move on to another instance.
    admission: Arc<Admission>,
    trace: Option<Arc<Trace>>,
    /// The task that the round is run in, from when it is one.
    keeper: OnceLock<Arc<dyn Keeper>>,
}

struct Inner {
    flow: FlowId,
    round: u32,
    journal: Journal,
    asked: Vec<Asked>,
    /// Questions that are shown while the round continues, in a task.
    shown: Shown,
    /// Keys of live questions that were not answered, and the reasons.
    unanswered: Vec<(Cow<'static, str>, String)>,
    /// `inputResponses` of the request, for handlers that take them by key alone.
    unasked: Option<Box<RawValue>>,
    by_key_alone: bool,
    /// Keys of running steps.
    running: Vec<String>,
    /// Keys of running resolvers, each with those of all that it depends on, its own among them.
    resolving: Vec<(&'static str, Arc<[&'static str]>)>,
    /// Answers that resolvers have read in this round: their keys, each with that of its resolver.
    read: HashMap<Cow<'static, str>, &'static str>,
    /// Keys that the handler is parked at, to continue elsewhere or later.
    parked: Vec<(Branch, String)>,
    /// Keys of checkpoints that this run has passed without parking.
    passed: HashSet<String>,
    /// Threads that are polling a step right now.
    stepping: Vec<ThreadId>,
    /// True once a step has begun in this round.
    stepped: bool,
    /// Number of steps of the task, once one has been begun here.
    steps: Option<usize>,
    /// True if the round has ended without a result and was progress.
    advanced: bool,
    /// Keys of answers that fit their form and not the handler's type, and the reasons.
    unfit: Vec<(Cow<'static, str>, Unusable)>,
    /// By hand: the round ends with `requestState` alone once the handler has returned.
    handed_off: bool,
    /// The handler's first mistake.
    misuse: Option<AskError>,
    closed: bool,
    /// Whether the call can become a task, and is to.
    detachment: Detachment,
    wakers: Vec<Waker>,
    /// Waker of the runner, which must look at the state again when it changes from elsewhere.
    runner: Option<Waker>,
}

impl Inner {
    /// Returns whether this run uses a key that the journal does not know of yet.
    fn uses(&self, key: &str) -> bool {
        self.asked.iter().any(|asked| asked.key == *key)
            || self.running.iter().chain(self.parked.iter().map(|(_, key)| key)).any(|other| other == key)
            || self.resolving.iter().any(|(other, _)| *other == key)
            || self.passed.contains(key)
    }

    /// Records that a key is used twice, and returns the error. The round ends with it even if the handler ignores it and
    /// waits for something else.
    fn twice(&mut self, key: &str) -> AskError {
        let error = AskError::Misuse(format!(
            "the key `{key}` is used twice in one flow: give each question, step and resolver its own"
        ));
        self.misuse.get_or_insert(error).clone()
    }

    /// Returns the mistake of a round that has asked too much: nothing more is looked up for it.
    fn crowded(&self) -> Option<AskError> {
        if self.asked.len() < MAX_ASKED { None } else { self.misuse.clone() }
    }

    /// Records a question, unless there are too many of them in this round.
    fn take_up(&mut self, asked: Asked) -> Result<(), AskError> {
        if self.asked.len() >= MAX_ASKED {
            let error = AskError::Misuse(format!(
                "more than {MAX_ASKED} questions in one round: ask for less at once, or for a list"
            ));
            return Err(self.misuse.get_or_insert(error).clone());
        }
        self.asked.push(asked);
        Ok(())
    }
}

/// A question recorded in the round's state.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) key: Cow<'static, str>,
    pub(crate) pin: Pin,
    pub(crate) request: InputRequest,
    pub(crate) valid_for: Option<Duration>,
    branch: Branch,
    /// True if a future waits for it. By hand none does: the round ends where the handler returns.
    waits: bool,
}

impl RoundState {
    /// Creates the state of a round.
    pub(crate) fn new(
        (flow, round): (FlowId, u32),
        journal: Journal,
        (capabilities, questions, reentry): (ClientCapabilities, Delivery, Option<Arc<Reentry>>),
        (admission, trace): (&Arc<Admission>, Option<&Arc<Trace>>),
    ) -> Self {
        let inner = Inner {
            flow,
            round,
            journal,
            asked: Vec::new(),
            shown: Shown::default(),
            unanswered: Vec::new(),
            unasked: None,
            by_key_alone: false,
            running: Vec::new(),
            resolving: Vec::new(),
            read: HashMap::new(),
            parked: Vec::new(),
            passed: HashSet::new(),
            stepping: Vec::new(),
            stepped: false,
            steps: None,
            advanced: false,
            unfit: Vec::new(),
            handed_off: false,
            misuse: None,
            closed: false,
            detachment: Detachment::Impossible,
            wakers: Vec::new(),
            runner: None,
        };
        Self {
            inner: Mutex::new(inner),
            capabilities,
            questions,
            reentry,
            admission: Arc::clone(admission),
            trace: trace.cloned(),
            keeper: OnceLock::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn traced(&self, branch: Branch, key: &str) {
        if let Some(trace) = &self.trace {
            trace.key(branch, key);
        }
    }

    fn open(&self) -> Result<MutexGuard<'_, Inner>, AskError> {
        let inner = self.lock();
        if inner.closed { Err(AskError::Closed) } else { Ok(inner) }
    }

    pub(crate) fn flow(&self) -> FlowId {
        self.lock().flow
    }

    /// Returns the number of rounds before this one.
    pub(crate) fn round(&self) -> u32 {
        self.lock().round
    }

    /// Returns whether the flow is to move to another instance. It can where the client retries: a call of a handshake era
    /// stays where it is, whether or not its client can be asked.
    pub(crate) fn is_moving(&self) -> bool {
        matches!(self.questions, Delivery::EndRound) && self.admission.is_moving()
    }

    /// Takes the record of the notifications that earlier rounds have sent.
    pub(crate) fn take_sent(&self) -> Option<Box<SentNotifications>> {
        self.lock().journal.take_sent()
    }

    /// Inline: returns the answer to a question as `read` reads it, or records the question. A key is used once a run.
    pub(crate) fn ask<T>(
        self: &Arc<Self>,
        branch: Branch,
        (question, valid_for): (&Question, Option<Duration>),
        read: impl FnOnce(&Settled<'_>) -> Result<T, Unusable>,
    ) -> Result<Option<T>, AskError> {
        let key = &question.key;
        self.traced(branch, key);
        let mut inner = self.open()?;
        if let Some(misuse) = inner.crowded() {
            return Err(misuse);
        }
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        let pin = inner.journal.pin(question);
        let mut problem = None;
        if let Some(found) = inner.journal.find(key) {
            if found.used {
                return Err(inner.twice(key));
            }
            let (place, was_answer) = (found.place, found.is_answer());
            if !was_answer && self.leave_for(key, "a question") {
                // What another version has stored stays as it is, and the worker drops the handler.
                return Ok(None);
            }
            match inner
                .journal
                .answer(place, question, pin)
                .and_then(|answer| answer.as_ref().map(read).transpose())
            {
                Ok(Some(value)) => {
                    inner.read.extend(branch.map(|resolver| (key.clone(), resolver)));
                    return Ok(Some(value));
                }
                // Another question under a kept key: its answer does not count, all others do (A6).
                Ok(None) if was_answer => self.changed(key),
                Ok(None) => {}
                // It breaks the form, or fits the form and not the handler's type.
                Err(unusable) => {
                    self.unfit(key, &unusable);
                    problem = Some(unusable.0);
                }
            }
            inner.journal.forget(key);
        }
        if let Some(index) = inner.unanswered.iter().position(|(unanswered, _)| unanswered == key) {
            let (key, reason) = inner.unanswered.swap_remove(index);
            return Err(AskError::Unanswered { key: key.into_owned(), reason });
        }
        let request = self.request(question, problem.as_deref())?;
        let sent = self.is_live().then(|| request.clone());
        inner.take_up(Asked { key: key.clone(), pin, request, valid_for, branch, waits: true })?;
        if let (Delivery::Live(live), Some(request)) = (&self.questions, sent) {
            let round: Weak<Self> = Arc::downgrade(self);
            live.ask(LiveQuestion { key: key.clone(), valid_for, round }, request);
        }
        Self::stir(inner);
        Ok(None)
    }

    /// By hand: returns the answer to a question as `read` reads it, if there is one that fits.
    pub(crate) fn look_up<T>(
        &self,
        question: &Question,
        read: impl FnOnce(&Settled<'_>) -> Result<T, Unusable>,
    ) -> Result<Option<T>, AskError> {
        let key = &question.key;
        let mut inner = self.open()?;
        let pin = inner.journal.pin(question);
        if inner.by_key_alone && inner.journal.peek(key).is_none() {
            let Inner { journal, unasked, .. } = &mut *inner;
            let given = unasked.as_deref().and_then(|raw| read_responses(raw).ok()).unwrap_or_default();
            if let Some((_, answer)) = given.iter().find(|(name, _)| name == key) {
                journal.remember(Kind::Given, key, Some(pin), answer.get());
            }
        }
        let Some(place) = inner.journal.peek(key).map(|found| found.place) else { return Ok(None) };
        // An answer that breaks its form stays where it is: `put` finds it, and says why the question is asked again.
        let Ok(Some(answer)) = inner.journal.answer(place, question, pin) else { return Ok(None) };
        match read(&answer) {
            Ok(value) => Ok(Some(value)),
            Err(unusable) => {
                inner.journal.forget(key);
                inner.unfit.push((key.clone(), unusable));
                Ok(None)
            }
        }
    }

    /// By hand: records a question, whether or not it has been answered before.
    pub(crate) fn put(&self, question: &Question) -> Result<(), AskError> {
        let key = &question.key;
        let mut inner = self.open()?;
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        let pin = inner.journal.pin(question);
        let found = inner.journal.peek(key).map(|found| (found.place, found.is_answer()));
        if found.is_some_and(|(_, was_answer)| !was_answer) && self.leave_for(key, "a question") {
            return Err(AskError::Closed);
        }
        let place = found.map(|(place, _)| place);
        let problem = place.and_then(|place| inner.journal.answer(place, question, pin).err());
        let unfit = inner.unfit.iter().position(|(unfit, _)| unfit == key);
        let problem = problem.or_else(|| unfit.map(|index| inner.unfit.swap_remove(index).1));
        inner.journal.forget(key);
        if let Some(unusable) = &problem {
            self.unfit(key, unusable);
        }
        let request = self.request(question, problem.as_ref().map(|unusable| unusable.0.as_str()))?;
        inner.take_up(Asked { key: key.clone(), pin, request, valid_for: None, branch: None, waits: false })
    }

    /// Wakes the runner to look at the state again. A handler that asks where it is polled does not need this; one that
    /// waits for a spawned task that asks does, because nothing else wakes the runner.
    fn stir(mut inner: MutexGuard<'_, Inner>) {
        let runner = inner.runner.take();
        drop(inner);
        runner.into_iter().for_each(Waker::wake);
    }

    /// Keeps the waker of what waits under a key; fails once the round is over, and inside a step, which the round
    /// in turn would wait for.
    pub(crate) fn wait(&self, key: &str, cx: &mut Context<'_>) -> Result<(), AskError> {
        let mut inner = self.open()?;
        if !inner.stepping.is_empty() && inner.stepping.contains(&thread::current().id()) {
            return Err(AskError::Misuse(format!(
                "`{key}` is awaited inside a step, which has to end before a round can: await it before or after"
            )));
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.wakers.push(cx.waker().clone());
        }
        Ok(())
    }

    /// Removes a question that no future waits for any more.
    pub(crate) fn withdraw(&self, key: &str) {
        let mut inner = self.lock();
        let Some(index) = inner.asked.iter().position(|asked| asked.key == key) else { return };
        // In order: `inputRequests` lists questions as they were asked.
        inner.asked.remove(index);
        if self.keeper().is_some() {
            inner.withdraw_shown(key);
            Self::stir(inner);
        } else {
            drop(inner);
        }
        if let Delivery::Live(live) = &self.questions {
            live.withdraw(key);
        }
    }

    /// By hand: ends the round with nothing to ask, once the handler has returned.
    pub(crate) fn hand_off(&self) {
        self.lock().handed_off = true;
    }

    pub(crate) fn set_state(&self, json: &str) {
        self.lock().journal.set_state(json);
    }

    pub(crate) fn state(&self) -> Option<String> {
        self.lock().journal.state().map(str::to_owned)
    }

    /// Keeps the `inputResponses` of the request, for a handler that may take them by key alone.
    pub(crate) fn keep_unasked(&self, responses: Option<&RawValue>) {
        self.lock().unasked = responses.map(RawValue::to_owned);
    }

    /// By hand: returns the `inputResponses` of the request.
    pub(crate) fn responses(&self) -> InputResponses {
        let inner = self.lock();
        let given = inner.unasked.as_deref().and_then(|raw| read_responses(raw).ok()).unwrap_or_default();
        // The first of two counts, so the last to be collected.
        given.iter().rev().map(|(key, answer)| (key.to_string(), Raw::from(*answer))).collect()
    }

    pub(crate) fn by_key_alone(&self) {
        self.lock().by_key_alone = true;
    }

    /// Records a mistake of the handler, which ends its call. Returns whether the future that made it should wait for
    /// that end, so that the handler cannot swallow the mistake. Inside a step it should not: the step would have to end
    /// first.
    pub(crate) fn misused(&self, error: &AskError) -> bool {
        let mut inner = self.lock();
        inner.misuse.get_or_insert_with(|| error.clone());
        inner.running.is_empty()
    }

    /// Closes the round. Futures that outlive it are woken and fail, so that none hangs.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        wake_all(inner);
    }
}

fn remove<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(index) = list.iter().position(|other| other == item) {
        list.swap_remove(index);
    }
}

fn wake_all(mut inner: MutexGuard<'_, Inner>) {
    let wakers = std::mem::take(&mut inner.wakers);
    drop(inner);
    wakers.into_iter().for_each(Waker::wake);
}

impl fmt::Debug for RoundState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundState")
            .field("flow", &self.flow())
            .field("round", &self.round())
            .finish_non_exhaustive()
    }
}
