//! Readers of answers into the types of handlers.

use serde_json::Value;

use super::answer::{Answered, FullAnswer, Settled, Unusable};
use super::question::{CONFIRM, Question, QuestionKind};
use crate::form::{Form, fill_defaults};
use crate::wire::{CreateMessageResult, JsonObject, Root};

/// Reader of an answer that was not refused. It fails if the answer fits its question and not the type: a number out of
/// its range, or a check of the author's own form beyond its schema. The question is asked again, with the reason.
pub type Read<T> = fn(&Question, &Settled<'_>) -> Result<T, Unusable>;

/// Reads an answer that may be a refusal.
///
/// # Errors
/// Returns the error of `read`.
pub fn answered<T>(
    read: Read<T>,
    question: &Question,
    answer: &Settled<'_>,
) -> Result<Answered<T>, Unusable> {
    match answer {
        Settled::Declined => Ok(Answered::Declined),
        Settled::Cancelled => Ok(Answered::Cancelled),
        accepted @ Settled::Accepted(_) => read(question, accepted).map(Answered::Accepted),
    }
}

/// Reads a form.
///
/// # Errors
/// Fails if the answer does not fit the type.
pub fn form<T: Form>(_: &Question, answer: &Settled<'_>) -> Result<T, Unusable> {
    match answer {
        Settled::Accepted(packed) => T::recall(packed).map_err(|problems| Unusable(problems.to_string())),
        _ => Err(of_another_kind()),
    }
}

/// Reads a form as a JSON object, with its defaults where a field was left out.
///
/// # Errors
/// Fails if it is not an answer to this question.
pub fn content(question: &Question, answer: &Settled<'_>) -> Result<JsonObject, Unusable> {
    let FullAnswer::Accepted(mut content) = answer.answer(question)? else { return Err(of_another_kind()) };
    if let QuestionKind::Form { form, .. } = &question.asks {
        fill_defaults(form.schema(), &mut content);
    }
    Ok(content)
}

/// Reads a yes or a no.
///
/// # Errors
/// Fails if it is not an answer to this question.
pub fn yes_or_no(question: &Question, answer: &Settled<'_>) -> Result<bool, Unusable> {
    content(question, answer)?.get(CONFIRM).and_then(Value::as_bool).ok_or_else(of_another_kind)
}

/// Reads a consent.
///
/// # Errors
/// Fails if it is not an answer to this question.
pub fn consent(question: &Question, answer: &Settled<'_>) -> Result<(), Unusable> {
    content(question, answer).map(drop)
}

/// Reads the model's message. Deprecated (SEP-2577).
///
/// # Errors
/// Fails if it is not an answer to this question.
pub fn message(question: &Question, answer: &Settled<'_>) -> Result<CreateMessageResult, Unusable> {
    match answer.answer(question)? {
        FullAnswer::Message(message) => Ok(*message),
        _ => Err(of_another_kind()),
    }
}

/// Reads the client's roots. Deprecated (SEP-2577).
///
/// # Errors
/// Fails if it is not an answer to this question.
pub fn roots(question: &Question, answer: &Settled<'_>) -> Result<Vec<Root>, Unusable> {
    match answer.answer(question)? {
        FullAnswer::Roots(roots) => Ok(roots),
        _ => Err(of_another_kind()),
    }
}

fn of_another_kind() -> Unusable {
    Unusable("it is an answer to another kind of question".to_owned())
}
