//! Delivery of questions: at the end of the round, or by the transport while the handler waits.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use roundtrip_core::wire::{ErrorObject, InputRequest};

/// Delivery of questions that have no answer yet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// A question ends the round with `input_required`, and the client answers by a retry.
    #[default]
    EndRound,
    /// A question is sent to the client while the handler waits.
    Live(Arc<dyn LiveQuestions>),
    /// The client cannot be asked: the function makes the error that says what is missing.
    Refuse(fn(&InputRequest) -> ErrorObject),
}

/// Transport of one call's questions to the client while the handler waits.
///
/// Both methods are called while the handler is polled, so they must not block.
pub trait LiveQuestions: fmt::Debug + Send + Sync {
    /// Sends a question to the client. Its answer goes to [`LiveQuestion::answer`].
    fn ask(&self, question: LiveQuestion, request: InputRequest);

    /// Withdraws a question: the handler no longer waits for its answer.
    fn withdraw(&self, key: &str);
}

/// Round that takes the answers to its live questions.
pub(crate) trait TakesAnswers: Send + Sync {
    /// Takes the answer to a question, or the reason why there is none.
    fn answer(&self, key: &str, answer: Result<&str, String>);
}

/// A question that awaits its answer while the handler waits.
#[derive(Debug, Clone)]
pub struct LiveQuestion {
    pub(super) key: Cow<'static, str>,
    pub(super) valid_for: Option<Duration>,
    pub(super) round: Weak<dyn TakesAnswers>,
}

impl LiveQuestion {
    /// Returns the question's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns how long the answer may take, if the question says so.
    pub fn valid_for(&self) -> Option<Duration> {
        self.valid_for
    }

    /// Hands the answer to the handler: the result as JSON text, or the reason why there is none. If it does not fit, the
    /// question is asked again.
    pub fn answer(self, answer: Result<&str, String>) {
        if let Some(round) = self.round.upgrade() {
            round.answer(&self.key, answer);
        }
    }
}

/// Pace of a transport that enters a handler again by itself when a round has ended with `requestState` alone. For a modern
/// client there is none: it retries when it likes, on any instance.
#[derive(Debug, Default)]
pub struct Reentry(AtomicBool);

impl Reentry {
    /// Returns whether the handler is to be entered again at once, because the last round was progress. Otherwise it waits for
    /// something outside, and is entered again after a pause.
    pub fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Records whether a round was progress.
    pub(super) fn set_due(&self, due: bool) {
        self.0.store(due, Ordering::Relaxed);
    }
}
