//! The answers of a script, handed out one by one as their questions are asked.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::difference::{Difference, short};
use super::error::ReplayError;
use crate::server::{AskedAgain, Trace};

/// Answers by key, each in the order in which they are given.
#[derive(Debug, Clone, Default)]
pub(super) struct Script(BTreeMap<String, Vec<Value>>);

/// Questions that a flow has asked so far, by key.
#[derive(Debug, Default)]
pub(super) struct AskedSoFar(BTreeMap<String, Vec<Value>>);

impl Script {
    /// Adds an answer, for the next time that the question is asked.
    pub(super) fn add(&mut self, key: &str, answer: Value) {
        self.0.entry(key.to_owned()).or_default().push(answer);
    }

    /// Returns the answers to the questions of a round.
    pub(super) fn answer(
        &self,
        questions: BTreeMap<String, Value>,
        asked: &mut AskedSoFar,
        trace: &Trace,
    ) -> Result<Map<String, Value>, ReplayError> {
        let mut answers = Map::new();
        for (key, question) in questions {
            let before = asked.0.entry(key.clone()).or_default();
            let Some(answer) = self.0.get(&key).and_then(|answers| answers.get(before.len())) else {
                return Err(unanswered(key, &question, before, trace));
            };
            answers.insert(key, answer.clone());
            before.push(question);
        }
        Ok(answers)
    }

    /// Fails if a flow has ended without asking for every answer.
    pub(super) fn check_used_up(&self, asked: &AskedSoFar, result: &Value) -> Result<(), ReplayError> {
        for (key, answers) in &self.0 {
            let times = asked.0.get(key).map_or(0, Vec::len);
            if times < answers.len() {
                let (key, answers) = (key.clone(), answers.len());
                return Err(ReplayError::Unused { key, answers, asked: times, ended: asked.ended(result) });
            }
        }
        Ok(())
    }
}

impl AskedSoFar {
    /// Describes how a flow has ended, and what it asked.
    fn ended(&self, result: &Value) -> String {
        let text = [&result["content"], &result["messages"], &result["contents"]].map(|list| &list[0]);
        let text = text.iter().find_map(|first| first.get("text").or_else(|| first["content"].get("text")));
        let ended = short(Some(text.unwrap_or(result)));
        let keys = self.0.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let asked = if keys.is_empty() { "nothing" } else { &keys };
        format!("the call asked {asked} and ended with {ended}")
    }
}

/// Returns the reason that a question has no answer left, given the questions under its key before.
fn unanswered(key: String, question: &Value, before: &[Value], trace: &Trace) -> ReplayError {
    let changed = before.last().and_then(|last| Difference::between(&last["params"], &question["params"]));
    match (trace.asked_again(&key), changed) {
        (Some(AskedAgain::Unfit(message)), _) => ReplayError::Unfit { key, message },
        (Some(AskedAgain::Changed), Some(Difference { place, first, then })) => {
            ReplayError::ChangedQuestion { key, place, first, then }
        }
        _ => {
            let (question, remedy) = describe(&key, question);
            ReplayError::NoAnswer { key, answers: before.len(), question, remedy }
        }
    }
}

/// Describes a question, and the method that scripts its answer.
fn describe(key: &str, question: &Value) -> (String, String) {
    let params = &question["params"];
    match question["method"].as_str() {
        Some("sampling/createMessage") => ("the model".to_owned(), format!("`.say({key:?}, ..)`")),
        Some("roots/list") => ("for the roots".to_owned(), format!("`.roots({key:?}, ..)`")),
        _ if params["mode"] == "url" => {
            (format!("to open {}", short(params.get("url"))), format!("`.consent({key:?})`"))
        }
        _ => (short(params.get("message")), format!("`.accept({key:?}, ..)` or `.decline({key:?})`")),
    }
}
