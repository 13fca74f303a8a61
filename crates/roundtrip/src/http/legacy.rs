//! Hand-over to the handshake eras: messages that are not modern, and their responses.

use http::header::{HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use memchr::memmem;
use roundtrip_core::error::DECLINED;
use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{ErrorObject, Malformed, Message, decode_batch, json};

use super::body::Body;
use super::headers::{self, Accepts};
use super::name;
use super::response::{challenged, json, refuse, refuse_with, respond, stream};
use super::service::{Admitted, Http, Identified, Instead};
use crate::legacy::server::{self, Arrival, LONGEST_BATCH, Reply, SESSION};
pub(super) use crate::legacy::server::{LegacyHttp, Taken};

impl Http {
    /// Handles a message of the handshake eras.
    pub(super) fn legacy_message(
        &self,
        parts: &mut Parts,
        admitted: &Admitted,
        message: Message<'_>,
    ) -> Instead<'static> {
        if let Err(refused) = agree_where_present(&parts.headers, &message) {
            return (*refused).into();
        }
        let arrival = self.arrival(parts, admitted);
        Instead::Legacy(Box::new(self.settings.legacy.post(&arrival, message)))
    }

    /// Handles a message that names a session and is not a request.
    pub(super) fn session_message(
        &self,
        parts: &mut Parts,
        admitted: &Admitted,
        message: Result<Message<'_>, Malformed>,
        bytes: &[u8],
    ) -> Instead<'static> {
        match message {
            Ok(message) => self.legacy_message(parts, admitted, message),
            Err(_) if bytes.trim_ascii_start().starts_with(b"[") => {
                self.legacy_batch(parts, admitted, bytes).unwrap_or_else(|refused| (*refused).into())
            }
            Err(malformed) => refuse(malformed.id.as_ref(), &malformed.error).into(),
        }
    }

    fn legacy_batch(
        &self,
        parts: &mut Parts,
        admitted: &Admitted,
        bytes: &[u8],
    ) -> Result<Instead<'static>, Box<Response<Body>>> {
        let wrong = |why: &'static str| Box::new(refuse(None, &ErrorObject::invalid_request(why)));
        let batch = decode_batch(bytes, LONGEST_BATCH);
        let batch = batch.map_err(|_| wrong("a batch is a list of at most 100 messages"))?;
        if batch.is_empty() {
            return Err(wrong("a batch has at least one message, and at most 100"));
        }
        // All messages are decoded before any is handled.
        let mut messages = Vec::with_capacity(batch.len());
        for message in batch {
            let message = Message::decode(message.get().as_bytes());
            let message = message.map_err(|_| wrong("every entry of a batch is a message"))?;
            agree_where_present(&parts.headers, &message)?;
            messages.push(message);
        }
        let arrival = self.arrival(parts, admitted);
        Ok(Instead::Legacy(Box::new(self.settings.legacy.batch(&arrival, messages))))
    }

    /// Answers GET and DELETE in a session: streams, and the end of the session. `None` without a session.
    pub(super) fn legacy_stream(&self, parts: &mut Parts, sender: Identified) -> Option<Response<Body>> {
        let method = parts.method.clone();
        if !matches!(method, Method::GET | Method::DELETE) || !self.settings.legacy.knows(&parts.headers) {
            return None;
        }
        let accepts = headers::accepts(&parts.headers).unwrap_or(Accepts::Json);
        let arrival = self.arrival(parts, &Admitted { accepts, sender });
        Some(self.rendered(match method {
            Method::GET => self.settings.legacy.get(&arrival),
            _ => self.settings.legacy.delete(&arrival),
        }))
    }

    /// Waits for the response to a message of the handshake eras.
    pub(super) async fn legacy_response(&self, taken: Taken) -> Response<Body> {
        self.rendered(taken.reply().await)
    }

    fn rendered(&self, reply: Reply) -> Response<Body> {
        match reply {
            Reply::Bare(status) => respond(status, Body::empty()),
            Reply::Json(status, message) => match self.challenge_in(&message) {
                Some(challenge) => challenged(json(StatusCode::FORBIDDEN, message), challenge),
                None => json(status, message),
            },
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

    /// Returns the `WWW-Authenticate` header of a response, if that is an error for lack of scopes.
    fn challenge_in(&self, message: &[u8]) -> Option<HeaderValue> {
        if !self.is_guarded() {
            return None;
        }
        // Results may be long: the code is looked for before anything is decoded.
        memmem::find(message, format!("\"code\":{DECLINED}").as_bytes())?;
        let Ok(Message::Response(response)) = Message::decode(message) else { return None };
        self.challenge(response.outcome.as_ref().err()?)
    }

    fn arrival<'a>(&self, parts: &'a mut Parts, admitted: &Admitted) -> Arrival<'a> {
        Arrival {
            principal: admitted.sender.principal.clone(),
            access: admitted.sender.access.clone(),
            address: self.address,
            extensions: std::mem::take(&mut parts.extensions),
            headers: &parts.headers,
            accepts: server::Accepts {
                json: admitted.accepts != Accepts::Stream,
                streams: admitted.accepts != Accepts::Json,
                keep_alive: self.http_limits().keep_alive,
            },
        }
    }
}

/// Checks `Mcp-Method` and `Mcp-Name` against a message, where they are present: the handshake eras do not require them.
fn agree_where_present(headers: &HeaderMap, message: &Message<'_>) -> Result<(), Box<Response<Body>>> {
    if !headers.contains_key(&name::METHOD) && !headers.contains_key(&name::NAME) {
        return Ok(());
    }
    let (id, method, params) = match message {
        Message::Request(request) => (Some(&request.id), &*request.method, request.params),
        Message::Notification(notification) => (None, &*notification.method, notification.params),
        Message::Response(_) => return Ok(()),
    };
    let target = || {
        let params = params.and_then(|params| json::from_str::<Params>(params.get()).ok());
        params.and_then(|params| params.target(method))
    };
    headers::agree_with(headers, method, target)
        .map_err(|error| Box::new(refuse_with(StatusCode::BAD_REQUEST, id, &error)))
}
