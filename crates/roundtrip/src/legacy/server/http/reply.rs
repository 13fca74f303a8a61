//! Responses of the legacy HTTP endpoint.

use http::StatusCode;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{ErrorObject, RequestId, encode_error};

use super::event_body::EventBody;

/// A response.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A status without a body.
    Bare(StatusCode),
    /// One message.
    Json(StatusCode, Vec<u8>),
    /// The answer to `initialize`, and the session id.
    Session(Vec<u8>, String),
    /// Messages as they occur.
    Events(Box<EventBody>),
}

/// A response that refuses a request.
pub(super) type Refusal = Reply;

pub(super) fn needs_session(id: Option<&RequestId>) -> Refusal {
    let error = ErrorObject::invalid_request(
        "mcp-session-id is missing: begin with `initialize`, or speak revision 2026-07-28, which has no sessions",
    );
    refuse(StatusCode::BAD_REQUEST, id, &error)
}

pub(super) fn no_session(id: Option<&RequestId>) -> Refusal {
    let error = ErrorObject::invalid_request(
        "this session does not exist or has ended: begin again with `initialize`",
    );
    refuse(StatusCode::NOT_FOUND, id, &error)
}

pub(super) fn not_allowed(why: &'static str) -> Refusal {
    refuse(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
}

/// Answers a failed request: with status 200, as JSON-RPC over HTTP has it, unless the server is busy.
pub(super) fn failed(id: Option<&RequestId>, error: &ErrorObject) -> Refusal {
    refuse(if error.code == BUSY { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }, id, error)
}

pub(super) fn refuse(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Refusal {
    tracing::debug!(%status, %error, "request refused");
    let mut message = Vec::with_capacity(128);
    encode_error(&mut message, id, error);
    Reply::Json(status, message)
}

pub(super) fn events(body: EventBody) -> Reply {
    Reply::Events(Box::new(body))
}
