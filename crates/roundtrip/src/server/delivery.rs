//! Delivery of questions: at the end of the round, or by the transport while the handler waits.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use roundtrip_core::wire::{
    ClientCapabilities, ElicitRequestParams, ElicitationCapability, ErrorObject, InputRequest,
    PrimitiveSchemaDefinition, ProtocolVersion,
};

/// Delivery of questions that have no answer yet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// A question ends the round with `input_required`, and the client answers by a retry.
    #[default]
    EndRound,
    /// A question is sent to the client while the handler waits.
    Live(Arc<dyn LiveQuestions>),
    /// The client cannot be asked.
    Refuse {
        /// The reason.
        why: CannotAsk,
        /// Makes an error of the protocol's own for a question, if it has one.
        error: fn(&InputRequest) -> Option<ErrorObject>,
    },
}

impl Delivery {
    /// Checks that a kind of question can be delivered.
    pub(crate) fn carries(&self, kind: impl FnOnce() -> AskKind) -> Result<(), CannotAsk> {
        match self {
            Self::EndRound => Ok(()),
            Self::Live(live) => live.carries(kind()),
            Self::Refuse { why, .. } => Err(*why),
        }
    }
}

/// Kind of a question, where clients and revisions differ in what they can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskKind {
    /// A form.
    Form,
    /// A form with a field that takes several choices.
    MultiSelect,
    /// A visit to a web page.
    Url,
    /// A completion by the client's model. Deprecated (SEP-2577).
    Sample,
    /// The same, with tools for the model. Deprecated (SEP-2577).
    SampleWithTools,
    /// The client's roots. Deprecated (SEP-2577).
    Roots,
}

impl AskKind {
    /// Returns the kind of a question.
    pub(crate) fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
                let several = |field: &PrimitiveSchemaDefinition| {
                    matches!(
                        field,
                        PrimitiveSchemaDefinition::UntitledMultiSelect(_)
                            | PrimitiveSchemaDefinition::TitledMultiSelect(_)
                    )
                };
                let any = form.requested_schema.properties.iter().any(|(_, field)| several(field));
                if any { Self::MultiSelect } else { Self::Form }
            }
            InputRequest::Elicit(ElicitRequestParams::Url(_)) => Self::Url,
            InputRequest::CreateMessage(params) if params.tools.is_empty() => Self::Sample,
            InputRequest::CreateMessage(_) => Self::SampleWithTools,
            InputRequest::ListRoots(_) => Self::Roots,
        }
    }

    /// Checks that the capability it needs is declared (M7).
    pub(crate) fn declared(self, capabilities: &ClientCapabilities) -> Result<(), CannotAsk> {
        let ClientCapabilities { elicitation, sampling, roots, .. } = capabilities;
        let elicits = |mode: fn(&ElicitationCapability) -> bool| elicitation.as_ref().is_some_and(mode);
        let (name, declared) = match self {
            Self::Form | Self::MultiSelect => {
                ("elicitation.form", elicits(ElicitationCapability::allows_form))
            }
            Self::Url => ("elicitation.url", elicits(ElicitationCapability::allows_url)),
            Self::Sample => ("sampling", sampling.is_some()),
            Self::SampleWithTools => {
                ("sampling.tools", sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some()))
            }
            Self::Roots => ("roots", roots.is_some()),
        };
        if declared { Ok(()) } else { Err(CannotAsk::NotDeclared(name)) }
    }
}

/// Reason why a client cannot be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotAsk {
    /// The client did not declare this capability.
    #[error("the client did not declare `{0}`")]
    NotDeclared(&'static str),
    /// The client's revision has no such question.
    #[error("revision {revision} cannot ask {what}")]
    NotInRevision {
        /// Revision that the client speaks.
        revision: ProtocolVersion,
        /// Object of the question, such as "for several choices at once".
        what: &'static str,
    },
    /// The client speaks an earlier revision, and called outside of a session.
    #[error("there is no session to ask in: call with revision 2026-07-28, or in a session")]
    NoSession,
    /// The client speaks an earlier revision, and accepts no stream.
    #[error("there is no stream to ask on: accept text/event-stream as well")]
    NoStream,
}

/// Transport of one call's questions to the client while the handler waits.
///
/// Both methods are called while the handler is polled, so they must not block.
pub trait LiveQuestions: fmt::Debug + Send + Sync {
    /// Sends a question to the client. Its answer goes to [`LiveQuestion::answer`].
    fn ask(&self, question: LiveQuestion, request: InputRequest);

    /// Withdraws a question: the handler no longer waits for its answer.
    fn withdraw(&self, key: &str);

    /// Checks that a kind of question can be sent to this client.
    ///
    /// # Errors
    /// Fails with the reason why it cannot.
    fn carries(&self, kind: AskKind) -> Result<(), CannotAsk> {
        let _ = kind;
        Ok(())
    }
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

/// First and longest pause before a handler is entered again that waits for something outside.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Returns the pause before a handler is entered again that has waited in this many rounds in a row: each is twice the one before, up
/// to a bound.
pub(crate) fn pause_after(waits: u32) -> Duration {
    let (first, longest) = PAUSES;
    waits.checked_sub(1).map_or(Duration::ZERO, |doubled| longest.min(first * 2_u32.saturating_pow(doubled)))
}

/// Returns the number of rounds in a row that have waited, after one that `waits` or not. A round that has begun a step is the first.
pub(crate) fn waits_after(before: u32, waits: bool, stepped: bool) -> u32 {
    if waits && !stepped { before.saturating_add(1) } else { u32::from(waits) }
}

/// Pace of a transport that enters a handler again by itself when a round has ended with `requestState` alone. For a modern
/// client there is none: it retries when it likes, on any instance.
#[derive(Debug, Default)]
pub struct Reentry {
    due: AtomicBool,
    entered: AtomicBool,
}

impl Reentry {
    /// Returns whether the handler is to be entered again at once, because the last round was progress. Otherwise it waits for
    /// something outside, and is entered again after a pause.
    pub fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Notes that the handler has been entered. Further rounds belong to the same request of the client, which rate limits count
    /// once.
    pub fn set_entered(&self) {
        self.entered.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }

    /// Records whether a round was progress.
    pub(super) fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T4, L3: pauses in a row grow up to a bound; a step makes the next one short again, and after a question there is none.
    #[test]
    fn pauses_grow_and_begin_anew() {
        let mut waits = 0;
        let mut pause = |does_wait, stepped| {
            waits = waits_after(waits, does_wait, stepped);
            pause_after(waits).as_millis()
        };
        assert_eq!([(); 7].map(|()| pause(true, false)), [100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!([pause(true, true), pause(true, false)], [100, 200]);
        assert_eq!([pause(false, false), pause(true, false)], [0, 100]);
        assert_eq!(pause_after(u32::MAX), PAUSES.1);
    }
}
