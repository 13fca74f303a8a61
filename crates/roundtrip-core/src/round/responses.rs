//! The answers that come with a request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{ErrorObject, clip, clip_error};

/// Reads a request's answers, without more of a look at what is in them than any result stands.
///
/// # Errors
/// -32602 for what is not a map of results (M11).
pub fn read_responses(raw: &RawValue) -> Result<Vec<(Cow<'_, str>, &RawValue)>, ErrorObject> {
    let wrong =
        |why: &dyn std::fmt::Display| ErrorObject::invalid_params(format!("params.inputResponses: {why}"));
    let map: indexed::Members<'_> =
        serde_json::from_str(raw.get()).map_err(|error| wrong(&clip_error(&error)))?;
    for (key, value) in &map.0 {
        if !value.get().starts_with('{') {
            return Err(wrong(&format!("`{}` must be a result, which is an object", clip(key))));
        }
        check_action(key, value)?;
    }
    Ok(map.0)
}

/// Refuses an action that no revision has; everything else about an answer is for its question to say.
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
    let peek: Peek<'_> = serde_json::from_str(answer.get()).map_err(|error| {
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

/// A JSON object as its members, values unread.
mod indexed {
    use std::borrow::Cow;
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde_json::value::RawValue;

    pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct MembersVisitor;
            impl<'de> Visitor<'de> for MembersVisitor {
                type Value = Members<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a map of results by key")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                    let mut members = Vec::new();
                    while let Some(crate::wire::BorrowedStr(key)) = map.next_key()? {
                        members.push((key, map.next_value()?));
                    }
                    Ok(Members(members))
                }
            }
            deserializer.deserialize_map(MembersVisitor)
        }
    }
}
