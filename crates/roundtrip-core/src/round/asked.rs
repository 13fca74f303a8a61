//! Answers as a handler's parameters.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::answer::Answered;
use super::question::QuestionKind;
use super::read::{self, Read};
use crate::form::{Asks, fill_message};
use crate::wire::{CreateMessageRequestParams, CreateMessageResult, JsonObject, Root};

/// A question with a key of its own, whose answer a handler can take as a parameter: a form that [`Asks`], a message of
/// the client's model ([`Sampled`]), or the client's [`Roots`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it is asked for",
    label = "not a question",
    note = "a form becomes a question with `#[derive(Form)]` and `#[form(key = \"..\", message = \"..\")]`"
)]
pub trait Askable: Sized + Send + 'static {
    /// The key of the question, unique within a call.
    const KEY: &'static str;

    /// The template of its message, in which `{name}` is an argument of the call; empty if it has none.
    const MESSAGE: &'static str;

    /// Reader of its answer.
    const READ: Read<Self>;

    /// Returns the question. `arguments` gives those of the call.
    fn asks(arguments: &dyn Fn() -> JsonObject) -> QuestionKind;
}

impl<T: Asks> Askable for T {
    const KEY: &'static str = <T as Asks>::KEY;
    const MESSAGE: &'static str = <T as Asks>::MESSAGE;
    const READ: Read<Self> = read::form::<T>;

    fn asks(arguments: &dyn Fn() -> JsonObject) -> QuestionKind {
        let message = match <T as Asks>::MESSAGE {
            plain if !plain.contains(['{', '}']) => plain.into(),
            template => fill_message(template, &arguments()).into(),
        };
        QuestionKind::Form { message, form: Cow::Borrowed(T::definition()) }
    }
}

/// The client's roots, asked for under the key `roots`. Deprecated (SEP-2577).
#[derive(Debug, Clone, PartialEq)]
pub struct Roots(pub Vec<Root>);

impl Askable for Roots {
    const KEY: &'static str = "roots";
    const MESSAGE: &'static str = "";
    const READ: Read<Self> = |question, answer| read::roots(question, answer).map(Self);

    fn asks(_: &dyn Fn() -> JsonObject) -> QuestionKind {
        QuestionKind::Roots
    }
}

/// A request to the client's model whose answer, a [`Sampled`], a handler can take as a parameter. Deprecated (SEP-2577).
pub trait Samples: Send + 'static {
    /// The key of the question, unique within a call.
    const KEY: &'static str;

    /// Returns the request, given the arguments of the call. It must be the same in every round.
    fn request(arguments: &JsonObject) -> CreateMessageRequestParams;
}

/// The message of the client's model in answer to the request of `S`. Deprecated (SEP-2577).
pub struct Sampled<S> {
    /// The message.
    pub message: CreateMessageResult,
    of: PhantomData<fn() -> S>,
}

impl<S> Deref for Sampled<S> {
    type Target = CreateMessageResult;

    fn deref(&self) -> &CreateMessageResult {
        &self.message
    }
}

impl<S> fmt::Debug for Sampled<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sampled").field(&self.message).finish()
    }
}

impl<S: Samples> Askable for Sampled<S> {
    const KEY: &'static str = S::KEY;
    const MESSAGE: &'static str = "";
    const READ: Read<Self> =
        |question, answer| Ok(Self { message: read::message(question, answer)?, of: PhantomData });

    fn asks(arguments: &dyn Fn() -> JsonObject) -> QuestionKind {
        QuestionKind::Sample(Box::new(S::request(&arguments())))
    }
}

/// A web page that the user is asked to open, and whose answer, a [`Visited`], a handler can take as a parameter.
pub trait Visits: Send + 'static {
    /// The key of the question, unique within a call.
    const KEY: &'static str;

    /// Returns the page, given the arguments of the call. It must be the same in every round.
    fn page(arguments: &JsonObject) -> Page;
}

/// A web page, and the message that asks the user to open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The message.
    pub message: String,
    /// The address.
    pub url: String,
}

impl Page {
    /// Creates a page.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into() }
    }
}

/// The user's consent to open the page of `P`. To accept is to consent, not to have finished there.
pub struct Visited<P>(PhantomData<fn() -> P>);

impl<P> fmt::Debug for Visited<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visited")
    }
}

impl<P: Visits> Askable for Visited<P> {
    const KEY: &'static str = P::KEY;
    const MESSAGE: &'static str = "";
    const READ: Read<Self> = |question, answer| read::consent(question, answer).map(|()| Self(PhantomData));

    fn asks(arguments: &dyn Fn() -> JsonObject) -> QuestionKind {
        let Page { message, url } = P::page(&arguments());
        QuestionKind::Url { message: message.into(), url }
    }
}

/// A handler's parameter that holds an answer: the answer itself, an `Option` of it where a refusal will do, or the
/// three-way [`Answered`].
pub trait AskedAs: Sized + Send + 'static {
    /// The question that is asked.
    type Answer: Askable;

    /// Converts an answer; `Err` returns a refusal that this type cannot hold.
    ///
    /// # Errors
    /// A refusal, where only the answer will do.
    fn read(answered: Answered<Self::Answer>) -> Result<Self, Answered<Self::Answer>>;
}

impl<T: Askable> AskedAs for T {
    type Answer = T;

    fn read(answered: Answered<T>) -> Result<T, Answered<T>> {
        match answered {
            Answered::Accepted(value) => Ok(value),
            refusal => Err(refusal),
        }
    }
}

impl<T: Askable> AskedAs for Option<T> {
    type Answer = T;

    fn read(answered: Answered<T>) -> Result<Self, Answered<T>> {
        Ok(answered.accepted())
    }
}

impl<T: Askable> AskedAs for Answered<T> {
    type Answer = T;

    fn read(answered: Self) -> Result<Self, Self> {
        Ok(answered)
    }
}
