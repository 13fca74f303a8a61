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
    Accepts, Arrival, LAST_EVENT, SESSION, UNSAID, VERSION, is_modern, place_of, sent_elsewhere, session_id,
    stated_version,
};
use super::http_session::{HttpSession, Present};
use super::reply::{Refusal, Reply, events, failed, needs_session, no_session, not_allowed, refuse};
use super::resumable_stream::Resumable;
use super::sealed_id::{SealedIds, Terms};
use super::sessions::Sessions;
use super::stream::{Finish, First, Stream};
use crate::legacy::handshake::{INITIALIZE, revision};
use crate::legacy::server::negotiated::Negotiated;
use crate::legacy::server::session::{Handled, Session, Sink, Weight, answer, asked_elsewhere};
use crate::server::{Endpoint, Handshake, Peer, Served, Subscription, now};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Network;

/// HTTP endpoint for clients of the handshake eras.
#[derive(Debug, Clone)]
pub(crate) struct LegacyHttp {
    endpoint: Endpoint,
    settings: Handshake,
    sessions: Arc<Sessions>,
    /// Sealed ids, if other instances can have the keys.
    sealed_ids: Option<SealedIds>,
}

/// A session that a request names.
pub(super) enum Named<'a> {
    /// This process keeps it.
    Here(Present),
    /// A sealed id of which this process keeps nothing.
    Sealed(&'a str, Box<Terms>),
}

