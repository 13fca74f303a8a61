//! Requests of one call to its client that await a response.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use roundtrip_core::wire::{InputRequest, InputRequests, Raw, encode_cancelled};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::question;
use super::session::{Session, Sink, Weight};
use crate::lock::lock;
use crate::server::{AskKind, CannotAsk, LiveQuestion, LiveQuestions, YEAR};

/// Most times that a question is asked again because its answer does not fit.
pub(super) const AGAIN: u32 = 10;

/// The answer to a question, or the reason why there is none.
pub(super) type Answer = Result<Raw, String>;

/// The open questions of one call. They are cancelled when it is dropped.
pub(super) struct Outstanding(Arc<Questions>);

/// Register of a call's open questions: its handler adds and withdraws them, its task sends them, and responses find
/// them by the id they were sent under.
pub(super) struct Questions {
    session: Arc<Session>,
    sink: Arc<dyn Sink>,
    /// Task that asks.
    task: Option<String>,
    register: Mutex<Register>,
    /// Notified when a question was added, or the call has to be given up.
    changed: Notify,
    /// Answers to questions of a task, by their keys.
    answers: Mutex<Vec<(String, Answer)>>,
    /// Notified when there are some.
    answered: Notify,
}

#[derive(Default)]
struct Register {
    open: Vec<Open>,
    /// Number of times that each key was asked in this round of the handler.
    asked: HashMap<String, u32>,
    /// Times that the handler has asked with no other question open.
    times: u32,
    given_up: Option<String>,
}

/// A question that awaits its answer.
struct Open {
    key: String,
    status: Status,
    within: Duration,
    until: Instant,
    answered: Box<dyn FnOnce(Answer) + Send>,
}

enum Status {
    ToSend(Box<InputRequest>),
    /// Sent under this id.
    Sent(i64),
}

impl Outstanding {
    pub(super) fn new(session: &Arc<Session>, sink: &Arc<dyn Sink>, task: Option<String>) -> Self {
        Self(Arc::new(Questions {
            task,
            session: Arc::clone(session),
            sink: Arc::clone(sink),
            register: Mutex::default(),
            changed: Notify::new(),
            answers: Mutex::default(),
            answered: Notify::new(),
        }))
    }

    /// Returns the transport of live questions for the handler.
    pub(super) fn live(&self) -> Arc<dyn LiveQuestions> {
        Arc::clone(&self.0) as _
    }

    /// Cancels all open questions, at the end of a round.
    pub(super) fn clear(&self, reason: &str) {
        let register = std::mem::take(&mut *self.0.register());
        register.open.iter().for_each(|open| self.0.cancel(open, reason));
    }

    /// Sends questions and ends those whose time is over, for as long as it is polled. Returns the reason to give the
    /// call up, if there is one.
    pub(super) async fn attend(&self) -> String {
        loop {
            self.0.send();
            let until = {
                let mut register = self.0.register();
                if let Some(why) = register.given_up.take() {
                    return why;
                }
                register.open.iter().map(|open| open.until).min()
            };
            let Some(until) = until else {
                self.0.changed.notified().await;
                continue;
            };
            tokio::select! {
                biased;
                () = self.0.changed.notified() => {}
                () = sleep_until(until) => self.0.expire(until),
            }
        }
    }

    /// Asks the questions that a task has open. Requests for others are cancelled, and what was asked before is not asked twice.
    pub(super) fn ask_open(&self, questions: InputRequests) {
        self.keep_only(|key| questions.contains_key(key));
        let mut known: HashSet<String> = self.0.register().open.iter().map(|open| open.key.clone()).collect();
        known.extend(lock(&self.0.answers).iter().map(|(key, _)| key.clone()));
        for (key, request) in questions.into_iter().filter(|(key, _)| !known.contains(key)) {
            let (own, register) = (key.clone(), Arc::downgrade(&self.0));
            self.0.add(key, request, self.within(), move |answer| {
                // The call may have ended.
                if let Some(questions) = register.upgrade() {
                    lock(&questions.answers).push((own, answer));
                    questions.answered.notify_one();
                }
            });
        }
    }

    /// Cancels the questions of a task that it has not open any more, and forgets their answers.
    pub(super) fn keep_only(&self, is_open: impl Fn(&str) -> bool) {
        while let Some(open) = self.0.take(|open| !is_open(&open.key)) {
            self.0.cancel(&open, "the answer is no longer needed");
        }
        lock(&self.0.answers).retain(|(key, _)| is_open(key));
    }

    /// Waits for answers to questions of a task. Malformed answers are left out: their questions are open as before.
    ///
    /// # Errors
    /// The key of a question without an answer, and the reason.
    pub(super) async fn answers(&self) -> Result<BTreeMap<String, Raw>, (String, String)> {
        loop {
            let answers = std::mem::take(&mut *lock(&self.0.answers));
            if !answers.is_empty() {
                let read = answers.into_iter().map(|(key, answer)| match answer {
                    Ok(answer) => Ok((key, answer)),
                    Err(reason) => Err((key, reason)),
                });
                let read = read.collect::<Result<BTreeMap<_, _>, _>>()?;
                return Ok(read.into_iter().filter(|(_, answer)| is_answer(answer)).collect());
            }
            tokio::select! {
                biased;
                () = self.0.answered.notified() => {}
                // These questions are not counted, so there is never a reason.
                _ = self.attend() => {}
            }
        }
    }

    /// Returns the time for answers to questions of a round that has ended: its state is sealed by now, and valid for no longer.
    fn within(&self) -> Duration {
        let session = &self.0.session;
        session.settings.answer_within.min(session.endpoint.inner().flows.valid_for)
    }

