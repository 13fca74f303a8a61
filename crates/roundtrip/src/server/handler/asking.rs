//! [`Asking`]: a question as a future.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use roundtrip_core::round::read::{Read, answered};
use roundtrip_core::round::{Answered, Question, Settled};

use crate::server::round::{AskError, Branch, RoundState};

/// A question: a future of its answer, whose options are chained before it is awaited. Dropping it withdraws the
/// question.
///
/// `T` is the type of the answer. `O` is the output: a `T`, an `Option<T>` after [`optional`](Self::optional), or an
/// `Answered<T>` after [`answered`](Self::answered).
#[must_use = "a question is asked when it is awaited"]
pub struct Asking<T, O = T> {
    round: Arc<RoundState>,
    branch: Branch,
    question: Question,
    valid_for: Option<Duration>,
    /// The question is recorded in the round's state.
    recorded: bool,
    read: Read<T>,
    output: Output<T, O>,
}

/// Conversion of an answer or a refusal into the output of a question, given its key.
type Output<T, O> = fn(Answered<T>, &str) -> Result<O, AskError>;

impl<T> Asking<T> {
    pub(super) fn new(round: &Arc<RoundState>, branch: Branch, question: Question, read: Read<T>) -> Self {
        let (round, output) = (Arc::clone(round), accepted);
        Self { round, branch, question, valid_for: None, recorded: false, read, output }
    }
}

impl<T, O> Asking<T, O> {
    fn with_output<P>(mut self, output: Output<T, P>) -> Asking<T, P> {
        let question = Question::roots("");
        let question = std::mem::replace(&mut self.question, question);
        let (round, branch) = (Arc::clone(&self.round), self.branch);
        let (valid_for, read) = (self.valid_for, self.read);
        // Asked already, it stays asked: it is not withdrawn with the old value.
        let recorded = std::mem::take(&mut self.recorded);
        Asking { round, branch, question, valid_for, recorded, read, output }
    }

    /// Gives the three-way answer: accepted, declined or cancelled.
    pub fn answered(self) -> Asking<T, Answered<T>> {
        self.with_output(|answered, _| Ok(answered))
    }

    /// Gives `None` where the user refused.
    pub fn optional(self) -> Asking<T, Option<T>> {
        self.with_output(|answered, _| Ok(answered.accepted()))
    }

    /// Keeps the answer although the wording changes from round to round, as long as `identity` does not. A form's
    /// schema and the origin of a URL have to stay the same too.
    pub fn identity(mut self, identity: impl Into<Cow<'static, str>>) -> Self {
        self.question.identity = Some(identity.into());
        self
    }

    /// Sets how long the answer may take, in place of the server's default: to the second, rounded up. Of questions that are
    /// asked together the longest time counts. See [`TokenLimits::clock_skew`](crate::seal::TokenLimits::clock_skew) for instances
    /// whose clocks differ.
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.valid_for = Some(duration);
        self
    }

    /// Returns the answer, if the journal has it; else records the question in the round's state.
    fn ask(&mut self) -> Result<Option<Answered<T>>, AskError> {
        let read = |answer: &Settled<'_>| answered(self.read, &self.question, answer);
        let answered = self.round.ask(self.branch, (&self.question, self.valid_for), read)?;
        self.recorded = answered.is_none();
        Ok(answered)
    }
}

/// Returns the value of an answer; a refusal is an error.
pub(super) fn accepted<T>(answered: Answered<T>, key: &str) -> Result<T, AskError> {
    match answered {
        Answered::Accepted(value) => Ok(value),
        Answered::Declined => Err(AskError::Declined { key: key.to_owned() }),
        Answered::Cancelled => Err(AskError::Cancelled { key: key.to_owned() }),
    }
}

impl<T, O> Future for Asking<T, O> {
    type Output = Result<O, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if !this.recorded || this.round.is_answered(&this.question.key) {
            match this.ask() {
                Ok(None) => {}
                Ok(Some(answered)) => return Poll::Ready((this.output)(answered, &this.question.key)),
                Err(error @ AskError::Misuse(_)) if this.round.misused(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        // The wait ends with the round, which drops the handler (see `Runner`), or with the answer to a live question.
        let key = &this.question.key;
        let waits =
            if this.recorded { this.round.wait_for_answer(key, cx) } else { this.round.wait(key, cx) };
        match waits {
            Ok(()) => Poll::Pending,
            Err(closed) => Poll::Ready(Err(closed)),
        }
    }
}

impl<T, O> Drop for Asking<T, O> {
    fn drop(&mut self) {
        if self.recorded {
            self.round.withdraw(&self.question.key);
        }
    }
}

impl<T, O> fmt::Debug for Asking<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("question", &self.question).finish_non_exhaustive()
    }
}
