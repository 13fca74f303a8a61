//! Answers, decoded by the question they belong to.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::journal::Kind;
use super::question::{Question, QuestionKind};
use crate::form::check;
use crate::wire::{
    CreateMessageResult, ElicitAction, ElicitRequestParams, InputRequest, JsonObject, ListRootsResult, Root,
    json,
};

/// An answer that fits its question.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum FullAnswer {
    /// The user accepted; the content is checked against the form, and empty for a web page.
    Accepted(JsonObject),
    /// The user declined.
    Declined,
    /// The user dismissed the question.
    Cancelled,
    /// The model's message. Deprecated (SEP-2577).
    Message(Box<CreateMessageResult>),
    /// The client's roots. Deprecated (SEP-2577).
    Roots(Vec<Root>),
}

/// Shows the kind of answer and none of its content.
impl fmt::Debug for FullAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted(_) => "Accepted(..)",
            Self::Declined => "Declined",
            Self::Cancelled => "Cancelled",
            Self::Message(_) => "Message(..)",
            Self::Roots(_) => "Roots(..)",
        })
    }
}

/// Reason an answer cannot be used, as a text for the user who is asked again (M12, M13).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

impl FullAnswer {
    /// Decodes an answer to this question.
    ///
    /// # Errors
    /// Fails if it is an answer to another kind of question, or breaks the form.
    pub fn read(question: &Question, json: &str) -> Result<Self, Unusable> {
        match &question.asks {
            QuestionKind::Form { form, .. } => match elicited(json)? {
                Self::Accepted(content) => match check(form.schema(), &content) {
                    Ok(content) => Ok(Self::Accepted(content)),
                    Err(problems) => Err(Unusable(problems.to_string())),
                },
                other => Ok(other),
            },
            QuestionKind::Url { .. } => match elicited(json)? {
                // To accept is to consent: content is dropped.
                Self::Accepted(_) => Ok(Self::Accepted(JsonObject::new())),
                other => Ok(other),
            },
            QuestionKind::Sample(_) => json::from_str(json)
                .map(|message| Self::Message(Box::new(message)))
                .map_err(|error| unlike("a message of the model", &error)),
            QuestionKind::Roots => json::from_str::<ListRootsResult>(json)
                .map(|result| Self::Roots(result.roots))
                .map_err(|error| unlike("a list of roots", &error)),
        }
    }
}

/// Returns whether an answer fits a question as it was sent. One that does may still not fit the type of its handler.
pub fn fits(question: &InputRequest, json: &str) -> bool {
    match question {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => {
            elicited(json).is_ok_and(|answer| match answer {
                FullAnswer::Accepted(content) => check(&form.requested_schema, &content).is_ok(),
                _ => true,
            })
        }
        InputRequest::Elicit(ElicitRequestParams::Url(_)) => elicited(json).is_ok(),
        InputRequest::CreateMessage(_) => json::from_str::<CreateMessageResult>(json).is_ok(),
        InputRequest::ListRoots(_) => json::from_str::<ListRootsResult>(json).is_ok(),
    }
}

/// The user's three-way answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered<T> {
    /// Accepted, with this answer.
    Accepted(T),
    /// Declined.
    Declined,
    /// Dismissed.
    Cancelled,
}

impl<T> Answered<T> {
    /// Returns the answer, if the user accepted.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// Returns the user's action.
    pub const fn action(&self) -> ElicitAction {
        match self {
            Self::Accepted(_) => ElicitAction::Accept,
            Self::Declined => ElicitAction::Decline,
            Self::Cancelled => ElicitAction::Cancel,
        }
    }
}

/// Shows what the user did and not the answer: `accepted`, `declined` or `cancelled`.
impl<T> fmt::Display for Answered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted(_) => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
        })
    }
}

/// An answer that fits its question, in the journal's format.
#[derive(Clone, PartialEq, Eq)]
pub enum Settled<'a> {
    /// The user accepted, or the client answered. Holds the output of
    /// [`Definition::pack`](crate::form::Definition::pack) for a form, nothing for a web page, and otherwise the
    /// result as it came.
    Accepted(Cow<'a, str>),
    /// The user declined.
    Declined,
    /// The user dismissed the question.
    Cancelled,
}

