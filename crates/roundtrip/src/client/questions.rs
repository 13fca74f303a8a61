//! Questions as handlers are given them, and the answers they give.

use std::error::Error as StdError;
use std::sync::Arc;

use roundtrip_core::exchange::{Answer, Misfit};
use roundtrip_core::wire::{
    CreateMessageRequestParams, CreateMessageResult, Implementation, RequestedSchema, Root,
};
use serde::Serialize;

/// Origin of a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Origin {
    /// The server, by its own account. Users must be shown who asks; show them as well how you reached it, which no
    /// server can make up.
    pub server: Option<Arc<Implementation>>,
    /// The method that was called.
    pub method: &'static str,
    /// Target of the call: a tool or prompt by name, a resource by URI.
    pub target: Option<String>,
    /// The server's name for the question.
    pub key: String,
    /// Number of this round of the call, counted from 1.
    pub round: u32,
}

/// A form for the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FormRequest {
    /// Origin of the question.
    pub origin: Origin,
    /// Message for the user.
    pub message: String,
    /// The form's fields, and as [`raw`](RequestedSchema::raw) the JSON that the server sent.
    pub schema: RequestedSchema,
}

/// The user's answer to a form.
#[derive(Debug, Clone)]
pub struct FormAnswer(pub(crate) Answer);

impl FormRequest {
    /// Builds the answer of a user who filled the form in. Fields left out get their defaults, and fields the form does
    /// not have are dropped.
    ///
    /// # Errors
    /// If the content does not fit the form: show the error to the user, and let them try again.
    pub fn accept(&self, content: impl Serialize) -> Result<FormAnswer, Misfit> {
        Answer::fill(&self.schema, content).map(FormAnswer)
    }

    /// Builds the answer of a user who said no.
    pub fn decline(&self) -> FormAnswer {
        FormAnswer(Answer::decline())
    }

    /// Builds the answer of a user who dismissed the question.
    pub fn cancel(&self) -> FormAnswer {
        FormAnswer(Answer::cancel())
    }
}

/// A web page for the user to visit.
///
/// Show the whole address and who asks, and open it only when the user agrees; never fetch it yourself (elicitation,
/// "Safe URL Handling").
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UrlRequest {
    /// Origin of the question.
    pub origin: Origin,
    /// Message for the user.
    pub message: String,
    /// Absolute URL of HTTP. A call that asks for anything else ends before it reaches a handler.
    pub url: String,
}

/// The user's answer to a web page.
#[derive(Debug, Clone)]
pub struct UrlAnswer(pub(crate) Answer);

impl UrlRequest {
    /// Builds the answer of a user who agreed to visit the page. It says nothing of what happened there.
    pub fn consent(&self) -> UrlAnswer {
        UrlAnswer(Answer::consent())
    }

    /// Builds the answer of a user who said no.
    pub fn decline(&self) -> UrlAnswer {
        UrlAnswer(Answer::decline())
    }

    /// Builds the answer of a user who dismissed the question.
    pub fn cancel(&self) -> UrlAnswer {
        UrlAnswer(Answer::cancel())
    }
}

/// A prompt for the language model. There is no answer that declines: a handler that will not ask the model fails,
/// and the call with it.
///
/// Sampling is deprecated since revision 2026-07-28 (SEP-2577): call the API of a model's provider.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleRequest {
    /// Origin of the question.
    pub origin: Origin,
    /// Prompt and parameters for the model.
    pub params: CreateMessageRequestParams,
}

/// A server's request for the list of roots.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RootsRequest {
    /// Origin of the question.
    pub origin: Origin,
}

/// Return type of a handler: an answer, or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this is not the answer to the question",
    note = "return `{A}`, or a `Result` of it with an error that converts into `Box<dyn Error + Send + Sync>`"
)]
pub trait IntoAnswer<A>: Send + 'static {
    /// Converts into the answer, or the error of the handler.
    ///
    /// # Errors
    /// If the handler failed.
    fn into_answer(self) -> Result<A, Box<dyn StdError + Send + Sync>>;
}

impl<A, E> IntoAnswer<A> for Result<A, E>
where
    A: Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
{
    fn into_answer(self) -> Result<A, Box<dyn StdError + Send + Sync>> {
        self.map_err(Into::into)
    }
}

macro_rules! plain_answers {
    ($($answer:ty),*) => {
        $(
            impl IntoAnswer<$answer> for $answer {
                fn into_answer(self) -> Result<$answer, Box<dyn StdError + Send + Sync>> {
                    Ok(self)
                }
            }
        )*
    };
}

plain_answers!(FormAnswer, UrlAnswer, CreateMessageResult, Vec<Root>);

/// A folder or file: a [`Root`], or its `file://` URI.
///
/// Roots are deprecated since revision 2026-07-28 (SEP-2577): take folders as arguments or from configuration.
pub trait IntoRoot {
    /// Converts into a root.
    fn into_root(self) -> Root;
}

impl IntoRoot for Root {
    fn into_root(self) -> Root {
        self
    }
}

impl IntoRoot for String {
    fn into_root(self) -> Root {
        Root { uri: self, ..Root::default() }
    }
}

impl IntoRoot for &str {
    fn into_root(self) -> Root {
        self.to_owned().into_root()
    }
}
