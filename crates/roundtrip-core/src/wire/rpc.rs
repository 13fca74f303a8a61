//! JSON-RPC 2.0 framing, borrowed from the bytes a message came in.

mod encode;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::serde::cow;
use super::{ErrorObject, Method, RequestId, clip_error, json};

pub use encode::*;

/// The only JSON-RPC version.
pub const JSONRPC_VERSION: &str = "2.0";

/// A request, which has an id and expects a response.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The sender's id for it.
    pub id: RequestId,
    /// The method.
    pub method: Cow<'a, str>,
    /// Its parameters, not yet decoded: the method says how.
    pub params: Option<&'a RawValue>,
    /// The wish for a task's result in parts, where it stands beside the parameters.
    pub stream: Option<&'a RawValue>,
}

/// A notification, which has no id and gets no response.
#[derive(Debug, Clone)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// Its parameters, not yet decoded.
    pub params: Option<&'a RawValue>,
}

/// A response to a request.
#[derive(Debug, Clone)]
pub struct Response<'a> {
    /// The request's id; absent only on an error about a message whose id could not be read.
    pub id: Option<RequestId>,
    /// Its result or error. A result is decoded by the method that was called, never by its shape.
    pub outcome: Result<&'a RawValue, ErrorObject>,
}

/// Any JSON-RPC message.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A request.
    Request(Request<'a>),
    /// A notification.
    Notification(Notification<'a>),
    /// A response.
    Response(Response<'a>),
}

/// Bytes that are not a message, with the error to answer and the id to answer it under.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The id, where it could be read (W1).
    pub id: Option<RequestId>,
    /// -32700 for what is not JSON, -32600 for what is not JSON-RPC (W2).
    pub error: ErrorObject,
}

/// The members of a message, from one pass over the bytes; which of them are there decides its kind.
#[derive(Deserialize)]
#[serde(bound = "P: Deserialize<'de>")]
struct Envelope<'a, P> {
    #[serde(borrow, default, deserialize_with = "cow::option")]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default)]
    id: IdField,
    #[serde(borrow, default, deserialize_with = "cow::option")]
    method: Option<Cow<'a, str>>,
    #[serde(default = "none")]
    params: Option<P>,
    #[serde(borrow, default)]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

/// Returns `None`, a default without bounds on the type.
fn none<T>() -> Option<T> {
    None
}

/// The `id` member. A present null is an error, so it must not read as absent.
#[derive(Default)]
enum IdField {
    #[default]
    Absent,
    Null,
    Present(RequestId),
}

impl<'de> Deserialize<'de> for IdField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<RequestId>::deserialize(deserializer)?.map_or(Self::Null, Self::Present))
    }
}

impl<'a> Message<'a> {
    /// Decodes a message.
    ///
    /// # Errors
    /// [`Malformed`] carries the JSON-RPC error to send back. Batches are refused: this protocol has none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        // Checked once for the whole message, which is cheaper than string by string.
        let text = std::str::from_utf8(bytes).map_err(|error| Malformed::parse(&error))?;
        let envelope: Envelope<'a, &'a RawValue> =
            json::from_str(text).map_err(|error| malformed(text, &error))?;
        let id = match envelope.id {
            IdField::Absent => None,
            IdField::Present(id) => Some(id),
            IdField::Null => {
                return Err(Malformed::request(None, "`id` must be a string or an integer, not null"));
            }
        };
        if envelope.jsonrpc.as_deref() != Some(JSONRPC_VERSION) {
            return Err(Malformed::request(id, "`jsonrpc` must be \"2.0\""));
        }
        match (envelope.method, envelope.result, envelope.error) {
            (Some(method), None, None) => Ok(match id {
                Some(id) => {
                    Self::Request(Request { id, method, params: envelope.params, stream: envelope.stream })
                }
                None => Self::Notification(Notification { method, params: envelope.params }),
            }),
            (None, Some(result), None) if id.is_some() => {
                Ok(Self::Response(Response { id, outcome: Ok(result) }))
            }
            (None, None, Some(error)) => Ok(Self::Response(Response { id, outcome: Err(error) })),
            _ => Err(Malformed::request(
                id,
                "a message needs `method`, or an `id` with either `result` or `error`, and only one of these",
            )),
        }
    }
}

/// Decodes a request of a method known beforehand, its parameters included, in one pass. `None` for all other bytes:
/// [`Message::decode`] tells what they are.
pub fn decode_call<'a, M: Method>(bytes: &'a [u8]) -> Option<(RequestId, M::Params<'a>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    match json::from_str(text).ok()? {
        Envelope {
            jsonrpc: Some(version),
            id: IdField::Present(id),
            method: Some(method),
            params: Some(params),
            stream: _,
            result: None,
            error: None,
        } if version == JSONRPC_VERSION && method == M::NAME => Some((id, params)),
        _ => None,
    }
}

/// Splits a batch of revision 2025-03-26 into its messages, which are not read yet.
///
/// Stops at the first message beyond `most`: a list of a million numbers takes no more room than its text.
///
/// # Errors
/// Fails if it is not a list, or a longer one.
pub fn decode_batch(bytes: &[u8], most: usize) -> Result<Vec<&RawValue>, serde_json::Error> {
    struct BatchVisitor(usize);
    impl<'de> Visitor<'de> for BatchVisitor {
        type Value = Vec<&'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {} messages", self.0)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut messages = Vec::new();
            while let Some(message) = list.next_element()? {
                if messages.len() == self.0 {
                    return Err(de::Error::invalid_length(self.0 + 1, &self));
                }
                messages.push(message);
            }
            Ok(messages)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let messages = deserializer.deserialize_seq(BatchVisitor(most))?;
    deserializer.end()?;
    Ok(messages)
}

impl Malformed {
    fn parse(error: &dyn fmt::Display) -> Self {
        Self { id: None, error: ErrorObject::parse_error(format!("the message is not JSON: {error}")) }
    }

    fn request(id: Option<RequestId>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, error: ErrorObject::invalid_request(message) }
    }
}

