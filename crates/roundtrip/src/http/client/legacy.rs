//! Hand-over to the handshake eras: sessions over HTTP, with GET and DELETE beside POST.

pub(super) mod position;
mod resume;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Response;
use roundtrip_core::wire::{ProtocolVersion, RequestId, encode_cancelled};

use super::answer;
#[cfg(feature = "oauth")]
use super::authorized::changed;
use super::link::{BOTH, Http};
#[cfg(feature = "oauth")]
use crate::client::until;
use crate::client::{BoxFuture, Error, Incoming, PeerMisbehaved};
use crate::http::{EVENT_STREAM, JSON, name};
use crate::legacy::client::{EraClient, SessionFailure, SessionLink};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Longest session id that is accepted.
const MAX_SESSION_ID: usize = 4 * 1024;

/// Connection of a client to its server.
pub(super) type Connection = EraClient<Http>;

/// A session: the headers that all its requests share.
#[derive(Clone, Default)]
pub(super) struct At {
    id: Option<HeaderValue>,
    version: Option<ProtocolVersion>,
    /// Number of the credentials that it was begun with; `None` before it has begun. No message of others has its id.
    credentials: Option<u64>,
}

impl Http {
    /// Returns the headers of a request in a session.
    fn headers_at(&self, at: &At, accept: HeaderValue) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, accept);
        if let Some(id) = &at.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = at.version {
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        headers
    }

    /// Sends a request in a session, which is over once the client has other credentials.
    async fn exchange_at(
        &self,
        at: &At,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, SessionFailure> {
        // Before a token is looked for in vain; it may be of other credentials in the end all the same.
        if !self.is_current(at) {
            return Err(SessionFailure::Gone);
        }
        let sent = self.exchange_with(at.credentials, method, headers, body).await?;
        sent.ok_or(SessionFailure::Gone)
    }

    /// Posts a message in a session; a status that is not a success is a failure.
    async fn post(&self, at: &At, message: Bytes) -> Result<Response, SessionFailure> {
        let mut headers = self.headers_at(at, BOTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.exchange_at(at, Method::POST, headers, Some(message)).await?;
        if response.status().is_success() { Ok(response) } else { Err(refused(at, response).await) }
    }

    /// Opens the stream of messages that belong to no request, or resumes the one whose last event is given.
    async fn get(&self, at: &At, last_id: Option<&[u8]>) -> Result<Response, SessionFailure> {
        let mut headers = self.headers_at(at, HeaderValue::from_static(EVENT_STREAM));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.exchange_at(at, Method::GET, headers, None).await?;
        match (response.status().is_success(), answer::is_stream(&response)) {
            (true, true) => Ok(response),
            (true, false) => {
                let why = format!("HTTP {} where a stream was due", response.status());
                Err(Error::from(PeerMisbehaved::UnexpectedResponse(why)).into())
            }
            (false, _) => Err(refused(at, response).await),
        }
    }
}

/// Reads a refusal. In a session, 404 means that the session has ended (transports, "Session Management"); some
/// servers send 400 with a text instead.
async fn refused(at: &At, response: Response) -> SessionFailure {
    let status = response.status();
    let refusal = match answer::refused(response).await {
        Ok(refusal) => refusal,
        Err(error) => return error.into(),
    };
    let words = refusal.error.as_ref().map(|error| error.message.to_lowercase());
    let no_session =
        status == StatusCode::BAD_REQUEST && words.is_some_and(|words| words.contains("session"));
    if at.id.is_some() && (status == StatusCode::NOT_FOUND || no_session) {
        return SessionFailure::Gone;
    }
    SessionFailure::Refused(Box::new(refusal))
}

/// Returns the session id that a response brings, if it can be sent back.
fn session_of(response: &Response) -> Option<HeaderValue> {
    let id = response.headers().get(SESSION_ID)?;
    let fits = id.len() <= MAX_SESSION_ID && id.as_bytes().iter().all(u8::is_ascii_graphic);
    let mut id = id.clone();
    // The id is all a client needs to use the session.
    id.set_sensitive(true);
    fits.then_some(id)
}

impl SessionLink for Http {
    type At = At;
    const SILENCE: Duration = Duration::from_secs(10);
    const SHARED: bool = false;

    fn begin(&self, _: RequestId, message: Bytes) -> BoxFuture<Result<(At, Incoming), SessionFailure>> {
        let this = self.clone();
        Box::pin(async move {
            // Before the token is taken, which is of these credentials or of later ones.
            let credentials = Some(this.credentials());
            let response = this.post(&At::default(), message).await?;
            let at = At { id: session_of(&response), version: None, credentials };
            let incoming = if answer::is_stream(&response) {
                resume::stream(this, at.clone(), response)
            } else {
                answer::read(response).await?
            };
            Ok((at, incoming))
        })
    }

    fn agree(&self, at: &mut At, version: ProtocolVersion) {
        at.version = Some(version);
    }

    fn request(&self, at: &At, _: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, SessionFailure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            let response = this.post(&at, message).await?;
            if answer::is_stream(&response) {
                return Ok(resume::stream(this, at, response));
            }
            Ok(answer::read(response).await?)
        })
    }

    fn tell(&self, at: &At, message: Bytes) -> BoxFuture<Result<(), SessionFailure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move { this.post(&at, message).await.map(drop) })
    }

    fn listen(&self, at: &At) -> BoxFuture<Result<Incoming, SessionFailure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            #[cfg(feature = "oauth")]
            let changed = this.oauth.authorizer.as_deref().map(changed);
            let response = this.get(&at, None).await?;
            let incoming = resume::endless(this, at, response);
            #[cfg(feature = "oauth")]
            if let Some(changed) = changed {
                return Ok(until(incoming, changed));
            }
            Ok(incoming)
        })
    }

    fn is_current(&self, at: &At) -> bool {
        at.credentials.is_none_or(|credentials| credentials == self.credentials())
    }

    /// Sends a cancellation: in a session, closing the connection does not cancel.
    fn cancel(&self, at: &At, id: &RequestId) -> BoxFuture<()> {
        let message = encode_cancelled(id, None);
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            if let Ok(message) = message {
                drop(this.post(&at, message.into()).await);
            }
        })
    }

    #[cfg(feature = "opentelemetry")]
    fn session_id(at: &At) -> Option<&str> {
        at.id.as_ref().and_then(|id| id.to_str().ok())
    }

    fn end(&self, at: &At) -> BoxFuture<()> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            if at.id.is_some() {
                let headers = this.headers_at(&at, BOTH);
                // A server may refuse to let clients end sessions, which does no harm.
                drop(this.exchange_at(&at, Method::DELETE, headers, None).await);
            }
        })
    }
}
