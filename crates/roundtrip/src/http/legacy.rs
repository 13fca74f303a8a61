//! Hand-over to the handshake eras: requests that are not modern, and their responses.

use bytes::Bytes;
use http::header::HeaderValue;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use roundtrip_core::wire::ErrorObject;

use super::body::Body;
use super::headers::{self, Accepts};
use super::service::{Admitted, Http, failed, json, refuse_with, respond, stream};
use crate::legacy::server::{Arrival, Reply, SESSION};
pub(super) use crate::legacy::server::{LONGEST_BATCH, LegacyHttp};

impl Http {
    /// Returns whether a message that is not a request names a session. Without one it belongs to no era.
    pub(super) fn knows_session(&self, parts: &Parts) -> bool {
        self.settings.legacy.knows(&parts.headers)
    }

    /// Answers a message of the handshake eras.
    pub(super) async fn legacy_message(
        &self,
        mut parts: Parts,
        admitted: Admitted,
        bytes: Bytes,
    ) -> Response<Body> {
        if let Err((id, error)) = headers::agree_where_present(&parts.headers, &bytes) {
            return refuse_with(StatusCode::BAD_REQUEST, id.as_ref(), &error);
        }
        let arrival = self.arrival(&mut parts, admitted);
        // Boxed: modern requests wait in the same future and need not carry its size.
        rendered(Box::pin(self.settings.legacy.post(arrival, bytes)).await)
    }

    /// Answers GET and DELETE: streams of the handshake eras, and the end of their sessions.
    pub(super) fn legacy_stream(&self, parts: &mut Parts) -> Response<Body> {
        if let Some(why) = self.settings.gate.refuses(&parts.headers) {
            return refuse_with(StatusCode::FORBIDDEN, None, &ErrorObject::invalid_request(why));
        }
        let (method, accepts) =
            (parts.method.clone(), headers::accepts(&parts.headers).unwrap_or(Accepts::Json));
        if !matches!(method, Method::GET | Method::DELETE) || !self.knows_session(parts) {
            return not_here();
        }
        let principal = match self.principal_of(parts) {
            Ok(principal) => principal,
            Err(error) => return failed(&error),
        };
        let arrival = self.arrival(parts, Admitted { accepts, principal });
        rendered(match method {
            Method::GET => self.settings.legacy.get(&arrival),
            _ => self.settings.legacy.delete(&arrival),
        })
    }

    fn arrival<'a>(&self, parts: &'a mut Parts, admitted: Admitted) -> Arrival<'a> {
        let Admitted { accepts, principal } = admitted;
        Arrival {
            principal,
            address: self.address,
            extensions: std::mem::take(&mut parts.extensions),
            headers: &parts.headers,
            json: accepts != Accepts::Stream,
            streams: accepts != Accepts::Json,
            keep_alive: self.http_limits().keep_alive,
        }
    }
}

fn rendered(reply: Reply) -> Response<Body> {
    match reply {
        Reply::Bare(status) => respond(status, Body::empty()),
        Reply::Json(status, message) => json(status, message),
        Reply::Session(message, id) => {
            let mut response = json(StatusCode::OK, message);
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(SESSION, id);
            }
            response
        }
        Reply::Events(events) => stream(Body::other(*events)),
    }
}

fn not_here() -> Response<Body> {
    let why = "this endpoint takes POST: streams are opened by subscriptions/listen; GET and DELETE are for sessions of \
               earlier revisions, named by mcp-session-id";
    refuse_with(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
}
