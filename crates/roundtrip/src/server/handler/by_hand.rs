//! [`Round`]: rounds by hand, for a handler that runs anew each round and returns what to ask.

use std::borrow::Cow;
use std::sync::Arc;

use roundtrip_core::form::Form;
use roundtrip_core::round::read::{self, Read};
use roundtrip_core::round::{Answered, Question, QuestionKind};
use roundtrip_core::wire::{
    CreateMessageRequestParams, CreateMessageResult, InputResponses, JsonObject, Root, json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask::{Ask, May};
use super::asking::accepted;
use super::call::{Call, Rejection};
use super::extract::FromCall;
use super::needs::{AskStyle, Needs};
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
/// Answers of earlier rounds stay available in every later one, though the client sends only the newest. An answer that
/// does not fit is asked for again, with the reason. Answers are pinned to the kind of question and to its schema or the
/// site of its URL, not to its wording: [`content`](Self::content) and [`consent`](Self::consent) take the question for that, and
/// compare its [`identity`](Question::identity) as well. Other questions have no identity here: put it into their keys.
#[derive(Debug, Clone)]
pub struct Round(Arc<RoundState>);

impl FromCall for Round {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let round = call.round_state()?;
        round.keep_unasked(call.input.responses);
        Ok(Self(round))
    }

    fn needs(needs: &mut Needs) {
        needs.asks(AskStyle::ByHand);
    }
}

impl Round {
    /// Returns the answer to a form, if there is one that fits. A refusal is an error, as with [`Ask`].
    ///
    /// # Errors
    /// [`AskError::Declined`] or [`AskError::Cancelled`].
    pub fn answer<T: Form>(&self, key: &str) -> Result<Option<T>, AskError> {
        unless_refused(self.answered(key)?, key)
    }

    /// Returns the three-way answer to a form, if there is one that fits.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn answered<T: Form>(&self, key: &str) -> Result<Option<Answered<T>>, AskError> {
        self.look_up(&Question::form::<T>(key.to_owned(), ""), read::form)
    }

    /// Returns the answer to a form that is given by its schema ([`Question::form_of`]), with its defaults, if there is one
    /// that fits. A refusal is an error.
    ///
    /// ```
    /// # use roundtrip::wire::ElicitSchema;
    /// # use roundtrip::{Question, Reply, Round, ToolError};
    /// async fn choose_seat(round: Round) -> Result<Reply, ToolError> {
    ///     let seat = Question::form_of("seat", "Which seat?", free_seats());
    ///     let Some(content) = round.content(&seat)? else { return Ok(round.ask([seat])) };
    ///     Ok(Reply::text(format!("seat {}", content["seat"])))
    /// }
    /// # fn free_seats() -> ElicitSchema { ElicitSchema::default() }
    /// ```
    ///
    /// # Errors
    /// [`AskError::Declined`] or [`AskError::Cancelled`].
    pub fn content(&self, question: &Question) -> Result<Option<JsonObject>, AskError> {
        unless_refused(self.look_up(question, read::content)?, &question.key)
    }

    /// Returns the answer to a [`Question::confirm`], if there is one. A refusal is an error.
    ///
    /// # Errors
    /// [`AskError::Declined`] or [`AskError::Cancelled`].
    pub fn confirmed(&self, key: &str) -> Result<Option<bool>, AskError> {
        unless_refused(self.look_up(&Question::confirm(key.to_owned(), ""), read::yes_or_no)?, key)
    }

    /// Returns whether the user has consented to open a web page ([`Question::url`]). A refusal is an error. To consent is
    /// not to have finished there.
    ///
    /// # Errors
    /// [`AskError::Declined`] or [`AskError::Cancelled`].
    pub fn consent(&self, question: &Question) -> Result<bool, AskError> {
        Ok(unless_refused(self.look_up(question, read::consent)?, &question.key)?.is_some())
    }

    /// Returns the model's message, if it has been asked and has answered.
    ///
    /// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn message(&self, key: &str) -> Result<Option<CreateMessageResult>, AskError> {
        let question = Question::sample(key.to_owned(), CreateMessageRequestParams::default());
        unless_refused(self.look_up(&question, read::message)?, key)
    }

    /// Returns the client's roots, if it has been asked and has answered.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    ///
    /// # Errors
    /// Fails if the round is over.
    pub fn roots(&self, key: &str) -> Result<Option<Vec<Root>>, AskError> {
        unless_refused(self.look_up(&Question::roots(key.to_owned()), read::roots)?, key)
    }

    /// Returns the request's `inputResponses` as the client sent them: unchecked, and with answers to questions that were
    /// never asked. Answers that an earlier round got are not among them.
    pub fn responses(&self) -> InputResponses {
        self.0.responses()
    }

    fn look_up<T>(&self, question: &Question, read: Read<T>) -> Result<Option<Answered<T>>, AskError> {
        let question = &by_kind(question.clone());
        self.0.look_up(question, |answer| read::answered(read, question, answer))
    }

    /// Ends the round with questions: the reply is `input_required`.
    pub fn ask<R: reply::HandlerResult>(&self, questions: impl IntoIterator<Item = Question>) -> Reply<R> {
        let mut any = false;
        for question in questions {
            any = true;
            let put = readable(&question).and_then(|()| self.0.put(&by_kind(question)));
            if let Err(error) = put {
                return Reply::failed(error);
            }
        }
        if any {
            Reply::suspended()
        } else {
            Reply::failed(AskError::Misuse("a round that asks needs a question".into()))
        }
    }

    /// Ends the round with state of your own and without a question: the client retries, on any instance. For a client of the
    /// handshake eras the handler is entered again here: at once if the state is new, otherwise after a pause. In a task it is
    /// entered again by a worker, always after a pause; each in a row is longer than the one before, up to two seconds.
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
        json::from_str(&json).map(Some).map_err(|error| {
            // In a task, a process that reads it continues (T16).
            self.0.leave("the round's state is of another type");
            AskError::Misuse(format!("the round's state is of another type: {error}"))
        })
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
        Ask { round: Arc::clone(&self.0), branch: None }.may()
    }

    /// Returns the number of this round, counted from 1.
    pub fn number(&self) -> u32 {
        self.0.round().saturating_add(1)
    }
}

/// Returns the value of an answer; a refusal is an error.
fn unless_refused<T>(answered: Option<Answered<T>>, key: &str) -> Result<Option<T>, AskError> {
    answered.map(|answered| accepted(answered, key)).transpose()
}

/// Refuses an identity of a question whose answer is looked up by its key: a reader that is not given the question cannot compare
/// identities, and the question would be asked without end.
fn readable(question: &Question) -> Result<(), AskError> {
    let is_given = match &question.asks {
        QuestionKind::Url { .. } => true,
        // A form of a type is read by `answer`, one of a schema by `content`.
        QuestionKind::Form { form, .. } => matches!(form, Cow::Owned(_)),
        _ => false,
    };
    if is_given || question.identity.is_none() {
        return Ok(());
    }
    Err(AskError::Misuse(format!(
        "the question `{0}` has an identity, which is for `Question::url` and `Question::form_of` in rounds by hand: \
         make it part of the key `{0}`",
        question.key
    )))
}

/// Pins a question to its kind and schema: its wording is not known when its answer is looked up.
fn by_kind(mut question: Question) -> Question {
    question.identity.get_or_insert(Cow::Borrowed(""));
    question
}
