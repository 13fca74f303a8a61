//! What goes out at the door.

use http::StatusCode;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{ErrorObject, RequestId, encode_error};

use super::event_body::EventBody;

/// What goes out.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A status that says it all.
    Bare(StatusCode),
    /// One message.
    Json(StatusCode, Vec<u8>),
    /// The answer that begins a session, and its id.
    Session(Vec<u8>, String),
    /// Messages as they come.
    Events(Box<EventBody>),
}

/// A reply that says no.
pub(super) type Refusal = Reply;

pub(super) fn needs_session(id: Option<&RequestId>) -> Refusal {
    let error = ErrorObject::invalid_request(
        "mcp-session-id is missing: begin with `initialize`, or speak revision 2026-07-28, which has no sessions",
    );
    refuse(StatusCode::BAD_REQUEST, id, &error)
}

pub(super) fn no_session(id: Option<&RequestId>) -> Refusal {
    let error =
        ErrorObject::invalid_request("there is no such session, or no longer: begin anew with `initialize`");
    refuse(StatusCode::NOT_FOUND, id, &error)
}

pub(super) fn not_allowed(why: &'static str) -> Refusal {
    refuse(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
}

/// A request that came to nothing: an exchange of messages all the same, unless there is too much going on.
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
