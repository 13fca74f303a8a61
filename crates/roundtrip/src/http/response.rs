//! Responses: a JSON-RPC message, a stream, a refusal.

use std::time::Duration;

use http::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName,
    HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Response, StatusCode};
use roundtrip_core::error::{BUSY, Stage, http_status};
use roundtrip_core::wire::{ErrorObject, RequestId, encode_error};

use super::body::Body;
use super::limits::HttpLimits;
use super::receive::Unread;
use super::{EVENT_STREAM, JSON};

/// Builds a response.
pub(super) fn respond(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// Responds with a JSON-RPC message.
pub(super) fn json(status: StatusCode, message: Vec<u8>) -> Response<Body> {
    let mut response = respond(status, Body::json(message));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    let more = match status {
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "POST")),
        _ => None,
    };
    if let Some((name, value)) = more {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Adds a challenge to a response. Pages may read it, if their origin may call at all (O8).
pub(super) fn challenged(mut response: Response<Body>, challenge: HeaderValue) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(WWW_AUTHENTICATE, challenge);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("WWW-Authenticate"));
    response
}

/// Head of the response to a call that has failed: its status, and the time to wait if it was refused for now.
#[derive(Clone, Copy)]
pub(super) struct Head {
    status: StatusCode,
    wait: Option<Duration>,
}

impl Head {
    pub(super) fn of(error: &ErrorObject) -> Self {
        let status = StatusCode::from_u16(http_status(error, Stage::Call)).unwrap_or(StatusCode::OK);
        Self { status, wait: error.retry_after().filter(|_| status != StatusCode::OK) }
    }

    /// Responds with a JSON-RPC message.
    pub(super) fn json(self, message: Vec<u8>) -> Response<Body> {
        let mut response = json(self.status, message);
        if let Some(wait) = self.wait {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Responds with a stream of events.
pub(super) fn stream(body: Body) -> Response<Body> {
    let mut response = respond(StatusCode::OK, body);
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Tells nginx and similar proxies not to buffer events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Responds with an internal error from before the call.
pub(super) fn failed(error: &ErrorObject) -> Response<Body> {
    refuse_with(StatusCode::INTERNAL_SERVER_ERROR, None, error)
}

/// Responds with an error about the request itself.
pub(super) fn refuse(id: Option<&RequestId>, error: &ErrorObject) -> Response<Body> {
    let status = StatusCode::from_u16(http_status(error, Stage::Request)).unwrap_or(StatusCode::BAD_REQUEST);
    refuse_with(status, id, error)
}

/// Responds with an error and a status of its own.
pub(super) fn refuse_with(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Response<Body> {
    tracing::debug!(%status, %error, "request refused");
    let mut message = Vec::with_capacity(128);
    encode_error(&mut message, id, error);
    json(status, message)
}

/// Responds to a body that is compressed. Only the message itself is taken (RFC 9110, 15.5.16).
pub(super) fn refuse_coding() -> Response<Body> {
    let error = ErrorObject::invalid_request("send the message without content-encoding");
    let mut response = refuse_with(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error);
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}

/// Responds to a message that could not be read.
pub(super) fn unread(limits: &HttpLimits, why: &Unread) -> Response<Body> {
    let (status, message) = match why {
        Unread::Busy => {
            let error =
                ErrorObject::new(BUSY, "the server is busy: too many messages at once; try again later");
            return refuse_with(StatusCode::SERVICE_UNAVAILABLE, None, &error);
        }
        Unread::TooLarge => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the message is larger than {} bytes", limits.body_bytes))
        }
        Unread::TooSlow => {
            (StatusCode::REQUEST_TIMEOUT, format!("the message took longer than {:?}", limits.body_timeout))
        }
        Unread::Broken => (StatusCode::BAD_REQUEST, "the message broke off".to_owned()),
    };
    refuse_with(status, None, &ErrorObject::invalid_request(message))
}
