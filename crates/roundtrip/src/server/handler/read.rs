//! Readers of answers into the handler's types.

use roundtrip_core::form::Form;
use roundtrip_core::round::{Answered, FullAnswer, Question, Settled, Unusable};
use roundtrip_core::wire::{CreateMessageResult, JsonObject, Root};
use serde_json::Value;

/// The field that [`Ask::confirm`](super::Ask::confirm) asks for.
pub(super) const CONFIRM: &str = "confirm";

/// Reader of an answer that was not refused. It fails if the answer fits its question and not the type: a number out of
/// its range, or a check of the author's own form beyond its schema. The question is asked again, with the reason.
pub(super) type Read<T> = fn(&Question, &Settled<'_>) -> Result<T, Unusable>;

/// Reads an answer that may be a refusal.
pub(super) fn answered<T>(
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
pub(super) fn form<T: Form>(_: &Question, answer: &Settled<'_>) -> Result<T, Unusable> {
    match answer {
        Settled::Accepted(packed) => T::recall(packed).map_err(|problems| Unusable(problems.to_string())),
        _ => Err(of_another_kind()),
    }
}

/// Reads a form as a JSON object.
pub(super) fn content(question: &Question, answer: &Settled<'_>) -> Result<JsonObject, Unusable> {
    match answer.answer(question)? {
        FullAnswer::Accepted(content) => Ok(content),
        _ => Err(of_another_kind()),
    }
}

/// Reads a yes or a no.
pub(super) fn yes_or_no(question: &Question, answer: &Settled<'_>) -> Result<bool, Unusable> {
    content(question, answer)?.get(CONFIRM).and_then(Value::as_bool).ok_or_else(of_another_kind)
}

/// Reads a consent.
pub(super) fn consent(question: &Question, answer: &Settled<'_>) -> Result<(), Unusable> {
    content(question, answer).map(drop)
}

/// Reads the model's message.
pub(super) fn message(question: &Question, answer: &Settled<'_>) -> Result<CreateMessageResult, Unusable> {
    match answer.answer(question)? {
        FullAnswer::Message(message) => Ok(*message),
        _ => Err(of_another_kind()),
    }
}

/// Reads the client's roots.
pub(super) fn roots(question: &Question, answer: &Settled<'_>) -> Result<Vec<Root>, Unusable> {
    match answer.answer(question)? {
        FullAnswer::Roots(roots) => Ok(roots),
        _ => Err(of_another_kind()),
    }
}

fn of_another_kind() -> Unusable {
    Unusable("it is an answer to another kind of question".to_owned())
}
