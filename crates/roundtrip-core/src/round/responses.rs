//! The `inputResponses` of a request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{ErrorObject, clip, clip_error, json, members};

/// Reads `inputResponses` into results by key, checking only what holds for every result.
///
/// # Errors
/// -32602 for what is not a map of results (M11).
pub fn read_responses(raw: &RawValue) -> Result<Vec<(Cow<'_, str>, &RawValue)>, ErrorObject> {
    let wrong =
        |why: &dyn std::fmt::Display| ErrorObject::invalid_params(format!("params.inputResponses: {why}"));
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    let responses = members::read::<Cow<'_, str>, &RawValue, _>(&mut deserializer, "a map of results by key")
        .map_err(|error| wrong(&clip_error(&error)))?;
    for (key, value) in &responses {
        if !value.get().starts_with('{') {
            return Err(wrong(&format!("`{}` must be an object", clip(key))));
        }
        check_action(key, value)?;
    }
    Ok(responses)
}

/// Rejects an unknown `action`; the rest of an answer is checked against its question.
fn check_action(key: &str, answer: &RawValue) -> Result<(), ErrorObject> {
    // Nearly all answers begin like this, and then there is nothing to look for.
    let rest = answer.get().strip_prefix(r#"{"action":"accept""#);
    if rest.is_some_and(|rest| rest.starts_with([',', '}']) && !rest.contains(r#""action""#)) {
        return Ok(());
    }
    #[derive(Deserialize)]
    struct Peek<'a> {
        #[serde(borrow, default)]
        action: Option<&'a RawValue>,
    }
    let peek: Peek<'_> = json::from_str(answer.get()).map_err(|error| {
        ErrorObject::invalid_params(format!("params.inputResponses.{}: {}", clip(key), clip_error(&error)))
    })?;
    match peek.action.map(RawValue::get) {
        None | Some(r#""accept""# | r#""decline""# | r#""cancel""#) => Ok(()),
        Some(other) => Err(ErrorObject::invalid_params(format!(
            "params.inputResponses.{}.action: {} is not accept, decline or cancel",
            clip(key),
            clip(other)
        ))),
    }
}