    /// Asks questions together, and waits for all answers. Malformed answers are left out: the handler asks for them
    /// again.
    ///
    /// # Errors
    /// The key of a question without an answer, and the reason.
    pub(super) async fn ask_all(
        &self,
        questions: InputRequests,
    ) -> Result<BTreeMap<String, Raw>, (String, String)> {
        let within = self.within();
        let (send, mut receive) = mpsc::unbounded_channel();
        for (key, request) in questions {
            let (answers, own) = (send.clone(), key.clone());
            // The receiver is gone if another question had no answer.
            let answered = move |answer| drop(answers.send((own, answer)));
            self.0.add(key, request, within, answered);
        }
        drop(send);
        let mut answers = BTreeMap::new();
        loop {
            let answered = tokio::select! {
                biased;
                answered = receive.recv() => answered,
                // These questions are not counted, so there is never a reason.
                _ = self.attend() => continue,
            };
            match answered {
                Some((key, Ok(answer))) if is_answer(&answer) => drop(answers.insert(key, answer)),
                Some((_, Ok(_))) => {}
                Some((key, Err(reason))) => return Err((key, reason)),
                None => return Ok(answers),
            }
        }
    }
}

/// Cancels the open questions of a call that ends.
impl Drop for Outstanding {
    fn drop(&mut self) {
        self.clear("the call has ended");
    }
}

impl Questions {
    fn register(&self) -> MutexGuard<'_, Register> {
        // Every change is made in one step.
        lock(&self.register)
    }

    fn add(
        &self,
        key: String,
        request: InputRequest,
        within: Duration,
        answered: impl FnOnce(Answer) + Send + 'static,
    ) {
        let status = Status::ToSend(Box::new(request));
        let until = Instant::now() + within;
        self.register().open.push(Open { key, status, within, until, answered: Box::new(answered) });
        self.changed.notify_one();
    }

    /// Sends the questions that were added.
    fn send(self: &Arc<Self>) {
        let mut unsent = Vec::new();
        for open in &mut self.register().open {
            if let Status::ToSend(_) = open.status {
                let id = self.session.expect_answer(self);
                if let Status::ToSend(request) = std::mem::replace(&mut open.status, Status::Sent(id)) {
                    unsent.push((id, request));
                }
            }
        }
        for (id, request) in unsent {
            match question::message(id, *request, self.session.negotiated.version, self.task.as_deref()) {
                Ok(message) => self.sink.send(message, Weight::Must),
                // A question that was not sent gets no answer: its waiter gets the error.
                Err(error) => self.session.answer(id, Err(error.to_string())),
            }
        }
    }

    /// Hands an answer to the question that was sent under an id.
    pub(super) fn settle(&self, id: i64, answer: Answer) {
        let taken = self.take(|open| matches!(open.status, Status::Sent(sent) if sent == id));
        if let Some(open) = taken {
            (open.answered)(answer);
        }
    }

    /// Ends the questions whose time is over.
    fn expire(&self, until: Instant) {
        while let Some(open) = self.take(|open| open.until <= until) {
            self.cancel(&open, "the time for an answer is over");
            let within = open.within;
            (open.answered)(Err(format!("the client did not answer within {within:?}")));
        }
    }

    fn take(&self, which: impl Fn(&Open) -> bool) -> Option<Open> {
        let mut register = self.register();
        let index = register.open.iter().position(which)?;
        // In order: those that were not sent yet are sent as they were asked.
        Some(register.open.remove(index))
    }

    /// Cancels a question, if it was sent.
    fn cancel(&self, open: &Open, reason: &str) {
        let Status::Sent(id) = open.status else { return };
        self.session.forget_answer(id);
        if let Ok(message) = encode_cancelled(&id.into(), Some(reason)) {
            self.sink.send(message, Weight::TakeBack);
        }
    }

    /// Counts a question; returns the reason for which it is not asked again, if there is one.
    fn too_often(&self, key: &str) -> Option<String> {
        let mut register = self.register();
        register.times += u32::from(register.open.is_empty());
        let asked = register.asked.entry(key.to_owned()).or_default();
        *asked += 1;
        if *asked > AGAIN + 1 {
            return Some(format!("`{key}` was asked {} times without an answer that fits", AGAIN + 1));
        }
        let most = self.session.endpoint.inner().flows.max_rounds;
        (register.times > most).then(|| format!("this call has asked {most} times without ending"))
    }
}

impl LiveQuestions for Questions {
    fn ask(&self, question: LiveQuestion, request: InputRequest) {
        if let Some(why) = self.too_often(question.key()) {
            self.register().given_up.get_or_insert(why);
            return self.changed.notify_one();
        }
        let key = question.key().to_owned();
        let within =
            question.valid_for().map_or(self.session.settings.answer_within, |within| within.min(YEAR));
        self.add(key, request, within, move |answer| match answer {
            Ok(answer) => question.answer(Ok(answer.get())),
            Err(reason) => question.answer(Err(reason)),
        });
    }

    fn withdraw(&self, key: &str) {
        if let Some(open) = self.take(|open| open.key == key) {
            self.cancel(&open, "the answer is no longer needed");
        }
    }

    fn carries(&self, kind: AskKind) -> Result<(), CannotAsk> {
        question::in_revision(kind, self.session.negotiated.version)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let register = self.register();
        f.debug_list().entries(register.open.iter().map(|open| &open.key)).finish()
    }
}

/// Returns whether a value can be an answer at all: an object, with a known `action` if it has any.
fn is_answer(answer: &Raw) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        action: Option<Value>,
    }
    let known = |action: &Value| ["accept", "decline", "cancel"].iter().any(|known| action == known);
    answer.get().starts_with('{')
        && answer.to::<Peek>().is_ok_and(|peek| peek.action.as_ref().is_none_or(known))
}
