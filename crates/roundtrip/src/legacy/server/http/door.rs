//! Requests of the old eras over HTTP, and their responses.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{
    CancelledNotification, CancelledNotificationParams, ErrorObject, Message, NotificationMethod as _,
    ProtocolVersion, Request, RequestId, UNSUPPORTED_PROTOCOL_VERSION, decode_params, encode_error,
    peek_version,
};
use serde_json::value::RawValue;

use super::super::session::{Handled, Session, answer};
use super::super::settings::{Handshake, Served};
use super::super::sink::{Sink, Weight};
use super::super::terms::Terms;
use super::connection::Resumable;
use super::feed::{Abort, Feed, Owner};
use super::sessions::{HttpSession, Sessions};
use super::stream::{Finish, First, Stream};
use crate::legacy::handshake::{INITIALIZE, refusal, revision};
use crate::server::{Endpoint, Listens, Peer, Principal};

/// Names a session, in requests and in the answer that begins it.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What a request that says nothing of its revision speaks (transports, "Protocol Version Header").
const UNSAID: ProtocolVersion = ProtocolVersion::V2025_03_26;
/// The most messages in one batch.
const BATCH: usize = 100;

/// The old side of an HTTP endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    endpoint: Endpoint,
    settings: Handshake,
    sessions: Arc<Sessions>,
}

/// What came in.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// What the HTTP stack in front attached to the request.
    pub(crate) extensions: http::Extensions,
    pub(crate) principal: Option<Principal>,
    /// Whether the client takes a stream.
    pub(crate) streams: bool,
    pub(crate) keep_alive: Duration,
}

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
    Events(Box<Feed>),
}

/// A reply that says no.
type Refusal = Reply;

