//! `inputRequests`, `inputResponses` and `input_required` of multi round-trip requests.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::serde::null;
use super::serde::tagged::{self, Tagged};
use super::{
    CreateMessageRequestParams, ElicitRequestParams, ListRootsRequestParams, Raw, ResultInputRequired,
    ResultMeta,
};

/// A question of the server, told apart by `method`.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// A question to the user.
    Elicit(ElicitRequestParams),
    /// A question to the language model. Deprecated (SEP-2577).
    CreateMessage(Box<CreateMessageRequestParams>),
    /// A request for the client's roots. Deprecated (SEP-2577).
    ListRoots(ListRootsRequestParams),
}

impl InputRequest {
    const ELICIT: &'static str = "elicitation/create";
    const CREATE_MESSAGE: &'static str = "sampling/createMessage";
    const LIST_ROOTS: &'static str = "roots/list";

    /// Returns the method of the question on the wire.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => Self::ELICIT,
            Self::CreateMessage(_) => Self::CREATE_MESSAGE,
            Self::ListRoots(_) => Self::LIST_ROOTS,
        }
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Out<'a, P> {
            method: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<&'a P>,
        }
        let method = self.method();
        match self {
            Self::Elicit(params) => Out { method, params: Some(params) }.serialize(serializer),
            Self::CreateMessage(params) => Out { method, params: Some(params) }.serialize(serializer),
            Self::ListRoots(params) => {
                let params = params.meta.is_some().then_some(params);
                Out { method, params }.serialize(serializer)
            }
        }
    }
}

impl Tagged for InputRequest {
    const TAG: &'static str = "method";
    const EXPECTING: &'static str = "a request for input";

    fn read<'de, D: Deserializer<'de>>(tag: Option<&str>, rest: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Needs<P> {
            params: P,
        }
        #[derive(Deserialize)]
        struct May<P> {
            params: Option<P>,
        }
        match tag {
            Some(Self::ELICIT) => Ok(Self::Elicit(Needs::deserialize(rest)?.params)),
            Some(Self::CREATE_MESSAGE) => Ok(Self::CreateMessage(Needs::deserialize(rest)?.params)),
            Some(Self::LIST_ROOTS) => Ok(Self::ListRoots(May::deserialize(rest)?.params.unwrap_or_default())),
            Some(other) => Err(de::Error::unknown_variant(
                other,
                &[Self::ELICIT, Self::CREATE_MESSAGE, Self::LIST_ROOTS],
            )),
            None => Err(de::Error::missing_field(Self::TAG)),
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::deserialize(deserializer)
    }
}

/// `inputRequests`: questions by key, in the order in which the server wrote them.
pub type InputRequests = IndexMap<String, InputRequest>;

/// `inputResponses`: answers by key, kept as text, because decoding an answer needs its question.
pub type InputResponses = BTreeMap<String, Raw>;

/// An `input_required` result: questions to answer before the call is made again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// The `resultType`: `input_required`. Never assumed: a result without it is complete.
    pub result_type: ResultInputRequired,
    /// The questions.
    #[serde(default, deserialize_with = "null::or_default", skip_serializing_if = "IndexMap::is_empty")]
    pub input_requests: InputRequests,
    /// State for the client to return unchanged with the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object.
    #[serde(
        rename = "_meta",
        default,
        deserialize_with = "null::or_default",
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

#[cfg(test)]
mod tests {
    use super::InputRequiredResult;

    /// C2: a state goes out as it is, whatever is in it.
    #[test]
    fn a_state_is_written_as_json_writes_it() {
        for state in ["", "AQID-_", "a b~", "\"", "\\", "a\"b\\c", "\n", "\u{7f}", "é", "\0"] {
            let result = InputRequiredResult { request_state: Some(state.into()), ..Default::default() };
            let text = serde_json::to_string(&result).unwrap();
            let member = format!("\"requestState\":{}", serde_json::to_string(state).unwrap());
            assert!(text.contains(&member), "{text} {member}");
            assert_eq!(serde_json::from_str::<InputRequiredResult>(&text).unwrap(), result);
            assert_eq!(serde_json::to_value(&result).unwrap()["requestState"], state);
        }
    }
}
