//! HTTP link to a server: POST, GET and DELETE, in either era.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Response, Url};
use roundtrip_core::wire::{ProtocolVersion, RequestId, encode_cancelled, encode_header_value};

use super::{Failure, Link, answer, broken, resume, shown};
use crate::client::{ApiMisuse, BoxFuture, Error, Incoming, Outgoing, PeerMisbehaved, Sent};
use crate::http::{EVENT_STREAM, JSON, name};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Longest session id that is accepted.
const MAX_SESSION_ID: usize = 4 * 1024;

/// URL of a server, and the HTTP client and headers to reach it.
#[derive(Clone)]
pub(super) struct Http {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

/// A session: the headers that all its requests share.
#[derive(Clone, Default)]
pub(super) struct At {
    id: Option<HeaderValue>,
    version: Option<ProtocolVersion>,
}

impl Http {
    /// Returns the headers of a modern request. Those of the protocol win over those of the user (H2, H3).
    fn headers_for(&self, outgoing: &Outgoing) -> Result<HeaderMap, Error> {
        let value = |text: &str| {
            HeaderValue::from_str(text)
                .map_err(|error| ApiMisuse::Header(format!("{text:?} cannot be in a header: {error}")))
        };
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, BOTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(outgoing.version.as_str()));
        headers.insert(name::METHOD, value(outgoing.method)?);
        if let Some(target) = &outgoing.target {
            headers.insert(name::NAME, value(&encode_header_value(target))?);
        }
        for (name, text) in &outgoing.mirrored {
            let name = HeaderName::try_from(name)
                .map_err(|error| ApiMisuse::Header(format!("`{name}` cannot name a header: {error}")))?;
            headers.insert(name, value(text)?);
        }
        Ok(headers)
    }

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

    async fn exchange(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        let mut request = self.client.request(method, self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map_err(|error| {
            let sent = if error.is_connect() || error.is_builder() { Sent::No } else { Sent::Maybe };
            broken(&format!("cannot reach {}", shown(&self.url)), error, sent)
        })
    }

    /// Posts a message in a session; a status that is not a success is a failure.
    async fn post(&self, at: &At, message: Bytes) -> Result<Response, Failure> {
        let mut headers = self.headers_at(at, BOTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.exchange(Method::POST, headers, Some(message)).await?;
        if response.status().is_success() { Ok(response) } else { Err(refused(at, response).await) }
    }

    /// Opens the stream of messages that belong to no request, or resumes the one whose last event is given.
    pub(super) async fn get(&self, at: &At, last_id: Option<&[u8]>) -> Result<Response, Failure> {
        let mut headers = self.headers_at(at, HeaderValue::from_static(EVENT_STREAM));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.exchange(Method::GET, headers, None).await?;
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
async fn refused(at: &At, response: Response) -> Failure {
    let status = response.status();
    let refusal = match answer::refused(response).await {
        Ok(refusal) => refusal,
        Err(error) => return error.into(),
    };
    let words = refusal.error.as_ref().map(|error| error.message.to_lowercase());
    let no_session =
        status == StatusCode::BAD_REQUEST && words.is_some_and(|words| words.contains("session"));
    if at.id.is_some() && (status == StatusCode::NOT_FOUND || no_session) {
        return Failure::Gone;
    }
    Failure::Refused(refusal)
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

impl Link for Http {
    type At = At;
    const PROBES: bool = false;
    const SILENCE: Duration = Duration::from_secs(10);
    const SHARED: bool = false;

    fn life(&self) -> Option<u64> {
        Some(1)
    }

    async fn modern(&self, outgoing: &Outgoing) -> Result<Incoming, Failure> {
        let headers = self.headers_for(outgoing)?;
        let response = self.exchange(Method::POST, headers, Some(outgoing.message.clone())).await?;
        answer::read(response).await
    }

    fn begin(&self, _: RequestId, message: Bytes) -> BoxFuture<Result<(At, Incoming), Failure>> {
        let this = self.clone();
        Box::pin(async move {
            let response = this.post(&At::default(), message).await?;
            let at = At { id: session_of(&response), version: None };
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

    fn request(&self, at: &At, _: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, Failure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            let response = this.post(&at, message).await?;
            if answer::is_stream(&response) {
                return Ok(resume::stream(this, at, response));
            }
            answer::read(response).await
        })
    }

    fn tell(&self, at: &At, message: Bytes) -> BoxFuture<Result<(), Failure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move { this.post(&at, message).await.map(drop) })
    }

    fn listen(&self, at: &At) -> BoxFuture<Result<Incoming, Failure>> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            let response = this.get(&at, None).await?;
            Ok(resume::endless(this, at, response))
        })
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

    fn end(&self, at: &At) -> BoxFuture<()> {
        let (this, at) = (self.clone(), at.clone());
        Box::pin(async move {
            if at.id.is_some() {
                let headers = this.headers_at(&at, BOTH);
                // A server may refuse to let clients end sessions, which does no harm.
                drop(this.exchange(Method::DELETE, headers, None).await);
            }
        })
    }

    /// Does nothing: connections end with their responses.
    fn shut(&self) {}
}