impl Door {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let settings = Handshake::of(endpoint);
        Self { endpoint: endpoint.clone(), settings, sessions: Sessions::new(settings) }
    }

    /// Whether the server's author wants any of this.
    pub(crate) fn is_open(&self) -> bool {
        self.settings.served != Served::Refused
    }

    /// Whether a request that is not a modern one speaks an old revision.
    pub(crate) fn takes(&self, headers: &HeaderMap, request: &Request<'_>) -> bool {
        let old = || match headers.get(VERSION) {
            Some(version) => version.to_str().is_ok_and(|version| revision(version).is_some()),
            None => true,
        };
        peek_version(request.params).is_none()
            && (request.method == INITIALIZE || self.is_open() && (headers.contains_key(SESSION) || old()))
    }

    /// Takes a message, or a batch of them.
    pub(crate) async fn post(&self, arrival: Arrival<'_>, bytes: &[u8]) -> Reply {
        let posted = async {
            let version = stated_version(arrival.headers)?;
            if bytes.trim_ascii_start().starts_with(b"[") {
                return self.batch(&arrival, bytes).await;
            }
            let message = Message::decode(bytes).map_err(|malformed| {
                refuse(StatusCode::BAD_REQUEST, malformed.id.as_ref(), &malformed.error)
            })?;
            match message {
                Message::Request(request) if request.method == INITIALIZE => {
                    self.initialize(&arrival, &request)
                }
                Message::Request(request) => match self.session(&arrival, Some(&request.id))? {
                    Some(session) => self.call(&arrival, &session, &request).await,
                    None => self.lone_call(&arrival, version.unwrap_or(UNSAID), &request).await,
                },
                other => {
                    if let Some(session) = self.session(&arrival, None)? {
                        tell(&session, other)?;
                    }
                    Ok(Reply::Bare(StatusCode::ACCEPTED))
                }
            }
        };
        posted.await.unwrap_or_else(|refused| refused)
    }

    /// Opens the stream of what is said outside of any call, or goes on with one that broke off.
    pub(crate) fn get(&self, arrival: &Arrival<'_>) -> Reply {
        let opened = || {
            let session = match self.session(arrival, None)? {
                Some(session) => session,
                None => return Err(not_allowed("without sessions there is nothing to listen to")),
            };
            if !arrival.streams {
                let error =
                    ErrorObject::invalid_request("a stream is all there is here: accept text/event-stream");
                return Err(refuse(StatusCode::NOT_ACCEPTABLE, None, &error));
            }
            let (stream, after) = match arrival.headers.get(LAST_EVENT) {
                Some(event) => place_of(&session, event)?,
                None => (Arc::clone(&session.standalone), None),
            };
            stream.come_back();
            let changes = match stream.number {
                0 => Some(session.session.subscription().map_err(|error| failed(None, &error))?),
                _ => None,
            };
            // One that comes back has been told already how to.
            let primed = after.is_none() && can_resume(&session);
            let owner = Owner::Session(session, changes);
            Ok(events(Feed::new(stream, after, primed, arrival.keep_alive, owner)))
        };
        opened().unwrap_or_else(|refused: Refusal| refused)
    }

    /// Ends a session.
    pub(crate) fn delete(&self, arrival: &Arrival<'_>) -> Reply {
        let ended = || match (self.settings.served, session_id(arrival.headers)?) {
            (Served::Sessions, Some(id)) if self.sessions.end(id, arrival.principal.as_ref()) => {
                Ok(Reply::Bare(StatusCode::NO_CONTENT))
            }
            (Served::Sessions, Some(_)) => Err(no_session(None)),
            (Served::Sessions, None) => Err(needs_session(None)),
            _ => Err(not_allowed("there are no sessions to end")),
        };
        ended().unwrap_or_else(|refused: Refusal| refused)
    }

    /// The session a request belongs to; none where there are no sessions.
    fn session(
        &self,
        arrival: &Arrival<'_>,
        id: Option<&RequestId>,
    ) -> Result<Option<Arc<HttpSession>>, Refusal> {
        if self.settings.served != Served::Sessions {
            return Ok(None);
        }
        let named = session_id(arrival.headers)?.ok_or_else(|| needs_session(id))?;
        let found = self.sessions.find(named, arrival.principal.as_ref());
        found.map(Some).ok_or_else(|| no_session(id))
    }

    fn initialize(&self, arrival: &Arrival<'_>, request: &Request<'_>) -> Result<Reply, Refusal> {
        let begun = || {
            if !self.is_open() {
                return Err(refusal(request.params));
            }
            if self.settings.served == Served::Sessions && arrival.headers.contains_key(SESSION) {
                return Err(ErrorObject::invalid_request("this session has been initialized already"));
            }
            let (terms, agreed) = Terms::agree(&self.endpoint, request.params, UNSAID)?;
            let id = match self.settings.served {
                Served::Sessions => {
                    let session = Session::new(&self.endpoint, self.settings, terms)?;
                    Some(self.sessions.open(session, arrival.principal.clone())?)
                }
                _ => None,
            };
            Ok((id, agreed))
        };
        let (id, agreed) = begun().map_err(|error| match error.code {
            UNSUPPORTED_PROTOCOL_VERSION => refuse(StatusCode::BAD_REQUEST, Some(&request.id), &error),
            _ => failed(Some(&request.id), &error),
        })?;
        let agreed = answer(&request.id, Ok(agreed));
        Ok(match id {
            Some(id) => Reply::Session(agreed, id),
            None => Reply::Json(StatusCode::OK, agreed),
        })
    }

    async fn call(
        &self,
        arrival: &Arrival<'_>,
        session: &Arc<HttpSession>,
        request: &Request<'_>,
    ) -> Result<Reply, Refusal> {
        let stream = session.stream();
        let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
        let mut call = match session.session.request(request, &peer(arrival, session, &stream), &sink) {
            Handled::Now(answer) => return Ok(Reply::Json(StatusCode::OK, answer)),
            Handled::Call(call) => call,
        };
        session.reserve(&request.id).map_err(|error| failed(Some(&request.id), &error))?;
        let finish = Finish(Arc::clone(&stream));
        // Most calls are done at the first poll, and those need no task.
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => {
                session.release(&request.id);
                stream.send(answer, Weight::Must);
                drop(finish);
            }
            Poll::Pending => session.spawn(&request.id, Arc::new(finish), call),
        }
        match first(&stream, arrival).await {
            Some(First::Answer(answer)) => {
                session.forget_stream(stream.number);
                Ok(Reply::Json(StatusCode::OK, answer))
            }
            _ => {
                let owner = Owner::Session(Arc::clone(session), None);
                Ok(events(Feed::new(stream, Some(0), can_resume(session), arrival.keep_alive, owner)))
            }
        }
    }

    /// A call that stands for itself. It ends with its connection: nobody could come back for it.
    async fn lone_call(
        &self,
        arrival: &Arrival<'_>,
        version: ProtocolVersion,
        request: &Request<'_>,
    ) -> Result<Reply, Refusal> {
        let session = Session::none(&self.endpoint, self.settings, Terms::unknown(version));
        let stream = Arc::new(Stream::new(1));
        let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
        let peer = Peer {
            principal: arrival.principal.clone(),
            extensions: arrival.extensions.clone(),
            listens: listens(arrival),
            ..Peer::default()
        };
        let call = match session.request(request, &peer, &sink) {
            Handled::Now(answer) => return Ok(Reply::Json(StatusCode::OK, answer)),
            Handled::Call(call) => call,
        };
        let finish = Finish(Arc::clone(&stream));
        let task = tokio::spawn(async move {
            let answer = call.await;
            finish.0.send(answer, Weight::Must);
        });
        let abort = Abort(task.abort_handle());
        match first(&stream, arrival).await {
            Some(First::Answer(answer)) => Ok(Reply::Json(StatusCode::OK, answer)),
            _ => Ok(events(Feed::new(
                stream,
                Some(0),
                false,
                arrival.keep_alive,
                Owner::Call { _ends: abort },
            ))),
        }
    }

    /// Several messages at once, which 2025-03-26 has and no other revision.
    async fn batch(&self, arrival: &Arrival<'_>, bytes: &[u8]) -> Result<Reply, Refusal> {
        let wrong =
            |why: &'static str| refuse(StatusCode::BAD_REQUEST, None, &ErrorObject::invalid_request(why));
        let session = self.session(arrival, None)?.filter(|session| session.session.terms.version == UNSAID);
        let Some(session) = session else {
            return Err(wrong("this revision has no batches: send one message"));
        };
        let messages: Vec<&RawValue> =
            serde_json::from_slice(bytes).map_err(|_| wrong("a batch is a list of messages"))?;
        if messages.is_empty() || messages.len() > BATCH {
            return Err(wrong("a batch has at least one message, and at most 100"));
        }
        let stream = session.stream();
        let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
        let finish = Arc::new(Finish(Arc::clone(&stream)));
        let mut asked = false;
        for message in messages {
            match Message::decode(message.get().as_bytes()) {
                Ok(Message::Request(request)) => {
                    asked = true;
                    match session.session.request(&request, &peer(arrival, &session, &stream), &sink) {
                        Handled::Now(answer) => stream.send(answer, Weight::Must),
                        Handled::Call(call) => match session.reserve(&request.id) {
                            Ok(()) => session.spawn(&request.id, Arc::clone(&finish), call),
                            Err(error) => {
                                stream.send(answer(&request.id, Err::<(), _>(error)), Weight::Must);
                            }
                        },
                    }
                }
                Ok(other) => tell(&session, other)?,
                Err(_) => return Err(wrong("every entry of a batch is a message")),
            }
        }
        drop(finish);
        if !asked {
            return Ok(Reply::Bare(StatusCode::ACCEPTED));
        }
        let owner = Owner::Session(session, None);
        Ok(events(Feed::new(stream, Some(0), false, arrival.keep_alive, owner)))
    }
}

