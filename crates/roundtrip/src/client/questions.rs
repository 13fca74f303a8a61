//! Questions as handlers are given them, and the answers they give.

use std::error::Error as StdError;
use std::sync::Arc;

use roundtrip_core::exchange::{Answer, Misfit};
use roundtrip_core::wire::{
    CreateMessageRequestParams, CreateMessageResult, ElicitSchema, Implementation, Root,
};
use serde::Serialize;

/// Where a question comes from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Origin {
    /// The server, by its own account. Users must be shown who asks; show them as well how you reached it, which no
    /// server can make up.
    pub server: Option<Arc<Implementation>>,
    /// The method that was called.
    pub method: &'static str,
    /// What the call is aimed at: a tool or prompt by name, a resource by URI.
    pub target: Option<String>,
    /// The server's name for the question.
    pub key: String,
    /// How many rounds of this call have asked something, this one included.
    pub round: u32,
}

/// A form for the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FormRequest {
    /// Where it comes from.
    pub origin: Origin,
    /// What the user is told.
    pub message: String,
    /// The form's fields.
    pub schema: ElicitSchema,
}

/// What the user did about a form.
#[derive(Debug, Clone)]
pub struct FormAnswer(pub(crate) Answer);

impl FormRequest {
    /// The user filled it in. Fields left out get their defaults, and fields the form does not have are dropped.
    ///
    /// # Errors
    /// What is wrong with the content: show it to the user, and let them try again.
    pub fn accept(&self, content: impl Serialize) -> Result<FormAnswer, Misfit> {
        Answer::fill(&self.schema, content).map(FormAnswer)
    }

    /// The user said no.
    pub fn decline(&self) -> FormAnswer {
        FormAnswer(Answer::decline())
    }

    /// The user went away without saying.
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
    /// Where it comes from.
    pub origin: Origin,
    /// What the user is told.
    pub message: String,
    /// Where to go: an absolute URL of HTTP. A call that asks for anything else ends before it comes here.
    pub url: String,
}

/// What the user did about a web page.
#[derive(Debug, Clone)]
pub struct UrlAnswer(pub(crate) Answer);

impl UrlRequest {
    /// The user agreed to visit it. That says nothing of what happened there.
    pub fn consent(&self) -> UrlAnswer {
        UrlAnswer(Answer::consent())
    }

    /// The user said no.
    pub fn decline(&self) -> UrlAnswer {
        UrlAnswer(Answer::decline())
    }

    /// The user went away without saying.
    pub fn cancel(&self) -> UrlAnswer {
        UrlAnswer(Answer::cancel())
    }
}

/// A prompt for the language model. There is no answer that declines: a handler that will not ask the model fails,
/// and the call with it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleRequest {
    /// Where it comes from.
    pub origin: Origin,
    /// What to ask the model.
    pub params: CreateMessageRequestParams,
}

/// A server wants to know which roots there are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RootsRequest {
    /// Where it comes from.
    pub origin: Origin,
}

/// What a handler may return: an answer, or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this is not the answer to the question",
    note = "return `{A}`, or a `Result` of it with an error that converts into `Box<dyn Error + Send + Sync>`"
)]
pub trait IntoAnswer<A>: Send + 'static {
    /// The answer, or why there is none.
    ///
    /// # Errors
    /// What the handler failed with.
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
pub trait IntoRoot {
    /// The root.
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
