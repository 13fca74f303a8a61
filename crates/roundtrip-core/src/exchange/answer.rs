//! Answers, held against their questions before they are sent.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::question::Kind;
use crate::form::{self, Problems};
use crate::wire::{
    CreateMessageResult, ElicitAction, ElicitRequestParams, ElicitResult, ElicitSchema, InputRequest,
    JsonObject, ListRootsResult, Raw, Root,
};

/// An answer of one of the kinds there are.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// What the user did about a form or a web page.
    Elicit(ElicitResult),
    /// What the language model said.
    CreateMessage(Box<CreateMessageResult>),
    /// The roots there are.
    ListRoots(ListRootsResult),
}

/// Shows what was done about a question, and nothing of what was said.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elicit(result) => write!(f, "Elicit({:?}, ..)", result.action),
            Self::CreateMessage(_) => f.write_str("CreateMessage(..)"),
            Self::ListRoots(_) => f.write_str("ListRoots(..)"),
        }
    }
}

impl Answer {
    /// The user filled in a form.
    pub fn accept(content: JsonObject) -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Accept, content: Some(content) })
    }

    /// The user filled in a form, and the content fits it: defaults are filled in, and nothing is in there that was
    /// not asked for.
    ///
    /// # Errors
    /// When the content is no object, or breaks the schema.
    pub fn fill(schema: &ElicitSchema, content: impl Serialize) -> Result<Self, Misfit> {
        let content = decode(&raw(&content)?, "the content of a form")?;
        fill(schema, content).map(Self::accept)
    }

    /// The roots there are.
    ///
    /// # Errors
    /// When one of them is no `file://` URI, or climbs out of where it is with `..`.
    pub fn roots(roots: Vec<Root>) -> Result<Self, Misfit> {
        roots.iter().try_for_each(root)?;
        Ok(Self::ListRoots(ListRootsResult { roots }))
    }

    /// The user agreed to visit a web page.
    pub fn consent() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Accept, content: None })
    }

    /// The user said no.
    pub fn decline() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Decline, content: None })
    }

    /// The user went away without saying.
    pub fn cancel() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Cancel, content: None })
    }
}

/// Why an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// Some of a form's fields are wrong.
    #[error("{0}")]
    Fields(#[source] Problems),
    /// It is no answer to this kind of question.
    #[error("{0}")]
    Kind(String),
}

impl Misfit {
    /// The fields that are wrong, where that is what is wrong.
    pub fn problems(&self) -> Option<&Problems> {
        match self {
            Self::Fields(problems) => Some(problems),
            Self::Kind(_) => None,
        }
    }

    fn kind(what: impl Into<String>) -> Self {
        Self::Kind(what.into())
    }
}

/// The content of a form as it is sent: defaults filled in, and nothing that was not asked for.
fn fill(schema: &ElicitSchema, mut content: JsonObject) -> Result<JsonObject, Misfit> {
    form::fill_defaults(schema, &mut content);
    form::check(schema, &content).map_err(Misfit::Fields)
}

/// Makes of an answer what is sent.
pub(super) fn fit(question: &InputRequest, answer: Answer) -> Result<Raw, Misfit> {
    match (question, answer) {
        (InputRequest::Elicit(asked), Answer::Elicit(result)) => raw(&elicited(asked, result)?),
        (InputRequest::CreateMessage(_), Answer::CreateMessage(result)) => raw(&result),
        (InputRequest::ListRoots(_), Answer::ListRoots(result)) => {
            result.roots.iter().try_for_each(root)?;
            raw(&result)
        }
        (question, _) => {
            Err(Misfit::kind(format!("a {} question takes another kind of answer", Kind::of(question))))
        }
    }
}

/// Only a form that was accepted has content: whoever declines sends none, whatever was typed before (E4).
fn elicited(asked: &ElicitRequestParams, result: ElicitResult) -> Result<ElicitResult, Misfit> {
    let content = match (asked, result.action) {
        (ElicitRequestParams::Form(form), ElicitAction::Accept) => {
            Some(fill(&form.requested_schema, result.content.unwrap_or_default())?)
        }
        (ElicitRequestParams::Url(_), ElicitAction::Accept) if result.content.is_some() => {
            return Err(Misfit::kind("a url question takes no content, only consent"));
        }
        _ => None,
    };
    Ok(ElicitResult { action: result.action, content })
}

/// A root is a `file://` URI that does not climb out of itself (roots, "Security Considerations").
fn root(root: &Root) -> Result<(), Misfit> {
    let Some(path) = root.uri.strip_prefix("file://") else {
        return Err(Misfit::kind(format!("a root must be a `file://` URI, and `{}` is none", root.uri)));
    };
    let climbs = |segment: &str| segment.replace("%2e", ".").replace("%2E", ".") == "..";
    if path.split(['/', '\\']).any(climbs) {
        return Err(Misfit::kind(format!("the root `{}` climbs with `..`", root.uri)));
    }
    Ok(())
}

/// Reads an answer written as JSON, by the kind of its question: a form's content, or a whole result for the others.
pub(super) fn read(question: &InputRequest, value: &Raw) -> Result<Answer, Misfit> {
    match Kind::of(question) {
        Kind::Form => decode(value, "the content of a form").map(Answer::accept),
        Kind::Url => Err(Misfit::kind("a url question takes no content, only consent")),
        Kind::Sampling => {
            decode(value, "the model's message").map(|result| Answer::CreateMessage(Box::new(result)))
        }
        Kind::Roots => decode(value, "the list of roots").map(Answer::ListRoots),
    }
}

/// An answer as it was sent or stored.
pub(super) fn restore(question: &InputRequest, value: &Raw) -> Result<Answer, Misfit> {
    match question {
        InputRequest::Elicit(_) => decode(value, "the user's answer").map(Answer::Elicit),
        _ => read(question, value),
    }
}

fn decode<T: DeserializeOwned>(value: &Raw, what: &str) -> Result<T, Misfit> {
    value.to().map_err(|error| Misfit::kind(format!("this is not {what}: {error}")))
}

fn raw(result: &impl Serialize) -> Result<Raw, Misfit> {
    Raw::of(result).map_err(|error| Misfit::kind(format!("it does not serialise: {error}")))
}