impl LegacyHttp {
    /// Creates the endpoint of a server, and warns if its questions depend on the load balancer.
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        let (settings, flows) = (endpoint.inner().handshake, &endpoint.inner().flows);
        let sealed_ids = SealedIds::new(&flows.sealer, flows.known_audience);
        let has_sealed_ids = settings.served == Served::Sessions && sealed_ids.is_some();
        if has_sealed_ids && endpoint.catalog().read().asks {
            tracing::warn!(
                "clients of 2025-11-25 and before must answer a question at the instance that asked it: behind a load \
                 balancer their sessions need affinity by `Mcp-Session-Id`, or `Handshake::stateless()`; all other calls, \
                 and clients of 2026-07-28, may go to any instance"
            );
        }
        Self {
            endpoint: endpoint.clone(),
            settings,
            sessions: Sessions::new(settings, flows.admission.most()),
            sealed_ids,
        }
    }

    #[cfg(test)]
    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    #[cfg(test)]
    pub(super) fn sealed_ids(&self) -> Option<&SealedIds> {
        self.sealed_ids.as_ref()
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
                match self.named(arrival, None)? {
                    Some(Named::Here(session)) => tell(&session, other)?,
                    Some(Named::Sealed(..)) if matches!(other, Message::Response(_)) => {
                        return Err(refuse(StatusCode::BAD_REQUEST, None, &asked_elsewhere()));
                    }
                    // A call to cancel runs elsewhere, or has ended.
                    Some(Named::Sealed(..)) | None => {}
                }
                Ok(Taken::Reply(Reply::Bare(StatusCode::ACCEPTED)))
            }
        }
    }

    /// Opens the stream of messages outside of any call, or resumes a stream that broke off.
    pub(crate) fn get(&self, arrival: &Arrival<'_>) -> Reply {
        let opened = || {
            stated_version(arrival.headers)?;
            let named = match self.named(arrival, None)? {
                Some(named) => named,
                None => return Err(not_allowed("without sessions there is no stream to open")),
            };
            if !arrival.accepts.streams {
                let error =
                    ErrorObject::invalid_request("GET is answered by a stream: accept text/event-stream");
                return Err(refuse(StatusCode::NOT_ACCEPTABLE, None, &error));
            }
            if matches!(named, Named::Sealed(..)) && arrival.headers.contains_key(LAST_EVENT) {
                return Err(sent_elsewhere());
            }
            let session = self.enter(arrival, None, named)?;
            let (stream, after) = match arrival.headers.get(LAST_EVENT) {
                Some(event) => place_of(&session, event)?,
                None => (Arc::clone(&session.standalone), None),
            };
            stream.come_back();
            let changes = match stream.number {
                0 => Some(listen(arrival, &session).map_err(|error| failed(None, &error))?),
                _ => None,
            };
            // A client that resumes knows already how to.
            let primed = after.is_none() && can_resume(&session);
            let owner = Owner::Session { _present: session, changes };
            Ok(events(EventBody::new(stream, after, primed, arrival.accepts.keep_alive, owner)))
        };
        opened().unwrap_or_else(|refused: Refusal| refused)
    }

    /// Ends a session. A sealed id stays good at other instances: what is here of it is freed, and the client learns that it
    /// cannot end it.
    pub(crate) fn delete(&self, arrival: &Arrival<'_>) -> Reply {
        let ended = || {
            stated_version(arrival.headers)?;
            let shared = match self.named(arrival, None)? {
                None => return Err(not_allowed("there are no sessions to end")),
                Some(Named::Sealed(..)) => true,
                Some(Named::Here(session)) => {
                    self.sessions.end(&session);
                    session.session.shared
                }
            };
            if shared {
                return Err(not_allowed(
                    "the id of this session is sealed, and no instance can end it for the others: forget it; it expires by itself",
                ));
            }
            Ok(Reply::Bare(StatusCode::NO_CONTENT))
        };
        ended().unwrap_or_else(|refused: Refusal| refused)
    }

    /// Enters the session of a request; `None` if the server has no sessions.
    pub(super) fn session(
        &self,
        arrival: &Arrival<'_>,
        id: Option<&RequestId>,
    ) -> Result<Option<Present>, Refusal> {
        self.named(arrival, id)?.map(|named| self.enter(arrival, id, named)).transpose()
    }

    /// Finds the session that a request names; `None` if the server has no sessions.
    fn named<'a>(&self, arrival: &Arrival<'a>, id: Option<&RequestId>) -> Result<Option<Named<'a>>, Refusal> {
        if self.settings.served != Served::Sessions {
            return Ok(None);
        }
        let name = session_id(arrival.headers)?.ok_or_else(|| needs_session(id))?;
        let principal = arrival.principal.as_ref();
        if let Some(session) = self.sessions.find(name, principal) {
            return Ok(Some(Named::Here(session)));
        }
        let sealed_ids = self.sealed_ids.as_ref().ok_or_else(|| no_session(id))?;
        match sealed_ids.open(name, principal, now()) {
            Ok(terms) => Ok(Some(Named::Sealed(name, Box::new(terms)))),
            Err(reason) => {
                tracing::warn!(%reason, "session id refused");
                Err(no_session(id))
            }
        }
    }

    /// Enters a session, and creates the state of a sealed one.
    fn enter(
        &self,
        arrival: &Arrival<'_>,
        id: Option<&RequestId>,
        named: Named<'_>,
    ) -> Result<Present, Refusal> {
        let (name, Terms { negotiated, left }) = match named {
            Named::Here(session) => return Ok(session),
            Named::Sealed(name, terms) => (name, *terms),
        };
        let create = || Session::shared(&self.endpoint, self.settings, negotiated, arrival.owner());
        let entered = self.sessions.enter(name, left, arrival.principal.as_ref(), create);
        entered.map_err(|error| failed(id, &error))
    }

    /// Begins a session and returns its id: sealed, or known only to this process.
    fn begin(
        &self,
        arrival: &Arrival<'_>,
        negotiated: Negotiated,
        said: usize,
    ) -> Result<String, ErrorObject> {
        let principal = arrival.principal.as_ref();
        let seal = |ids: &SealedIds| ids.seal(&negotiated, principal, now());
        if let Some(id) = self.sealed_ids.as_ref().map(seal).transpose()?.flatten() {
            return Ok(id);
        }
        let session = Session::new(&self.endpoint, self.settings, negotiated, arrival.owner())?;
        #[cfg(feature = "opentelemetry")]
        session.measure(arrival.extensions.get());
        self.sessions.open(session, principal.cloned(), said)
    }

    fn initialize(&self, arrival: &Arrival<'_>, request: &Request<'_>) -> Result<Reply, Refusal> {
        // A client that names a session that has ended gets 404, and begins again without one.
        if arrival.headers.contains_key(SESSION) && self.named(arrival, Some(&request.id))?.is_some() {
            let error = ErrorObject::invalid_request("this session has been initialized already");
            return Err(failed(Some(&request.id), &error));
        }
        let lists_tasks = arrival.principal.is_some();
        let begun = || {
            let (negotiated, agreed) =
                Negotiated::agree(&self.endpoint, request.params, UNSAID, lists_tasks)?;
            let id = match self.settings.served {
                Served::Sessions => Some(self.begin(arrival, negotiated, weight(request))?),
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

/// Opens the stream of messages outside of any call. The session is kept for it.
fn listen(arrival: &Arrival<'_>, session: &HttpSession) -> Result<Arc<Subscription>, ErrorObject> {
    session.keep()?;
    session.session.set_has_stream();
    #[cfg(feature = "opentelemetry")]
    session.session.measure(arrival.extensions.get());
    #[cfg(not(feature = "opentelemetry"))]
    let _ = arrival;
    session.session.subscription()
}

/// Begins a call in a session.
fn call(arrival: &Arrival<'_>, session: Present, request: &Request<'_>) -> Result<Taken, Refusal> {
    let stream = session.stream();
    let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
    let mut call = match session.session.request(request, &peer(arrival, &session, &stream), &sink) {
        Handled::Now(answer) => return Ok(Taken::Reply(whole(arrival.accepts, answer))),
        Handled::Call(call) => call,
    };
    session
        .reserve(&request.id, stream.number, weight(request))
        .map_err(|error| failed(Some(&request.id), &error))?;
    let finish = Finish(Arc::clone(&stream));
    // Most calls are done at the first poll, and those need no task.
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => {
            session.release(&request.id, stream.number);
            stream.send(answer, Weight::Answer);
            drop(finish);
        }
        Poll::Pending => session.spawn(&request.id, Arc::new(finish), call),
    }
    let kept_by = Some(Arc::clone(&session));
    let owner = Owner::Session { _present: session, changes: None };
    Ok(Taken::Call(Begun { stream, session: kept_by, owner, accepts: arrival.accepts }))
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