/// Takes what wants no answer.
fn tell(session: &HttpSession, message: Message<'_>) -> Result<(), Refusal> {
    match message {
        Message::Notification(notification) if notification.method == CancelledNotification::NAME => {
            if let Ok(params) = decode_params::<CancelledNotificationParams>(notification.params) {
                session.cancel(&params.request_id);
            }
            Ok(())
        }
        Message::Response(response) => {
            session.session.response(response).map_err(|error| refuse(StatusCode::BAD_REQUEST, None, &error))
        }
        _ => Ok(()),
    }
}

fn peer(arrival: &Arrival<'_>, session: &HttpSession, stream: &Arc<Stream>) -> Peer {
    let mut extensions = arrival.extensions.clone();
    if can_resume(session) {
        extensions.insert(Resumable(Arc::clone(stream)));
    }
    Peer { principal: arrival.principal.clone(), extensions, listens: listens(arrival), ..Peer::default() }
}

fn listens(arrival: &Arrival<'_>) -> Listens {
    if arrival.streams { Listens::Yes } else { Listens::No }
}

/// Whether a client knows how to come back: 2025-11-25 tells it how before anything else.
fn can_resume(session: &HttpSession) -> bool {
    session.session.terms.version >= ProtocolVersion::V2025_11_25
}

