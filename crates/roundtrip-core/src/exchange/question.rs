//! A question, as whoever answers it sees it.

use std::fmt;

use crate::wire::{ElicitRequestParams, ElicitSchema, InputRequest, Raw};

use super::answer::{self, Answer, Misfit};

/// What kind of question it is, and so what kind of answer it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A form for the user.
    Form,
    /// A web page for the user.
    Url,
    /// A prompt for the language model.
    Sampling,
    /// Which roots there are.
    Roots,
}

impl Kind {
    /// The kind of a question.
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
pub struct Question<'a> {
    pub(super) key: &'a str,
    pub(super) request: &'a InputRequest,
    pub(super) answered: bool,
}

impl<'a> Question<'a> {
    /// What its answer is found by.
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// What kind of question it is.
    pub fn kind(&self) -> Kind {
        Kind::of(self.request)
    }

    /// What the user is told; none where it is not for the user.
    pub fn message(&self) -> Option<&'a str> {
        match self.request {
            InputRequest::Elicit(params) => Some(params.message()),
            _ => None,
        }
    }

    /// The fields of a form.
    pub fn schema(&self) -> Option<&'a ElicitSchema> {
        match self.request {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => Some(&*form.requested_schema),
            _ => None,
        }
    }

    /// The web page to visit.
    pub fn url(&self) -> Option<&'a str> {
        match self.request {
            InputRequest::Elicit(ElicitRequestParams::Url(page)) => Some(&page.url),
            _ => None,
        }
    }

    /// The question in full.
    pub fn request(&self) -> &'a InputRequest {
        self.request
    }

    /// Whether it has its answer.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Holds an answer against the question, and makes it what would be sent: defaults filled in, and nothing in it
    /// that was not asked for.
    ///
    /// # Errors
    /// When the answer does not fit.
    pub fn check(&self, answer: Answer) -> Result<Raw, Misfit> {
        answer::fit(self.request, answer)
    }
}
