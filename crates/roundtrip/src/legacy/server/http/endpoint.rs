//! HTTP endpoint of the handshake eras: POST, GET and DELETE.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, StatusCode};
use roundtrip_core::wire::{
    CancelledNotification, CancelledNotificationParams, ErrorObject, Message, NotificationMethod as _,
    ProtocolVersion, Request, RequestId, decode_params, peek_version,
};

use super::event_body::{Abort, EventBody, Owner};
use super::head::{
    Accepts, Arrival, LAST_EVENT, SESSION, UNSAID, VERSION, is_modern, place_of, session_id, stated_version,
};
use super::reply::{Refusal, Reply, events, failed, needs_session, no_session, not_allowed, refuse};
use super::resumable_stream::Resumable;
use super::sessions::{HttpSession, Present, Sessions};
use super::stream::{Finish, First, Stream};
use crate::legacy::handshake::{INITIALIZE, revision};
use crate::legacy::server::negotiated::Negotiated;
use crate::legacy::server::session::{Handled, Session, Sink, Weight, answer};
use crate::server::{Endpoint, Handshake, Peer, Served};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Network;

/// HTTP endpoint for clients of the handshake eras.
#[derive(Debug, Clone)]
pub(crate) struct LegacyHttp {
    endpoint: Endpoint,
    settings: Handshake,
    sessions: Arc<Sessions>,
}

