//! Answers, checked against their questions before they are sent.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::question::Kind;
use crate::form::{self, Problems};
use crate::wire::{
    CreateMessageResult, ElicitAction, ElicitRequestParams, ElicitResult, ElicitSchema, InputRequest,
    JsonObject, ListRootsResult, Raw, Root,
};

/// An answer to a question of any kind.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// The user's answer to a form or a web page.
    Elicit(ElicitResult),
    /// The message of the language model. Deprecated (SEP-2577).
    CreateMessage(Box<CreateMessageResult>),
    /// The client's roots. Deprecated (SEP-2577).
    ListRoots(ListRootsResult),
}

/// Shows the kind of answer and none of its content.
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
    /// Accepts a form with this content.
    pub fn accept(content: JsonObject) -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Accept, content: Some(content) })
    }

    /// Accepts a form after checking the content: defaults are filled in, and properties the form does not have are
    /// dropped.
    ///
    /// # Errors
    /// Fails if the content is not an object, or breaks the schema.
    pub fn fill(schema: &ElicitSchema, content: impl Serialize) -> Result<Self, Misfit> {
        let content = decode(&raw(&content)?, "the content of a form")?;
        fill(schema, content).map(Self::accept)
    }

    /// Answers with the client's roots.
    ///
    /// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
    ///
    /// # Errors
    /// Fails if one of them is not a `file://` URI, or has a `..` segment.
    pub fn roots(roots: Vec<Root>) -> Result<Self, Misfit> {
        roots.iter().try_for_each(root)?;
        Ok(Self::ListRoots(ListRootsResult { roots }))
    }

    /// Agrees to visit a web page.
    pub fn consent() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Accept, content: None })
    }

    /// Declines the question.
    pub fn decline() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Decline, content: None })
    }

    /// Dismisses the question without an answer.
    pub fn cancel() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Cancel, content: None })
    }
}

/// Reason an answer does not fit its question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// Fields of a form are wrong.
    #[error("{0}")]
    Fields(Problems),
    /// The answer is of another kind than the question.
    #[error("{0}")]
    Kind(String),
}

impl Misfit {
    /// Returns the wrong fields, if a form's fields are the reason.
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

/// Fills in defaults and drops properties the form does not have.
fn fill(schema: &ElicitSchema, mut content: JsonObject) -> Result<JsonObject, Misfit> {
    form::fill_defaults(schema, &mut content);
    form::check(schema, &content).map_err(Misfit::Fields)
}

/// Checks an answer against its question and serialises it.
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

/// Checks an elicitation result. Only an accepted form has content: a declined one is sent without, whatever was
/// typed before (E4).
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

/// Checks that a root is a `file://` URI without `..` segments (roots, "Security Considerations").
fn root(root: &Root) -> Result<(), Misfit> {
    let Some(path) = root.uri.strip_prefix("file://") else {
        return Err(Misfit::kind(format!("a root must be a `file://` URI, and `{}` is not", root.uri)));
    };
    let climbs = |segment: &str| segment.replace("%2e", ".").replace("%2E", ".") == "..";
    if path.split(['/', '\\']).any(climbs) {
        return Err(Misfit::kind(format!("the root `{}` must not have a `..` segment", root.uri)));
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

/// Reads an answer that was sent or stored.
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
