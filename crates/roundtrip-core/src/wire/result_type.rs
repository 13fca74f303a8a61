//! `resultType`: whether a result is the answer or a request for input, looked at before anything else.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::literal::literals;
use super::{InputRequiredResult, MayAsk, Method, clip, cow, fit};

const COMPLETE: &str = "complete";
const INPUT_REQUIRED: &str = "input_required";

literals! {
    /// The `resultType` of an answer.
    ResultComplete = "complete";
    /// The `resultType` of a request for input.
    ResultInputRequired = "input_required";
}

/// What a method that may ask came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<R> {
    /// The answer.
    Complete(R),
    /// Questions to answer before the call is made again.
    InputRequired(InputRequiredResult),
}

/// A result that the method that was called cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// A `resultType` that this revision does not have.
    #[error("`{method}` was answered with the unknown result type `{result_type}`")]
    UnknownType {
        /// What was called.
        method: &'static str,
        /// What the result says it is.
        result_type: String,
    },
    /// A request for input from a method that may not ask.
    #[error("`{method}` was answered with `input_required`, which only methods that may ask can be")]
    MayNotAsk {
        /// What was called.
        method: &'static str,
    },
    /// A request for input that neither asks nor gives anything to hand back: there is nothing to go on with.
    #[error("`{method}` was answered with `input_required`, but with neither questions nor a state")]
    AsksNothing {
        /// What was called.
        method: &'static str,
    },
    /// A result that is not of the method's type.
    #[error("`{method}` was answered with a result that does not fit: {reason}")]
    Misfit {
        /// What was called.
        method: &'static str,
        /// The place, and what is wrong there.
        reason: String,
    },
}

/// Decodes a result of a method that may ask.
///
/// # Errors
/// When the result is of an unknown type, or does not fit its type.
pub fn decode_reply<M: MayAsk>(result: &RawValue) -> Result<Reply<M::Result>, ResultError> {
    match peek::<M>(result)?.as_deref() {
        None | Some(COMPLETE) => decode::<M, _>(result).map(Reply::Complete),
        Some(INPUT_REQUIRED) => {
            let asks: InputRequiredResult = decode::<M, _>(result)?;
            if asks.input_requests.is_empty() && asks.request_state.is_none() {
                return Err(ResultError::AsksNothing { method: M::NAME });
            }
            Ok(Reply::InputRequired(asks))
        }
        Some(other) => Err(unknown::<M>(other)),
    }
}

/// Decodes a result of a method whose answer is wanted at once.
///
/// # Errors
/// When the result is of another type than `complete`, or does not fit the method.
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
    fit::decode("result", result.get()).map_err(|reason| ResultError::Misfit { method: M::NAME, reason })
}

fn unknown<M: Method>(result_type: &str) -> ResultError {
    ResultError::UnknownType { method: M::NAME, result_type: clip(result_type).into_owned() }
}