impl LegacyHttp {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let settings = endpoint.inner().handshake;
        Self {
            endpoint: endpoint.clone(),
            settings,
            sessions: Sessions::new(settings, endpoint.inner().flows.admission.most()),
        }
    }

    #[cfg(test)]
    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Returns whether the server serves the handshake eras.
    pub(crate) fn is_open(&self) -> bool {
        self.settings.served != Served::Refused
    }

    /// Returns whether a request belongs to a handshake revision.
    pub(crate) fn takes(&self, headers: &HeaderMap, request: &Request<'_>) -> bool {
        let legacy = || match headers.get(VERSION) {
            Some(version) => version.to_str().is_ok_and(|version| revision(version).is_some()),
            None => true,
        };
        let ours = || request.method == INITIALIZE || headers.contains_key(SESSION) || legacy();
        self.is_open() && !is_modern(headers) && ours() && peek_version(request.params).is_none()
    }

    /// Returns whether a message that is not a request names a session, and no modern revision.
    pub(crate) fn knows(&self, headers: &HeaderMap) -> bool {
        self.is_open() && headers.contains_key(SESSION) && !is_modern(headers)
    }

    /// Handles a message.
    pub(crate) fn post(&self, arrival: &Arrival<'_>, message: Message<'_>) -> Taken {
        self.take(arrival, message).unwrap_or_else(Taken::Reply)
    }

    fn take(&self, arrival: &Arrival<'_>, message: Message<'_>) -> Result<Taken, Refusal> {
        let version = stated_version(arrival.headers)?;
        match message {
            Message::Request(request) if request.method == INITIALIZE => {
                self.initialize(arrival, &request).map(Taken::Reply)
            }
            Message::Request(request) => match self.session(arrival, Some(&request.id))? {
                Some(session) => call(arrival, session, &request),
                None => Ok(self.lone_call(arrival, version.unwrap_or(UNSAID), &request)),
            },
            other => {
                if let Some(session) = self.session(arrival, None)? {
                    tell(&session, other)?;
                }
                Ok(Taken::Reply(Reply::Bare(StatusCode::ACCEPTED)))
            }
        }
    }

    /// Opens the stream of messages outside of any call, or resumes a stream that broke off.
    pub(crate) fn get(&self, arrival: &Arrival<'_>) -> Reply {
        let opened = || {
            stated_version(arrival.headers)?;
            let session = match self.session(arrival, None)? {
                Some(session) => session,
                None => return Err(not_allowed("without sessions there is no stream to open")),
            };
            if !arrival.accepts.streams {
                let error =
                    ErrorObject::invalid_request("GET is answered by a stream: accept text/event-stream");
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
            // A client that resumes knows already how to.
            let primed = after.is_none() && can_resume(&session);
            let owner = Owner::Session { _present: Present::new(&session), changes };
            Ok(events(EventBody::new(stream, after, primed, arrival.accepts.keep_alive, owner)))
        };
        opened().unwrap_or_else(|refused: Refusal| refused)
    }

    /// Ends a session.
    pub(crate) fn delete(&self, arrival: &Arrival<'_>) -> Reply {
        let ended = || {
            stated_version(arrival.headers)?;
            if self.settings.served != Served::Sessions {
                return Err(not_allowed("there are no sessions to end"));
            }
            let id = session_id(arrival.headers)?.unwrap_or_default();
            if self.sessions.end(id, arrival.principal.as_ref()) {
                Ok(Reply::Bare(StatusCode::NO_CONTENT))
            } else {
                Err(no_session(None))
            }
        };
        ended().unwrap_or_else(|refused: Refusal| refused)
    }

    /// Returns the session of a request; `None` if the server has no sessions.
    pub(super) fn session(
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
        // A client that names a session that has ended gets 404, and begins again without one.
        if arrival.headers.contains_key(SESSION) && self.session(arrival, Some(&request.id))?.is_some() {
            let error = ErrorObject::invalid_request("this session has been initialized already");
            return Err(failed(Some(&request.id), &error));
        }
        let lists_tasks = arrival.principal.is_some();
        let begun = || {
            let (negotiated, agreed) =
                Negotiated::agree(&self.endpoint, request.params, UNSAID, lists_tasks)?;
            let id = match self.settings.served {
                Served::Sessions => {
                    let session = Session::new(&self.endpoint, self.settings, negotiated, arrival.owner())?;
                    #[cfg(feature = "opentelemetry")]
                    session.measure(arrival.extensions.get());
                    Some(self.sessions.open(session, arrival.principal.clone(), weight(request))?)
                }
                _ => None,
            };
            Ok((id, agreed))
        };
        let (id, agreed) = begun().map_err(|error| failed(Some(&request.id), &error))?;
        let agreed = answer(&request.id, Ok(agreed));
        Ok(match id {
            Some(id) => Reply::Session(agreed, id),
            None => Reply::Json(StatusCode::OK, agreed),
        })
    }

    /// Begins a call without a session. It ends with its connection: no client could resume it.
    fn lone_call(&self, arrival: &Arrival<'_>, version: ProtocolVersion, request: &Request<'_>) -> Taken {
        let negotiated = Negotiated::unknown(version);
        let session = Session::none(&self.endpoint, self.settings, negotiated, arrival.owner());
        let stream = Arc::new(Stream::new(1));
        let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
        let peer = Peer {
            principal: arrival.principal.clone(),
            access: arrival.access.clone(),
            address: arrival.address,
            extensions: arrival.extensions.clone(),
            listens: arrival.listens(),
            ..Peer::default()
        };
        let call = match session.request(request, &peer, &sink) {
            Handled::Now(answer) => return Taken::Reply(whole(arrival.accepts, answer)),
            Handled::Call(call) => call,
        };
        let finish = Finish(Arc::clone(&stream));
        let task = tokio::spawn(async move {
            let answer = call.await;
            finish.0.send(answer, Weight::Answer);
        });
        let owner = Owner::Call { _ends: Abort(task.abort_handle()) };
        Taken::Call(Begun { stream, session: None, owner, accepts: arrival.accepts })
    }
}

/// Outcome of a message. It no longer needs the message, which may be long.
pub(crate) enum Taken {
    Reply(Reply),
    Call(Begun),
}

impl Taken {
    /// Waits for the response.
    pub(crate) async fn reply(self) -> Reply {
        match self {
            Self::Reply(reply) => reply,
            Self::Call(begun) => begun.answer().await,
        }
    }
}