/// What a stream begins with; none where that takes longer than a client may want to wait.
async fn first(stream: &Stream, arrival: &Arrival<'_>) -> Option<First> {
    let first = pin!(poll_fn(|cx| stream.poll_first(cx)));
    if !arrival.streams {
        return Some(first.await);
    }
    tokio::time::timeout(arrival.keep_alive, first).await.ok()
}

/// The revision a request says it speaks.
fn stated_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, Refusal> {
    let Some(stated) = headers.get(VERSION) else { return Ok(None) };
    match stated.to_str().ok().and_then(revision).filter(|version| *version >= UNSAID) {
        Some(version) => Ok(Some(version)),
        None => {
            let error = ErrorObject::invalid_request(
                "mcp-protocol-version names no revision that is spoken here: say what `initialize` agreed on",
            );
            Err(refuse(StatusCode::BAD_REQUEST, None, &error))
        }
    }
}

/// The id a request names its session by. Two are none.
fn session_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut ids = headers.get_all(SESSION).iter();
    match (ids.next(), ids.next()) {
        (None, _) => Ok(None),
        (Some(id), None) => id.to_str().map(Some).map_err(|_| no_session(None)),
        (Some(_), Some(_)) => Err(no_session(None)),
    }
}

/// Where a client left off.
fn place_of(session: &HttpSession, event: &HeaderValue) -> Result<(Arc<Stream>, Option<u64>), Refusal> {
    let place = event.to_str().ok().and_then(|event| {
        let (stream, event) = event.split_once('-')?;
        Some((session.find_stream(stream.parse().ok()?)?, event.parse().ok()?))
    });
    let (stream, event) = place.ok_or_else(|| {
        let error =
            ErrorObject::invalid_request("there is no stream of this session to go on with from this event");
        refuse(StatusCode::BAD_REQUEST, None, &error)
    })?;
    Ok((stream, Some(event)))
}

fn needs_session(id: Option<&RequestId>) -> Refusal {
    let error = ErrorObject::invalid_request(
        "mcp-session-id is missing: begin with `initialize`, or speak revision 2026-07-28, which has no sessions",
    );
    refuse(StatusCode::BAD_REQUEST, id, &error)
}

fn no_session(id: Option<&RequestId>) -> Refusal {
    let error =
        ErrorObject::invalid_request("there is no such session, or no longer: begin anew with `initialize`");
    refuse(StatusCode::NOT_FOUND, id, &error)
}

fn not_allowed(why: &'static str) -> Refusal {
    refuse(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
}

/// A request that came to nothing: an exchange of messages all the same, unless there is too much going on.
fn failed(id: Option<&RequestId>, error: &ErrorObject) -> Refusal {
    refuse(if error.code == BUSY { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }, id, error)
}

fn refuse(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Refusal {
    tracing::debug!(%status, %error, "request refused");
    let mut message = Vec::with_capacity(128);
    encode_error(&mut message, id, error);
    Reply::Json(status, message)
}

fn events(feed: Feed) -> Reply {
    Reply::Events(Box::new(feed))
}
