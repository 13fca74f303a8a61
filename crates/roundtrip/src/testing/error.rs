//! [`ReplayError`]: mistakes that a scripted flow finds.

use std::fmt;

use roundtrip_core::error::debug_as_text;

use super::replay::MAX_ROUNDS;
use crate::server::SetupError;

/// Mistake in a handler, or in the script.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The server's setup has a mistake.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The script has no answer to a question.
    #[error("the script has no answer to `{key}`{}: it asks {question}; add {remedy}", again(*.answers))]
    NoAnswer {
        /// The question's key.
        key: String,
        /// The number of answers that the script has had for it.
        answers: usize,
        /// The question, in short.
        question: String,
        /// The method to add to the script.
        remedy: String,
    },
    /// An answer of the script was not asked for.
    #[error("{}: {ended}; correct the key, or leave the answer out", surplus(.key, *.answers, *.asked))]
    Unused {
        /// The answer's key.
        key: String,
        /// The number of answers that the script has for it.
        answers: usize,
        /// The number of times it was asked.
        asked: usize,
        /// The questions and the end of the flow, in short.
        ended: String,
    },
    /// An answer of the script does not fit its question.
    #[error("the scripted answer to `{key}` does not fit: {message}")]
    Unfit {
        /// The question's key.
        key: String,
        /// The reason, as the server gives it when it asks again.
        message: String,
    },
    /// The call failed with a JSON-RPC error.
    #[error("the call failed: {0}")]
    Failed(String),
    /// An effect happened more than once.
    #[error(
        "`{what}` happened {times} times outside `once` ({place}): a handler that asks runs again, so put it into `ask.once(..)`"
    )]
    Repeated {
        /// The name of the effect.
        what: String,
        /// The number of times it happened.
        times: usize,
        /// The place in the source that reported it.
        place: String,
    },
    /// A key is not the same in every run.
    #[error(
        "the key `{before}` of one run is `{now}` in another: a key must not depend on time, randomness or state"
    )]
    VolatileKey {
        /// The key that was expected.
        before: String,
        /// The key that was used instead.
        now: String,
    },
    /// A question is not the same in every run.
    #[error(
        "the question `{key}` is not the same in every run\n  \
         at `{place}`: {first}, and then {then}\n  \
         an answer counts for the question as it was asked, so this one is asked again in every round: take what \
         changes in a step (`ask.once(..)`), or name what stays (`.identity(..)`)"
    )]
    ChangedQuestion {
        /// The question's key.
        key: String,
        /// The first difference, as a JSON pointer into the question's `params`.
        place: String,
        /// The text there when it was answered.
        first: String,
        /// The text there when the handler ran again.
        then: String,
    },
    /// The handler uses its keys in another order.
    #[error(
        "`{then}` comes before `{first}` in one run and after it in another: a handler must use its keys in the same order in every run"
    )]
    ChangedOrder {
        /// The key that comes first in most runs.
        first: String,
        /// The key that came first this time.
        then: String,
    },
    /// A round that was repeated gave another reply.
    #[error(
        "round {round} gave another reply when it was repeated\n  \
         at `{place}`: {first}, and then {then}\n  \
         {}: `once` keeps a result for the rounds that follow, and a round whose reply was lost runs again as a whole, \
         its steps too; {}, or give the server a ledger, which sends the first reply again",
        cause(.step.as_deref()), remedy(.step.as_deref())
    )]
    ChangedReply {
        /// The round, counted from 1.
        round: usize,
        /// The first step that gave another result.
        step: Option<String>,
        /// The first difference, as a JSON pointer into the reply.
        place: String,
        /// The text there in the first reply.
        first: String,
        /// The text there when the round was repeated.
        then: String,
    },
    /// The parts of a result that were sent are not the result.
    #[error(
        "the parts that were sent are not the result\n  \
         at `{place}`: {first} in parts, and {then} in the result\n  \
         a handler that asks sends its parts anew in every round, and those that were sent before are left out: take what \
         changes in a step (`ask.once(..)`), and return the `Parts`"
    )]
    ChangedParts {
        /// The first difference, as a JSON pointer into the content.
        place: String,
        /// The text there in the parts.
        first: String,
        /// The text there in the result.
        then: String,
    },
    /// The flow does not end.
    #[error("the flow has not ended after {MAX_ROUNDS} rounds")]
    Endless,
}

fn again(answers: usize) -> &'static str {
    if answers == 0 { "" } else { " when it is asked again" }
}

fn surplus(key: &str, answers: usize, asked: usize) -> String {
    match asked {
        0 => format!("the script answers `{key}`, which was never asked"),
        _ => format!("the script has {answers} answers to `{key}`, more than the {asked} it was asked for"),
    }
}

fn cause(step: Option<&str>) -> String {
    match step {
        Some(step) => format!("the step `{step}` gave another result"),
        None => "no step gave another result, so it depends on time, randomness or state".to_owned(),
    }
}

fn remedy(step: Option<&str>) -> &'static str {
    match step {
        Some(_) => "make the result from `step.idempotency_key()`",
        None => "take what changes in a step before a question",
    }
}

impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
}