/// A call that runs.
pub(crate) struct Begun {
    stream: Arc<Stream>,
    /// `None` for a call without a session.
    session: Option<Arc<HttpSession>>,
    owner: Owner,
    accepts: Accepts,
}

impl Begun {
    /// Waits for the first message of the stream, and answers with it or with the stream.
    async fn answer(self) -> Reply {
        let Self { stream, session, owner, accepts } = self;
        if let Some(First::Answer(answer)) = first(&stream, accepts).await {
            session.iter().for_each(|session| session.forget_stream(stream.number));
            return whole(accepts, answer);
        }
        session.iter().for_each(|session| session.keep_stream(&stream));
        let primed = session.as_deref().is_some_and(can_resume);
        events(EventBody::new(stream, Some(0), primed, accepts.keep_alive, owner))
    }
}

/// Begins a call in a session.
fn call(arrival: &Arrival<'_>, session: Arc<HttpSession>, request: &Request<'_>) -> Result<Taken, Refusal> {
    let stream = session.stream();
    let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
    let mut call = match session.session.request(request, &peer(arrival, &session, &stream), &sink) {
        Handled::Now(answer) => return Ok(Taken::Reply(whole(arrival.accepts, answer))),
        Handled::Call(call) => call,
    };
    session
        .reserve(&request.id, stream.number, weight(request))
        .map_err(|error| failed(Some(&request.id), &error))?;
    let (finish, present) = (Finish(Arc::clone(&stream)), Present::new(&session));
    // Most calls are done at the first poll, and those need no task.
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => {
            session.release(&request.id, stream.number);
            stream.send(answer, Weight::Answer);
            drop(finish);
        }
        Poll::Pending => session.spawn(&request.id, Arc::new(finish), call),
    }
    let owner = Owner::Session { _present: present, changes: None };
    Ok(Taken::Call(Begun { stream, session: Some(session), owner, accepts: arrival.accepts }))
}

/// Handles a message that needs no answer.
pub(super) fn tell(session: &HttpSession, message: Message<'_>) -> Result<(), Refusal> {
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

/// Returns how many bytes of a session's allowance a call takes.
pub(super) fn weight(request: &Request<'_>) -> usize {
    request.params.map_or(0, |params| params.get().len())
}

/// Wraps a complete answer as JSON, or as a stream if the client accepts nothing else.
fn whole(accepts: Accepts, answer: Vec<u8>) -> Reply {
    if accepts.json {
        return Reply::Json(StatusCode::OK, answer);
    }
    let stream = Arc::new(Stream::new(1));
    stream.send(answer, Weight::Answer);
    stream.finish();
    events(EventBody::new(stream, Some(0), false, accepts.keep_alive, Owner::None))
}

pub(super) fn peer(arrival: &Arrival<'_>, session: &HttpSession, stream: &Arc<Stream>) -> Peer {
    let mut extensions = arrival.extensions.clone();
    if can_resume(session) && arrival.accepts.streams {
        extensions.insert(Resumable(Arc::clone(stream)));
    }
    #[cfg(feature = "opentelemetry")]
    if let (Some(network), Ok(Some(id))) = (extensions.remove::<Network>(), session_id(arrival.headers)) {
        extensions.insert(network.session(id));
    }
    Peer {
        principal: arrival.principal.clone(),
        access: arrival.access.clone(),
        address: arrival.address,
        extensions,
        listens: arrival.listens(),
        ..Peer::default()
    }
}

/// Returns whether a client can resume a stream: since 2025-11-25 the first event tells it how.
fn can_resume(session: &HttpSession) -> bool {
    session.session.negotiated.version >= ProtocolVersion::V2025_11_25
}

/// Waits for the first message of a stream; `None` if that takes longer than the keep-alive time.
async fn first(stream: &Stream, accepts: Accepts) -> Option<First> {
    let first = pin!(poll_fn(|cx| stream.poll_first(cx)));
    if !accepts.streams {
        return Some(first.await);
    }
    tokio::time::timeout(accepts.keep_alive, first).await.ok()
}
