//! The table: what a running handler has asked, and what it already knows.

mod guards;
mod steps;
mod suspend;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use roundtrip_core::round::{Found, Journal, Kind, Pin, Question, Settled, Unusable, read_responses};
use roundtrip_core::seal::FlowId;
use roundtrip_core::wire::{ClientCapabilities, ErrorObject, InputRequest};
use serde_json::value::RawValue;

pub(crate) use self::guards::Parked;
pub(crate) use self::steps::Begun;
pub(crate) use self::suspend::{Suspended, Suspension};
use super::error::AskError;
use super::live::Delivery;
use super::trace::Trace;
use crate::server::limits::Admission;

/// The most questions that are open at once. More than these fit into no state, and a client's list may be longer.
const MAX_ASKED: usize = 4_096;

/// One handler's questions and answers.
pub(crate) struct RoundState {
    inner: Mutex<Inner>,
    pub(crate) capabilities: ClientCapabilities,
    questions: Delivery,
    /// Whether the server wants flows to move on to another instance.
    traffic: Arc<Admission>,
    trace: Option<Arc<Trace>>,
}

struct Inner {
    flow: FlowId,
    round: u32,
    journal: Journal,
    asked: Vec<Asked>,
    /// The keys of questions that went out and have no answer, and why.
    unanswered: Vec<(Cow<'static, str>, String)>,
    /// Answers that came with the request, for handlers that take them by key alone.
    unasked: Option<Box<RawValue>>,
    by_key_alone: bool,
    /// The keys of steps that are running.
    running: Vec<String>,
    /// The keys of places where the handler stands and wants to go on elsewhere, or later.
    parked: Vec<String>,
    /// The keys of places that this run has come by without stopping.
    passed: HashSet<String>,
    /// Which threads are polling a step right now.
    stepping: Vec<ThreadId>,
    /// Whether a step has begun in this round.
    stepped: bool,
    /// Answers that fit their form and not the handler's type: their keys, and why.
    unfit: Vec<(Cow<'static, str>, Unusable)>,
    /// By hand: the handler wants to go on elsewhere, or later, once it has returned.
    handed_off: bool,
    /// The handler's first mistake.
    misuse: Option<AskError>,
    closed: bool,
    wakers: Vec<Waker>,
    /// Who runs the handler, and must look at the table again when it changes from elsewhere.
    runner: Option<Waker>,
}

impl Inner {
    /// Whether this run uses a key that the journal does not know of yet.
    fn uses(&self, key: &str) -> bool {
        self.asked.iter().any(|asked| asked.key == *key)
            || self.running.iter().chain(&self.parked).any(|other| other == key)
            || self.passed.contains(key)
    }

    /// A mistake that is told now, and again if the handler waits for something else and lets it lie.
    fn twice(&mut self, key: &str) -> AskError {
        let error = AskError::Misuse(format!(
            "the key `{key}` is used twice in one flow: give each question and step its own"
        ));
        self.misuse.get_or_insert(error).clone()
    }

    /// Returns the mistake of a round that has asked too much: nothing more is looked up for it.
    fn crowded(&self) -> Option<AskError> {
        if self.asked.len() < MAX_ASKED { None } else { self.misuse.clone() }
    }

    /// Takes up a question, unless there are too many of them in this round.
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

/// A question on the table.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) key: Cow<'static, str>,
    pub(crate) pin: Pin,
    pub(crate) request: InputRequest,
    pub(crate) valid_for: Option<Duration>,
    /// A future waits for it. By hand nothing waits: the round ends where the handler returns.
    waits: bool,
}

impl RoundState {
    /// A table for a round.
    pub(crate) fn new(
        (flow, round): (FlowId, u32),
        journal: Journal,
        (capabilities, questions): (ClientCapabilities, Delivery),
        (traffic, trace): (&Arc<Admission>, Option<&Arc<Trace>>),
    ) -> Self {
        let inner = Inner {
            flow,
            round,
            journal,
            asked: Vec::new(),
            unanswered: Vec::new(),
            unasked: None,
            by_key_alone: false,
            running: Vec::new(),
            parked: Vec::new(),
            passed: HashSet::new(),
            stepping: Vec::new(),
            stepped: false,
            unfit: Vec::new(),
            handed_off: false,
            misuse: None,
            closed: false,
            wakers: Vec::new(),
            runner: None,
        };
        Self {
            inner: Mutex::new(inner),
            capabilities,
            questions,
            traffic: Arc::clone(traffic),
            trace: trace.cloned(),
        }
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
        // Where the handler waits for its answers there is nowhere to go on but here.
        !self.goes_out() && self.traffic.is_moving()
    }

    /// Inline: what `read` makes of the answer to a question, or the question on the table. A key is used once a run.
    pub(crate) fn ask<T>(
        &self,
        question: &Question,
        valid_for: Option<Duration>,
        read: impl FnOnce(&Settled<'_>) -> Result<T, Unusable>,
    ) -> Result<Option<T>, AskError> {
        let key = &question.key;
        self.traced(key);
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
            let place = found.place;
            match inner
                .journal
                .answer(place, question, pin)
                .and_then(|answer| answer.as_ref().map(read).transpose())
            {
                Ok(Some(value)) => return Ok(Some(value)),
                // Another question under a kept key: its answer does not count, all others do (A6).
                Ok(None) => {}
                // It breaks the form, or fits the form and not the handler's type.
                Err(unusable) => problem = Some(unusable.0),
            }
            inner.journal.forget(key);
        }
        if let Some(index) = inner.unanswered.iter().position(|(unanswered, _)| unanswered == key) {
            let (key, reason) = inner.unanswered.swap_remove(index);
            return Err(AskError::Unanswered { key: key.into_owned(), reason });
        }
        let request = self.request(question, problem.as_deref())?;
        let live = self.goes_out().then(|| request.clone());
        inner.take_up(Asked { key: key.clone(), pin, request, valid_for, waits: true })?;
        if let (Delivery::Live(line), Some(request)) = (&self.questions, live) {
            line.ask(key.clone(), request);
        }
        Self::stir(inner);
        Ok(None)
    }

    /// By hand: what `read` makes of the answer to a question, if there is one that fits.
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

    /// By hand: puts a question on the table, whatever has been answered.
    pub(crate) fn put(&self, question: &Question) -> Result<(), AskError> {
        let key = &question.key;
        let mut inner = self.open()?;
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        let pin = inner.journal.pin(question);
        let place = inner.journal.peek(key).map(|found| found.place);
        let problem = place.and_then(|place| inner.journal.answer(place, question, pin).err());
        let unfit = inner.unfit.iter().position(|(unfit, _)| unfit == key);
        let problem = problem.or_else(|| unfit.map(|index| inner.unfit.swap_remove(index).1));
        inner.journal.forget(key);
        let request = self.request(question, problem.as_ref().map(|unusable| unusable.0.as_str()))?;
        inner.take_up(Asked { key: key.clone(), pin, request, valid_for: None, waits: false })
    }

    /// A question as it goes out, if the client can be asked that.
    fn request(&self, question: &Question, problem: Option<&str>) -> Result<InputRequest, AskError> {
        if let Delivery::Refuse(why) = self.questions {
            let error = why(&question.to_request(problem));
            return Err(AskError::CannotAsk { key: question.key.to_string(), error });
        }
        let needs = question.needs();
        if !self.capabilities.covers(&needs) {
            let error = ErrorObject::missing_capability(&needs);
            return Err(AskError::CannotAsk { key: question.key.to_string(), error });
        }
        Ok(question.to_request(problem))
    }

    /// Lets whoever runs the handler look at the table again. When a handler asks where it is polled this is for
    /// nothing; when it waits for a spawned task that asks, nobody else would tell.
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

    /// Takes a question off the table that nobody waits for any more.
    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().asked.retain(|asked| asked.key != key);
        if let Delivery::Live(line) = &self.questions {
            line.withdraw(key);
        }
    }

    fn goes_out(&self) -> bool {
        matches!(self.questions, Delivery::Live(_))
    }

    /// Whether a question that went out has come back, with an answer or without.
    pub(crate) fn is_answered(&self, key: &str) -> bool {
        self.goes_out() && !self.lock().asked.iter().any(|asked| asked.key == key)
    }

    /// A question that went out comes back: with its answer, or with why there is none.
    pub(crate) fn answer(&self, key: &str, answer: Result<&str, String>) {
        let mut inner = self.lock();
        let Some(index) = inner.asked.iter().position(|asked| asked.key == key) else { return };
        let asked = inner.asked.swap_remove(index);
        match answer {
            Ok(json) => inner.journal.give(key, asked.pin, json),
            Err(reason) => inner.unanswered.push((asked.key, reason)),
        }
        wake_all(inner);
    }

    /// Passes a checkpoint, or stops at it: the round ends there, with nothing to ask, unless the guard is dropped before.
    pub(crate) fn checkpoint(self: &Arc<Self>, key: &str) -> Result<Option<Parked>, AskError> {
        let moving = self.is_moving();
        let mut inner = self.open()?;
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        match inner.journal.find(key) {
            None => drop(inner.passed.insert(key.to_owned())),
            Some(Found { kind: Kind::Passed, used: false, .. }) => return Ok(None),
            Some(_) => return Err(inner.twice(key)),
        }
        if !moving {
            return Ok(None);
        }
        inner.journal.remember(Kind::Passed, key, None, "");
        Ok(Some(self.parked(inner, key)))
    }

    /// Ends the round here, with nothing to ask, unless the guard is dropped before.
    pub(crate) fn park(self: &Arc<Self>, key: &str) -> Parked {
        self.parked(self.lock(), key)
    }

    fn parked(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>, key: &str) -> Parked {
        inner.parked.push(key.to_owned());
        Self::stir(inner);
        Parked { table: Arc::clone(self), key: key.to_owned() }
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

    /// Keeps the answers that came with the request, for a handler that may take them by key alone.
    pub(crate) fn keep_unasked(&self, responses: Option<&RawValue>) {
        self.lock().unasked = responses.map(RawValue::to_owned);
    }

    pub(crate) fn by_key_alone(&self) {
        self.lock().by_key_alone = true;
    }

    /// A mistake of the handler ends its call, and is not for the handler to swallow: whoever made it waits for that.
    /// Inside a step there is nothing to wait for, because the step would have to end first.
    pub(crate) fn misused(&self, error: &AskError) -> bool {
        let mut inner = self.lock();
        inner.misuse.get_or_insert_with(|| error.clone());
        inner.running.is_empty()
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

impl fmt::Debug for RoundState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundState")
            .field("flow", &self.flow())
            .field("round", &self.round())
            .finish_non_exhaustive()
    }
}
