//! Questions, as the client sees them.

use std::fmt;

use crate::wire::{ElicitRequestParams, InputRequest, Raw, RequestedSchema};

use super::answer::{self, Answer, Misfit};

/// Kind of a question, which decides the kind of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A form for the user.
    Form,
    /// A web page for the user.
    Url,
    /// A prompt for the language model. Deprecated (SEP-2577).
    Sampling,
    /// A request for the client's roots. Deprecated (SEP-2577).
    Roots,
}

impl Kind {
    /// Returns the kind of a question.
    pub fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::Elicit(ElicitRequestParams::Form(_)) => Self::Form,
            InputRequest::Elicit(ElicitRequestParams::Url(_)) => Self::Url,
            InputRequest::CreateMessage(_) => Self::Sampling,
            InputRequest::ListRoots(_) => Self::Roots,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        })
    }
}

/// One question of a round.
#[derive(Debug, Clone, Copy)]
pub struct PendingQuestion<'a> {
    pub(super) key: &'a str,
    pub(super) request: &'a InputRequest,
    pub(super) answered: bool,
}

impl<'a> PendingQuestion<'a> {
    /// Returns the key that its answer goes under.
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// Returns its kind.
    pub fn kind(&self) -> Kind {
        Kind::of(self.request)
    }

    /// Returns the message to the user; `None` for the other kinds of question.
    pub fn message(&self) -> Option<&'a str> {
        match self.request {
            InputRequest::Elicit(params) => Some(params.message()),
            _ => None,
        }
    }

    /// Returns the schema of a form: its fields, and as [`raw`](RequestedSchema::raw) its JSON.
    pub fn schema(&self) -> Option<&'a RequestedSchema> {
        match self.request {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => Some(&form.requested_schema),
            _ => None,
        }
    }

    /// Returns the web page to visit.
    pub fn url(&self) -> Option<&'a str> {
        match self.request {
            InputRequest::Elicit(ElicitRequestParams::Url(page)) => Some(&page.url),
            _ => None,
        }
    }

    /// Returns the question in full.
    pub fn request(&self) -> &'a InputRequest {
        self.request
    }

    /// Returns whether it has been answered.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Checks an answer against the question and serialises it as it would be sent: defaults filled in, other
    /// properties dropped.
    ///
    /// # Errors
    /// Fails if the answer does not fit.
    pub fn check(&self, answer: Answer) -> Result<Raw, Misfit> {
        answer::fit(self.request, answer)
    }
}
