//! Answers as a handler's parameters.

use crate::form::Asks;

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

/// A handler's parameter that holds an answer: the form itself, an `Option` of it where a refusal will do, or the
/// three-way [`Answered`].
pub trait AskedForm: Sized + Send + 'static {
    /// The form that is asked for.
    type Form: Asks;

    /// Converts an answer; `Err` returns a refusal that this type cannot hold.
    ///
    /// # Errors
    /// A refusal, where only the form will do.
    fn read(answered: Answered<Self::Form>) -> Result<Self, Answered<Self::Form>>;
}

impl<T: Asks> AskedForm for T {
    type Form = T;

    fn read(answered: Answered<T>) -> Result<T, Answered<T>> {
        match answered {
            Answered::Accepted(value) => Ok(value),
            refusal => Err(refusal),
        }
    }
}

impl<T: Asks> AskedForm for Option<T> {
    type Form = T;

    fn read(answered: Answered<T>) -> Result<Self, Answered<T>> {
        Ok(match answered {
            Answered::Accepted(value) => Some(value),
            Answered::Declined | Answered::Cancelled => None,
        })
    }
}

impl<T: Asks> AskedForm for Answered<T> {
    type Form = T;

    fn read(answered: Self) -> Result<Self, Self> {
        Ok(answered)
    }
}
