//! What a flow remembers from round to round: the journal, and questions and answers against it.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod converging;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod pieces;
#[cfg(test)]
mod questions;

#[cfg(test)]
use roundtrip_core::form::Definition;
#[cfg(test)]
use roundtrip_core::round::*;
#[cfg(test)]
use serde_json::value::RawValue;
#[cfg(test)]
use serde_json::{Value, json};
#[cfg(test)]
use std::borrow::Cow;

/// A form of one number from 0 to 99.
#[cfg(test)]
fn form(key: &str, message: &str) -> Question {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 99 } },
        "required": ["n"],
    });
    let form = Cow::Owned(Definition::new(serde_json::from_value(schema).unwrap()));
    Question::new(key.to_owned(), QuestionKind::Form { message: message.to_owned().into(), form })
}

#[cfg(test)]
fn accept(n: impl Into<Value>) -> Value {
    json!({ "action": "accept", "content": { "n": n.into() } })
}

#[cfg(test)]
fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// What a server does when a handler asks: the answer, or the question on the table. Kept as plain as the journal
/// allows, so that it is the journal that is tested.
#[cfg(test)]
fn ask(journal: &mut Journal, question: &Question) -> Option<FullAnswer> {
    if let Some(place) = journal.find(&question.key).map(|found| found.place) {
        let pin = journal.pin(question);
        if let Ok(Some(settled)) = journal.answer(place, question, pin) {
            return Some(settled.answer(question).unwrap());
        }
        journal.forget(&question.key);
    }
    None
}

/// A flow that begins.
#[cfg(test)]
fn begin() -> Journal {
    Journal::new(PinKey::new(*b"sixteen secret b"))
}

/// The journal as the next round finds it, with these questions open.
#[cfg(test)]
fn next_round(journal: &Journal, open: &[&Question]) -> Journal {
    let open = open.iter().map(|question| (&*question.key, journal.pin(question)));
    Journal::decode(&journal.encode(open)).unwrap()
}
