//! Answers, read by the question they are for.

use std::borrow::Cow;

use super::question::{Question, QuestionKind};
use crate::form::check;
use crate::wire::{CreateMessageResult, ElicitAction, ElicitResult, JsonObject, ListRootsResult, Root};

/// An answer that fits its question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// The user accepted: what was filled in, checked against the form; empty for a web page.
    Accepted(JsonObject),
    /// The user declined.
    Declined,
    /// The user dismissed the question.
    Cancelled,
    /// What the model said.
    Message(Box<CreateMessageResult>),
    /// The client's roots.
    Roots(Vec<Root>),
}

/// Why an answer cannot be used, for whoever is asked again (M12, M13).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

impl Answer {
    /// Reads an answer that has been found to fit this very question before.
    ///
    /// # Errors
    /// When it is an answer to another kind of question after all.
    pub fn reread(question: &Question, json: &str) -> Result<Self, Unusable> {
        match &question.asks {
            // The type that stands for the form checks what it reads; one without a type is checked here every time.
            QuestionKind::Form { form: Cow::Borrowed(_), .. } => elicited(json),
            _ => Self::read(question, json),
        }
    }

    /// Reads an answer as one to this question.
    ///
    /// # Errors
    /// When it is an answer to another kind of question, or breaks the form.
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
                // To accept is to consent; content is none of its business.
                Self::Accepted(_) => Ok(Self::Accepted(JsonObject::new())),
                other => Ok(other),
            },
            QuestionKind::Sample(_) => serde_json::from_str(json)
                .map(|message| Self::Message(Box::new(message)))
                .map_err(|error| unlike("a message of the model", &error)),
            QuestionKind::Roots => serde_json::from_str::<ListRootsResult>(json)
                .map(|result| Self::Roots(result.roots))
                .map_err(|error| unlike("a list of roots", &error)),
        }
    }
}

fn elicited(json: &str) -> Result<Answer, Unusable> {
    let result: ElicitResult =
        serde_json::from_str(json).map_err(|error| unlike("an answer of the user", &error))?;
    Ok(match result.action {
        ElicitAction::Accept => Answer::Accepted(result.content.unwrap_or_default()),
        // A refusal that carries content is a refusal all the same (M14).
        ElicitAction::Decline => Answer::Declined,
        ElicitAction::Cancel => Answer::Cancelled,
    })
}

/// An answer of another kind than was asked for. The position in its text means nothing to whoever reads this.
fn unlike(wanted: &str, error: &serde_json::Error) -> Unusable {
    let error = error.to_string();
    let error = error.rsplit_once(" at line ").map_or(error.as_str(), |(error, _)| error);
    Unusable(format!("{wanted} was asked for: {error}"))
}
