//! Delivery of questions: at the end of the round, or by the transport while the handler waits.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

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
    pub(super) round: Weak<dyn TakesAnswers>,
}

impl LiveQuestion {
    /// Returns the question's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Hands the answer to the handler: the result as JSON text, or the reason why there is none. If it does not fit, the
    /// question is asked again.
    pub fn answer(self, answer: Result<&str, String>) {
        if let Some(round) = self.round.upgrade() {
            round.answer(&self.key, answer);
        }
    }
}
