//! [`Asking`]: a question as a future.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use roundtrip_core::form::Form;
use roundtrip_core::round::{Answer, Answered, Question, QuestionKind, Settled, Unusable};
use roundtrip_core::wire::{CreateMessageResult, JsonObject, Root};

use serde_json::Value;

use crate::server::round::{AskError, RoundState};

/// The field that [`Ask::confirm`](super::Ask::confirm) asks for.
pub(super) const CONFIRM: &str = "confirm";

/// Reader of an answer that was not refused, into the handler's type.
pub trait Read: Send + 'static {
    /// The typed answer.
    type Value: Send;
    /// Reads the answer.
    ///
    /// # Errors
    /// Fails if the answer fits its question and not the type: a number out of its range, or a check of the author's own
    /// form beyond its schema. The question is asked again, with the reason.
    fn read(question: &Question, answer: &Settled<'_>) -> Result<Self::Value, Unusable>;
}

/// Reader of a form.
#[derive(Debug)]
pub struct FormOf<T>(PhantomData<fn() -> T>);

impl<T: Form> Read for FormOf<T> {
    type Value = T;
    fn read(_: &Question, answer: &Settled<'_>) -> Result<T, Unusable> {
        match answer {
            Settled::Accepted(packed) => T::recall(packed).map_err(|problems| Unusable(problems.to_string())),
            _ => Err(of_another_kind()),
        }
    }
}

macro_rules! readers {
    ($($(#[$doc:meta])* $reader:ident -> $value:ty: $pattern:pat => $read:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $reader {}

            impl Read for $reader {
                type Value = $value;
                fn read(question: &Question, answer: &Settled<'_>) -> Result<$value, Unusable> {
                    match answer.answer(question)? {
                        $pattern => $read.ok_or_else(of_another_kind),
                        _ => Err(of_another_kind()),
                    }
                }
            }
        )*
    };
}

readers! {
    /// Reader of a yes or a no.
    YesOrNo -> bool: Answer::Accepted(content) => content.get(CONFIRM).and_then(Value::as_bool);
    /// Reader of a consent.
    Consent -> (): Answer::Accepted(_) => Some(());
    /// Reader of the model's message. Deprecated (SEP-2577).
    Message -> CreateMessageResult: Answer::Message(message) => Some(*message);
    /// Reader of the client's roots. Deprecated (SEP-2577).
    Roots -> Vec<Root>: Answer::Roots(roots) => Some(roots);
    /// Reader of a form as a JSON object.
    Content -> JsonObject: Answer::Accepted(content) => Some(content);
}

fn of_another_kind() -> Unusable {
    Unusable("it is an answer to another kind of question".to_owned())
}

/// Conversion of refusals into the output of a question.
pub trait Refusals: Send + 'static {
    /// Output of the question.
    type Output<T>;
    /// Turns an answer, or a refusal, into the output.
    fn output<T>(answered: Answered<T>, key: &str) -> Result<Self::Output<T>, AskError>;
}

/// Refusals as errors.
#[derive(Debug)]
pub enum Plain {}
/// Refusals as `None`.
#[derive(Debug)]
pub enum Optional {}
/// Refusals as [`Answered`]: declined and cancelled are told apart.
#[derive(Debug)]
pub enum ThreeWay {}

impl Refusals for Plain {
    type Output<T> = T;
    fn output<T>(answered: Answered<T>, key: &str) -> Result<T, AskError> {
        match answered {
            Answered::Accepted(value) => Ok(value),
            Answered::Declined => Err(AskError::Declined { key: key.to_owned() }),
            Answered::Cancelled => Err(AskError::Cancelled { key: key.to_owned() }),
        }
    }
}

impl Refusals for Optional {
    type Output<T> = Option<T>;
    fn output<T>(answered: Answered<T>, _: &str) -> Result<Option<T>, AskError> {
        match answered {
            Answered::Accepted(value) => Ok(Some(value)),
            Answered::Declined | Answered::Cancelled => Ok(None),
        }
    }
}

impl Refusals for ThreeWay {
    type Output<T> = Answered<T>;
    fn output<T>(answered: Answered<T>, _: &str) -> Result<Answered<T>, AskError> {
        Ok(answered)
    }
}

/// A question: a future whose options are chained before it is awaited. Dropping it withdraws the question.
#[must_use = "a question is asked when it is awaited"]
pub struct Asking<R, F = Plain> {
    round: Arc<RoundState>,
    question: Question,
    valid_for: Option<Duration>,
    /// The question is recorded in the round's state.
    recorded: bool,
    state: PhantomData<fn() -> (R, F)>,
}

impl<R: Read, F: Refusals> Asking<R, F> {
    pub(crate) fn new(round: &Arc<RoundState>, question: Question) -> Self {
        Self { round: Arc::clone(round), question, valid_for: None, recorded: false, state: PhantomData }
    }

    fn seen<G: Refusals>(mut self) -> Asking<R, G> {
        let question = Question::new("", QuestionKind::Roots);
        let question = std::mem::replace(&mut self.question, question);
        let mut seen = Asking::new(&self.round, question);
        seen.valid_for = self.valid_for;
        seen
    }

    /// Gives the three-way answer: accepted, declined or cancelled.
    pub fn answered(self) -> Asking<R, ThreeWay> {
        self.seen()
    }

    /// Gives `None` where the user refused.
    pub fn optional(self) -> Asking<R, Optional> {
        self.seen()
    }

    /// Keeps the answer although the wording changes from round to round, as long as `identity` does not. A form's
    /// schema and the origin of a URL have to stay the same too.
    pub fn identity(mut self, identity: impl Into<Cow<'static, str>>) -> Self {
        self.question.identity = Some(identity.into());
        self
    }

    /// Sets how long the answer may take, in place of the server's default.
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.valid_for = Some(duration);
        self
    }

    /// Returns the answer, if the journal has it; else records the question in the round's state.
    fn ask(&mut self) -> Result<Option<Answered<R::Value>>, AskError> {
        let read = |answer: &Settled<'_>| match answer {
            Settled::Declined => Ok(Answered::Declined),
            Settled::Cancelled => Ok(Answered::Cancelled),
            accepted @ Settled::Accepted(_) => R::read(&self.question, accepted).map(Answered::Accepted),
        };
        let answered = self.round.ask(&self.question, self.valid_for, read)?;
        self.recorded = answered.is_none();
        Ok(answered)
    }
}

impl<R: Read, F: Refusals> Future for Asking<R, F> {
    type Output = Result<F::Output<R::Value>, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if !this.recorded || this.round.is_answered(&this.question.key) {
            match this.ask() {
                Ok(None) => {}
                Ok(Some(answered)) => return Poll::Ready(F::output(answered, &this.question.key)),
                Err(error @ AskError::Misuse(_)) if this.round.misused(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        // The wait ends with the round, which drops the handler (see `Runner`), or with the answer to a live question.
        match this.round.wait(&this.question.key, cx) {
            Ok(()) => Poll::Pending,
            Err(closed) => Poll::Ready(Err(closed)),
        }
    }
}

impl<R, F> Drop for Asking<R, F> {
    fn drop(&mut self) {
        if self.recorded {
            self.round.withdraw(&self.question.key);
        }
    }
}

impl<R, F> fmt::Debug for Asking<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("question", &self.question).finish_non_exhaustive()
    }
}
