//! Answers in a file, by the keys of their questions.

use std::collections::VecDeque;
use std::path::Path;

use roundtrip::Pending;
use roundtrip::client::{Answer, Kind};
use roundtrip::wire::Method;
use serde_json::{Map, Value};

use super::stopped;
use crate::exit::Failure;
use crate::files;

/// Answers that have not been given yet.
#[derive(Debug)]
pub(super) struct Answers {
    file: String,
    left: Vec<(String, VecDeque<Value>)>,
}

/// An answer that has not been compared with its question yet.
#[derive(Debug)]
pub(super) enum Given {
    /// Content of a form, or the whole result of another kind.
    Value(Value),
    /// Consent to a web page, or an empty form.
    Accept,
    /// An answer of a kind.
    Answer(Answer),
}

impl Answers {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let shown = file.display().to_string();
        let content: Map<String, Value> = files::read_json(file)?;
        let left = content.into_iter().map(|(key, value)| match value {
            Value::Array(several) => (key, several.into()),
            one => (key, VecDeque::from([one])),
        });
        Ok(Self { file: shown, left: left.collect() })
    }

    /// Returns whether there is an answer left to a question.
    pub(super) fn have(&self, key: &str) -> bool {
        self.left.iter().any(|(name, left)| name == key && !left.is_empty())
    }

    /// Takes the next answer to one of the questions of a round.
    pub(super) fn take<M: Method>(&mut self, key: &str, pending: &Pending<M>) -> Result<Given, Failure> {
        let next = self.left.iter_mut().find(|(name, _)| name == key).and_then(|(_, left)| left.pop_front());
        let missing = || {
            let why = format!("the server asks `{key}`, and {} has no answer to it:", self.file);
            stopped(why, pending).with("key", key)
        };
        match next.ok_or_else(missing)? {
            Value::String(word) => match word.as_str() {
                "accept" => Ok(Given::Accept),
                "decline" => Ok(Given::Answer(Answer::decline())),
                "cancel" => Ok(Given::Answer(Answer::cancel())),
                other => Err(Failure::usage(format!(
                    "{}: `{key}` is `{other}`: give its content as an object, \"accept\", \"decline\" or \"cancel\"",
                    self.file
                ))),
            },
            value => Ok(Given::Value(value)),
        }
    }

    /// Fails if there are answers that no question took.
    pub(super) fn all_used(&self) -> Result<(), Failure> {
        let unused = self.left.iter().filter(|(_, left)| !left.is_empty()).map(|(key, _)| format!("`{key}`"));
        let unused: Vec<String> = unused.collect();
        if unused.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!("{}: the server has not asked {}", self.file, unused.join(", "))))
    }
}

impl Given {
    /// Returns whether it declines or cancels.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Answer(answer) if *answer == Answer::decline() || *answer == Answer::cancel())
    }

    /// Puts it into the flow, if it fits the question.
    pub(super) fn put<M: Method>(self, pending: Pending<M>, key: &str) -> Result<Pending<M>, Failure> {
        let kind = pending.questions().find(|question| question.key() == key).map(|question| question.kind());
        Ok(match self {
            Self::Value(value) => pending.answer(key, value)?,
            Self::Accept if kind == Some(Kind::Form) => pending.answer(key, Map::new())?,
            Self::Accept => pending.consent(key)?,
            Self::Answer(answer) => pending.give(key, answer)?,
        })
    }
}
