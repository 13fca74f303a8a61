//! The door to the handshake eras: what is not a modern request, and how its answer goes out.

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
    /// Whether what is not a request names a session. Without one it belongs to no era.
    pub(super) fn knows_session(&self, parts: &Parts) -> bool {
        self.settings.old.knows(&parts.headers)
    }

    /// A message of an old revision.
    pub(super) async fn old_message(
        &self,
        mut parts: Parts,
        admitted: Admitted,
        bytes: Bytes,
    ) -> Response<Body> {
        if let Err((id, error)) = headers::agree_where_present(&parts.headers, &bytes) {
            return refuse_with(StatusCode::BAD_REQUEST, id.as_ref(), &error);
        }
        let arrival = self.arrival(&mut parts, admitted);
        // In a box: modern requests, which wait in the same future, need not carry its weight.
        rendered(Box::pin(self.settings.old.post(arrival, bytes)).await)
    }

    /// What is not a POST: streams of old revisions, and the end of their sessions.
    pub(super) fn old_stream(&self, parts: &mut Parts) -> Response<Body> {
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
            Method::GET => self.settings.old.get(&arrival),
            _ => self.settings.old.delete(&arrival),
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
        Reply::Events(feed) => stream(Body::other(*feed)),
    }
}

fn not_here() -> Response<Body> {
    let why = "this endpoint takes POST: streams are opened by subscriptions/listen; GET and DELETE are for sessions of \
               earlier revisions, named by mcp-session-id";
    refuse_with(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
}
