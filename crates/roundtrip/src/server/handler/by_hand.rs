//! [`Round`]: rounds by hand, for a handler that runs anew each round and returns what to ask.

use std::borrow::Cow;
use std::sync::Arc;

use roundtrip_core::form::Form;
use roundtrip_core::round::{Answered, Question, QuestionKind};
use roundtrip_core::wire::{CreateMessageResult, Root};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask::{Ask, May};
use super::asking::accepted;
use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::needs::Needs;
use super::read::{self, Read};
use super::reply::{self, Reply};
use crate::server::round::{AskError, RoundState};

/// Extractor for one round of a flow, for handlers that take their rounds by hand.
///
/// ```
/// # use roundtrip::{Form, Question, Reply, Round, ToolError};
/// #[derive(Form)]
/// struct Party { people: u8 }
///
/// async fn book(round: Round) -> Result<Reply, ToolError> {
///     let Some(party) = round.answer::<Party>("party")? else {
///         return Ok(round.ask([Question::form::<Party>("party", "How many people?")]));
///     };
///     Ok(Reply::text(format!("a table for {}", party.people)))
/// }
/// ```
///
/// Answers of earlier rounds stay available in every later one, though the client sends only the newest. Answers are
/// pinned to the kind of question and its schema, not to its wording.
#[derive(Debug, Clone)]
pub struct Round(Arc<RoundState>);

impl FromCall for Round {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let round = call.round_state()?;
        round.keep_unasked(call.input.responses);
        Ok(Self(round))
    }

    fn needs(needs: &mut Needs) {
        needs.asks = true;
    }
}

impl Round {
    /// Returns the answer to a form, if there is one that fits. A refusal is an error, as with [`Ask`].
    ///
    /// # Errors
    /// [`AskError::Declined`] or [`AskError::Cancelled`].
    pub fn answer<T: Form>(&self, key: &str) -> Result<Option<T>, AskError> {
        self.answered(key)?.map(|answered| accepted(answered, key)).transpose()
    }

    /// Returns the three-way answer to a form, if there is one that fits.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn answered<T: Form>(&self, key: &str) -> Result<Option<Answered<T>>, AskError> {
        let question = by_kind(Question::form::<T>(key.to_owned(), ""));
        self.0.look_up(&question, |answer| read::answered(read::form, &question, answer))
    }

    /// Returns the model's message, if it has been asked and has answered.
    ///
    /// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn message(&self, key: &str) -> Result<Option<CreateMessageResult>, AskError> {
        self.read(Question::new(key.to_owned(), QuestionKind::Sample(Box::default())), read::message)
    }

    /// Returns the client's roots, if it has been asked and has answered.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn roots(&self, key: &str) -> Result<Option<Vec<Root>>, AskError> {
        self.read(Question::new(key.to_owned(), QuestionKind::Roots), read::roots)
    }

    fn read<T>(&self, question: Question, read: Read<T>) -> Result<Option<T>, AskError> {
        let question = by_kind(question);
        self.0.look_up(&question, |answer| read(&question, answer))
    }

    /// Ends the round with questions: the reply is `input_required`.
    pub fn ask<R: reply::HandlerResult>(&self, questions: impl IntoIterator<Item = Question>) -> Reply<R> {
        let mut any = false;
        for question in questions {
            any = true;
            if let Err(error) = self.0.put(&by_kind(question)) {
                return Reply::failed(error);
            }
        }
        if any {
            Reply::suspended()
        } else {
            Reply::failed(AskError::Misuse("a round that asks needs a question".into()))
        }
    }

    /// Ends the round with state of your own and without a question: the client retries, on any instance.
    pub fn hand_off<R: reply::HandlerResult>(&self, state: &impl Serialize) -> Reply<R> {
        match self.set_state(state) {
            Ok(()) => {
                self.0.hand_off();
                Reply::suspended()
            }
            Err(error) => Reply::failed(error),
        }
    }

    /// Keeps state of your own for the rounds to come, sealed in `requestState`.
    ///
    /// # Errors
    /// Fails if it does not serialise.
    pub fn set_state(&self, state: &impl Serialize) -> Result<(), AskError> {
        let json = serde_json::to_string(state)
            .map_err(|error| AskError::Misuse(format!("the round's state does not serialise: {error}")))?;
        self.0.set_state(&json);
        Ok(())
    }

    /// Returns the state that an earlier round has kept.
    ///
    /// # Errors
    /// Fails if it is not of this type.
    pub fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, AskError> {
        let Some(json) = self.0.state() else { return Ok(None) };
        serde_json::from_str(&json)
            .map(Some)
            .map_err(|error| AskError::Misuse(format!("the round's state is of another type: {error}")))
    }

    /// Takes `inputResponses` by their key alone, also without a `requestState`, and sends no `requestState` as long as
    /// there is nothing to remember.
    ///
    /// **Then a client can answer questions it was never asked.** Such answers are checked against their form, but
    /// any caller can send them: do not build a confirmation on this.
    #[must_use]
    pub fn by_key_alone(self) -> Self {
        self.0.by_key_alone();
        self
    }

    /// Returns what may be asked.
    pub fn may(&self) -> May {
        Ask(Arc::clone(&self.0)).may()
    }

    /// Returns the number of this round, counted from 1.
    pub fn number(&self) -> u32 {
        self.0.round().saturating_add(1)
    }
}

/// Pins a question to its kind and schema: its wording is not known when its answer is looked up.
fn by_kind(mut question: Question) -> Question {
    question.identity.get_or_insert(Cow::Borrowed(""));
    question
}