/// Describes a decoding error, and finds the id if there is one. This is the slow path.
#[cold]
fn malformed(text: &str, error: &serde_json::Error) -> Malformed {
    #[derive(Deserialize)]
    struct IdOnly<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    if !error.is_data() {
        return Malformed::parse(error);
    }
    if text.trim_start().starts_with('[') {
        // The list was left at its first bracket: that it is JSON is not known yet.
        return match json::from_str::<IgnoredAny>(text) {
            Ok(IgnoredAny) => {
                Malformed::request(None, "batches are not part of this protocol: send one message at a time")
            }
            Err(error) => Malformed::parse(&error),
        };
    }
    let id = json::from_str::<IdOnly<'_>>(text)
        .ok()
        .and_then(|found| found.id)
        .and_then(|raw| json::from_str(raw.get()).ok());
    Malformed::request(id, format!("not a JSON-RPC message: {}", clip_error(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{CallTool, LONGEST_ID};

    fn refusal(text: &str) -> (Option<RequestId>, i64) {
        let malformed = Message::decode(text.as_bytes()).expect_err(text);
        (malformed.id, malformed.error.code)
    }

    /// Z2: an id is kept for as long as its request runs, so its length has a limit, which the refusal names.
    #[test]
    fn an_id_of_more_than_a_kibibyte_is_refused() {
        let request = |length: usize| {
            let id = "x".repeat(length);
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"m"}}"#)
        };
        assert!(Message::decode(request(LONGEST_ID).as_bytes()).is_ok());
        let refused = Message::decode(request(LONGEST_ID + 1).as_bytes()).expect_err("too long");
        assert_eq!((refused.id, refused.error.code), (None, -32600));
        assert!(refused.error.message.contains("at most 1024 bytes"), "{}", refused.error.message);
    }

    #[test]
    fn member_order_does_not_matter() {
        let text = r#"{"params":{"a":1},"method":"m","id":"x","jsonrpc":"2.0","more":[]}"#;
        let Ok(Message::Request(request)) = Message::decode(text.as_bytes()) else { panic!("a request") };
        assert_eq!((request.id, &*request.method), ("x".into(), "m"));
        assert_eq!(request.params.map(RawValue::get), Some(r#"{"a":1}"#));
        assert!(matches!(request.method, Cow::Borrowed(_)), "a plain method name is borrowed");
    }

    #[test]
    fn what_is_not_a_message_is_told_apart_from_what_is_not_json() {
        assert_eq!(refusal("{"), (None, -32700));
        assert_eq!(refusal(""), (None, -32700));
        assert_eq!(refusal("[]"), (None, -32600));
        assert_eq!(refusal("42"), (None, -32600));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7}"#), (Some(7.into()), -32600));
        assert_eq!(refusal(r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#), (Some(7.into()), -32600));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), (None, -32600));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#), (None, -32600));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"method":5}"#), (Some(7.into()), -32600));
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":7,"method":"m","method":"n"}"#),
            (Some(7.into()), -32600)
        );
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}"#).1,
            -32600
        );
    }

    #[test]
    fn a_call_is_read_in_one_pass_or_left_to_the_other_two() {
        const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let read = |text: String| {
            let call = decode_call::<CallTool>(text.as_bytes());
            call.map(|(id, params)| {
                (id, params.name.into_owned(), params.arguments.map(RawValue::get).map(str::to_owned))
            })
        };
        let params = format!(r#"{{"name":"echo","arguments":{{"a": 1}},{META}}}"#);
        let good = [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#),
            format!(
                r#"{{"params":{params},"more":[],"method":"tools\u002fcall","id":7,"jsonrpc":"2.0","result":null}}"#
            ),
        ];
        for text in good {
            assert_eq!(read(text), Some((7.into(), "echo".to_owned(), Some(r#"{"a": 1}"#.to_owned()))));
        }
        let others = [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{params}}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{params}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{params}}}"#),
            format!(r#"{{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{params}}}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params},"params":{params}}}"#
            ),
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params},"result":{{}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}} {{}}"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","name":"x",{META}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#.to_owned(),
        ];
        for text in others {
            assert_eq!(read(text.clone()), None, "{text}");
        }
    }

    #[test]
    fn a_batch_of_a_million_messages_is_not_listed() {
        let batch = |count: usize| format!("[{}1]", "1,".repeat(count - 1)).into_bytes();
        assert_eq!(decode_batch(&batch(100), 100).expect("as many as allowed").len(), 100);
        assert!(decode_batch(b" []", 100).expect("a list").is_empty());
        for refused in [batch(101), b"{}".to_vec(), b"[1".to_vec(), b"[1] 2".to_vec()] {
            assert!(decode_batch(&refused, 100).is_err());
        }
        let error = decode_batch(&batch(1_000_000), 100).expect_err("too many");
        assert!(error.column() < 300, "{error}: the rest is not read");
    }

    #[test]
    fn an_error_without_an_id_is_a_response() {
        let text = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#;
        let Ok(Message::Response(response)) = Message::decode(text.as_bytes()) else { panic!("a response") };
        assert_eq!(response.id, None);
        assert_eq!(response.outcome.expect_err("an error").code, -32700);
    }
}
