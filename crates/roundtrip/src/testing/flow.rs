//! One flow, played against a server without a client.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use roundtrip_core::wire::{
    Message, NotificationMethod as _, PartNotification, PartNotificationParams, STREAM_EXTENSION,
    decode_params, encode_request,
};
use serde_json::{Map, Value, json};

use crate::server::{Endpoint, Event, Peer};

/// Request of one round: from the second round on, with `inputResponses` and `requestState`.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) method: &'static str,
    pub(super) params: Map<String, Value>,
}

/// Reply to one round: a result, `input_required`, or an error.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RoundReply {
    Done(Value),
    Asked { questions: BTreeMap<String, Value>, state: Option<Value> },
    Failed(String),
}

impl Flow {
    /// Runs a round; parts of its result are added to `parts`. With `polls`, the handler is dropped after that many, and there is
    /// no reply.
    pub(super) async fn round(
        &self,
        endpoint: &Endpoint,
        peer: &Peer,
        polls: Option<usize>,
        parts: &mut Vec<PartNotificationParams>,
    ) -> Option<RoundReply> {
        let bytes = encode_request(&1.into(), self.method, &self.params).ok()?;
        let Ok(Message::Request(request)) = Message::decode(&bytes) else { return None };
        let decoded = match endpoint.decode(&request) {
            Ok(decoded) => decoded,
            Err(error) => return Some(RoundReply::Failed(error.to_string())),
        };
        let mut call = endpoint.begin(request.id.clone(), &decoded, peer);
        drop(decoded);
        let mut polled = 0;
        let outcome = poll_fn(|cx| {
            polled += 1;
            match call.poll_event(cx) {
                Poll::Ready(Event::Response(outcome)) => Poll::Ready(Some(outcome)),
                _ if polls.is_some_and(|polls| polled >= polls) => Poll::Ready(None),
                Poll::Ready(Event::Notification(message)) => {
                    parts.extend(read_part(&message));
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
        Some(match outcome {
            Err(error) => RoundReply::Failed(error.to_string()),
            Ok(result) => read(serde_json::to_value(&result).unwrap_or_default()),
        })
    }

    /// Returns the request of the next round, with `inputResponses` and `requestState`.
    pub(super) fn next(&self, answers: Map<String, Value>, state: Option<Value>) -> Self {
        let mut params = self.params.clone();
        params.remove("inputResponses");
        params.remove("requestState");
        if !answers.is_empty() {
            params.insert("inputResponses".into(), answers.into());
        }
        if let Some(state) = state {
            params.insert("requestState".into(), state);
        }
        Self { method: self.method, params }
    }
}

/// Reads a part of a result.
fn read_part(message: &[u8]) -> Option<PartNotificationParams> {
    match Message::decode(message) {
        Ok(Message::Notification(notification)) if notification.method == PartNotification::NAME => {
            decode_params(notification.params).ok()
        }
        _ => None,
    }
}

fn read(mut result: Value) -> RoundReply {
    if result["resultType"] != "input_required" {
        return RoundReply::Done(result);
    }
    let questions = match result["inputRequests"].take() {
        Value::Object(questions) => questions.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    let state = result.get("requestState").cloned();
    RoundReply::Asked { questions, state }
}

/// Returns the `_meta` of a client that can be asked and told everything.
pub(super) fn meta() -> Value {
    json!({
        "progressToken": "replay",
        "io.modelcontextprotocol/protocolVersion": roundtrip_core::wire::ProtocolVersion::LATEST.as_str(),
        "io.modelcontextprotocol/logLevel": "debug",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {}, "url": {} },
            "sampling": { "tools": {} },
            "roots": {},
            "extensions": { (STREAM_EXTENSION): {} },
        },
    })
}
