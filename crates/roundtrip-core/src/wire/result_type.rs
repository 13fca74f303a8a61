//! `resultType`: `complete`, `input_required` or `task`, decoded before anything else of a result.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::serde::literal::literals;
use super::serde::{cow, decode_at};
use super::{CreateTaskResult, InputRequiredResult, MayAsk, Method, clip};

const COMPLETE: &str = "complete";
const INPUT_REQUIRED: &str = "input_required";
const TASK: &str = "task";

literals! {
    /// The `resultType` of a complete result.
    ResultComplete = "complete";
    /// The `resultType` of a request for input.
    ResultInputRequired = "input_required";
    /// The `resultType` of a call that goes on as a task.
    ResultTask = "task";
}

/// Result of a method that may ask.
#[derive(Debug, Clone, PartialEq)]
pub enum RoundResult<R> {
    /// A complete result.
    Complete(R),
    /// Questions to answer before the call is made again.
    InputRequired(InputRequiredResult),
    /// A task that the call goes on as.
    Task(Box<CreateTaskResult>),
}

/// A result that the method that was called cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// A `resultType` that this revision does not have.
    #[error("`{method}` was answered with the unknown result type `{result_type}`")]
    UnknownType {
        /// The method.
        method: &'static str,
        /// The `resultType`.
        result_type: String,
    },
    /// A request for input from a method that may not ask.
    #[error(
        "`{method}` was answered with `input_required`, which the specification does not allow for this method"
    )]
    MayNotAsk {
        /// The method.
        method: &'static str,
    },
    /// An `input_required` result with neither questions nor a state: nothing to continue with.
    #[error("`{method}` was answered with `input_required`, but with neither questions nor a state")]
    AsksNothing {
        /// The method.
        method: &'static str,
    },
    /// A result that is not of the method's type.
    #[error("`{method}` was answered with a result that does not fit: {reason}")]
    Misfit {
        /// The method.
        method: &'static str,
        /// The place and the error.
        reason: String,
    },
}

/// Decodes a result of a method that may ask.
///
/// # Errors
/// Fails if the result is of an unknown type, or does not fit its type.
pub fn decode_round_result<M: MayAsk>(result: &RawValue) -> Result<RoundResult<M::Result>, ResultError> {
    match peek::<M>(result)?.as_deref() {
        None | Some(COMPLETE) => decode::<M, _>(result).map(RoundResult::Complete),
        Some(INPUT_REQUIRED) => {
            let asks: InputRequiredResult = decode::<M, _>(result)?;
            if asks.input_requests.is_empty() && asks.request_state.is_none() {
                return Err(ResultError::AsksNothing { method: M::NAME });
            }
            Ok(RoundResult::InputRequired(asks))
        }
        Some(TASK) if M::MAY_BE_TASK => decode::<M, _>(result).map(|task| RoundResult::Task(Box::new(task))),
        Some(other) => Err(unknown::<M>(other)),
    }
}

/// Decodes a result that must be complete.
///
/// # Errors
/// Fails if the result is of another type than `complete`, or does not fit the method.
pub fn decode_complete<M: Method>(result: &RawValue) -> Result<M::Result, ResultError> {
    match peek::<M>(result)?.as_deref() {
        None | Some(COMPLETE) => decode::<M, _>(result),
        Some(INPUT_REQUIRED) => Err(ResultError::MayNotAsk { method: M::NAME }),
        Some(other) => Err(unknown::<M>(other)),
    }
}

fn peek<M: Method>(result: &RawValue) -> Result<Option<Cow<'_, str>>, ResultError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Peek<'a> {
        // Servers of earlier revisions leave it out (W8).
        #[serde(borrow, default, deserialize_with = "cow::option")]
        result_type: Option<Cow<'a, str>>,
    }
    decode::<M, Peek<'_>>(result).map(|peek| peek.result_type)
}

fn decode<'a, M: Method, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, ResultError> {
    decode_at("result", result.get()).map_err(|reason| ResultError::Misfit { method: M::NAME, reason })
}

fn unknown<M: Method>(result_type: &str) -> ResultError {
    ResultError::UnknownType { method: M::NAME, result_type: clip(result_type).into_owned() }
}