/// Shows the kind of answer and none of its content.
impl fmt::Debug for Settled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted(_) => "Accepted(..)",
            Self::Declined => "Declined",
            Self::Cancelled => "Cancelled",
        })
    }
}

impl<'a> Settled<'a> {
    /// Checks an answer against its question and converts it to the journal's format.
    ///
    /// # Errors
    /// Fails if it is an answer to another kind of question, or breaks the form.
    pub(super) fn of(question: &Question, json: &'a str) -> Result<Self, Unusable> {
        let answer = match &question.asks {
            QuestionKind::Form { .. } => elicited(json)?,
            _ => FullAnswer::read(question, json)?,
        };
        Ok(match (answer, &question.asks) {
            (FullAnswer::Accepted(content), QuestionKind::Form { form, .. }) => {
                let packed = form.check_and_pack(&content);
                Self::Accepted(Cow::Owned(packed.map_err(|problems| Unusable(problems.to_string()))?))
            }
            (FullAnswer::Accepted(_), _) => Self::Accepted(Cow::Borrowed("")),
            (FullAnswer::Declined, _) => Self::Declined,
            (FullAnswer::Cancelled, _) => Self::Cancelled,
            (FullAnswer::Message(_) | FullAnswer::Roots(_), _) => Self::Accepted(Cow::Borrowed(json)),
        })
    }

    /// Reads a journal entry; `None` if its kind is not that of a settled answer.
    pub(super) fn from_kind(kind: Kind, value: &'a str) -> Option<Self> {
        match kind {
            Kind::Settled => Some(Self::Accepted(Cow::Borrowed(value))),
            Kind::Declined => Some(Self::Declined),
            Kind::Cancelled => Some(Self::Cancelled),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Accepted(_) => Kind::Settled,
            Self::Declined => Kind::Declined,
            Self::Cancelled => Kind::Cancelled,
        }
    }

    pub(super) fn into_value(self) -> String {
        match self {
            Self::Accepted(value) => value.into_owned(),
            Self::Declined | Self::Cancelled => String::new(),
        }
    }

    /// Returns the answer in full.
    ///
    /// # Errors
    /// Fails if it is not an answer to this question.
    pub fn answer(&self, question: &Question) -> Result<FullAnswer, Unusable> {
        match (self, &question.asks) {
            (Self::Declined, _) => Ok(FullAnswer::Declined),
            (Self::Cancelled, _) => Ok(FullAnswer::Cancelled),
            (Self::Accepted(packed), QuestionKind::Form { form, .. }) => {
                Ok(FullAnswer::Accepted(form.unpack(packed)))
            }
            (Self::Accepted(_), QuestionKind::Url { .. }) => Ok(FullAnswer::Accepted(JsonObject::new())),
            (Self::Accepted(json), _) => FullAnswer::read(question, json),
        }
    }
}

/// Reads the user's answer. A refusal counts whatever it carries (M14), so content is read only where the user
/// accepted.
fn elicited(json: &str) -> Result<FullAnswer, Unusable> {
    #[derive(Deserialize)]
    struct Elicited<'a> {
        action: ElicitAction,
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let unlike = |error| unlike("an answer of the user", &error);
    let result: Elicited<'_> = json::from_str(json).map_err(unlike)?;
    match (result.action, result.content) {
        (ElicitAction::Accept, Some(content)) => {
            let content: Option<JsonObject> = json::from_str(content.get()).map_err(unlike)?;
            Ok(FullAnswer::Accepted(content.unwrap_or_default()))
        }
        (ElicitAction::Accept, None) => Ok(FullAnswer::Accepted(JsonObject::new())),
        (ElicitAction::Decline, _) => Ok(FullAnswer::Declined),
        (ElicitAction::Cancel, _) => Ok(FullAnswer::Cancelled),
    }
}

/// Describes an answer of another kind than was asked for, without the position in its text, which means nothing to
/// the user.
fn unlike(wanted: &str, error: &serde_json::Error) -> Unusable {
    let error = error.to_string();
    let error = error.rsplit_once(" at line ").map_or(error.as_str(), |(error, _)| error);
    // The error quotes the answer, which may be as long as a message, and the user has to read this.
    let error: String = error.chars().take(200).collect();
    Unusable(format!("{wanted} was asked for: {error}"))
}
