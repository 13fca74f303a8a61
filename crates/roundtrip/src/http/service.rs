//! Server side as a [`Service`]: one request in, one response out.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as HttpBody;
use roundtrip_core::error::needed_scope;
use roundtrip_core::wire::{ClientRequest, ErrorObject, Message, RequestId};
use tower_service::Service;

use super::body::Body;
use super::guard::{Entered, GuardSlot};
use super::headers::{self, Accepts};
#[cfg(feature = "legacy")]
use super::legacy::{LegacyHttp, Taken};
use super::limits::HttpLimits;
use super::name::METHOD;
use super::origin::Gate;
use super::receive::{Unread, announced, read};
use super::response::{
    Head, challenged, failed, json, refuse, refuse_coding, refuse_with, respond, stream, unread,
};
use crate::server::{
    Access, Budget, Endpoint, Event, InFlight, Listens, Owner, Peer, Principal, Reservation, Server,
    SetupError, panicked,
};

/// A server on HTTP: a [`Service`] to mount into a tower stack, or to [`bind`](Self::bind) on its own.
///
/// ```
/// # use roundtrip::Server;
/// # fn app() -> Result<axum::Router, Box<dyn std::error::Error>> {
/// let mcp = Server::new("mounted", "1.0.0").into_http()?.allow_origin("https://app.example");
/// let app = axum::Router::new().route_service("/mcp", mcp);
/// # Ok(app)
/// # }
/// ```
#[derive(Clone)]
pub struct Http {
    pub(super) endpoint: Endpoint,
    pub(super) settings: Arc<Settings>,
    /// Address of the client, if Roundtrip itself has accepted the connection.
    pub(super) address: Option<IpAddr>,
}

type PrincipalOf = dyn Fn(&Parts) -> Option<Principal> + Send + Sync;

#[derive(Clone)]
pub(super) struct Settings {
    /// Endpoint of the handshake eras.
    #[cfg(feature = "legacy")]
    pub(super) legacy: LegacyHttp,
    pub(super) gate: Gate,
    limits: HttpLimits,
    /// Bytes of the bodies being read.
    bodies: Arc<Budget>,
    pub(super) principal: Option<Arc<PrincipalOf>>,
    pub(super) guard: GuardSlot,
}

impl Server {
    /// Builds the server for HTTP.
    ///
    /// # Errors
    /// The first mistake found in how the server was put together.
    pub fn into_http(self) -> Result<Http, SetupError> {
        let endpoint = self.build_instance()?;
        let settings = Settings {
            #[cfg(feature = "legacy")]
            legacy: LegacyHttp::new(&endpoint),
            gate: Gate::default(),
            limits: HttpLimits::default(),
            bodies: HttpLimits::default().bodies(),
            principal: None,
            guard: GuardSlot::default(),
        };
        Ok(Http { endpoint, settings: Arc::new(settings), address: None })
    }
}

impl Http {
    pub(super) fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Allows pages of an origin to call, besides those on loopback. `"*"` allows every page.
    #[must_use]
    pub fn allow_origin(self, origin: impl Into<String>) -> Self {
        self.set(|settings| settings.gate.allow_origin(origin.into()))
    }

    /// Allows a host name, port included, on a loopback address and with [`loopback_only`](Self::loopback_only).
    #[must_use]
    pub fn allow_host(self, host: impl Into<String>) -> Self {
        self.set(|settings| settings.gate.allow_host(host.into()))
    }

    /// Sets the limits on size, time and number.
    #[must_use]
    pub fn limits(self, limits: HttpLimits) -> Self {
        self.set(|settings| {
            settings.limits = limits;
            settings.bodies = limits.bodies();
        })
    }

    /// Sets the function that reads the principal from the request's head, for example from what an authentication
    /// layer left there. A server that checks access tokens itself has `authorize` in its place.
    #[must_use]
    pub fn principal<F>(self, principal: F) -> Self
    where
        F: Fn(&Parts) -> Option<Principal> + Send + Sync + 'static,
    {
        self.set(|settings| {
            settings.principal = Some(Arc::new(principal));
            settings.guard.forbid_principal();
        })
    }

    /// Refuses requests whose `Host` is not a loopback name or one that was allowed, so that no page reaches the server by
    /// rebinding its own name. [`bind`](Self::bind) does this on a loopback address; a service that is mounted does not
    /// know its address.
    #[must_use]
    pub fn loopback_only(self) -> Self {
        self.set(|settings| settings.gate.loopback = true)
    }

    /// Returns the same service for a connection from an address.
    pub(super) fn for_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self
    }

    pub(crate) fn http_limits(&self) -> HttpLimits {
        self.settings.limits
    }

    /// Returns the built server behind it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Answers a request. It returns what the service does: one future around another would be copied more often.
    async fn answer<B: HttpBody>(self, request: Request<B>) -> Result<Response<Body>, Infallible> {
        let (mut parts, body) = request.into_parts();
        let entered = match self.enter(&mut parts) {
            Entered::Now(entered) => entered,
            Entered::Later(entering) => entering.await,
        };
        if parts.method != Method::POST {
            return Ok(
                entered.map_or_else(|refused| *refused, |sender| self.other_method(&mut parts, sender))
            );
        }
        let length = announced(&parts.headers, &body);
        let (admitted, refused) = match entered.and_then(|sender| self.admit(&parts, length, sender)) {
            Ok(admitted) => (admitted, None),
            // A small body is read all the same, so that the connection can be used again.
            Err(refused) if length.is_some_and(|length| length <= DRAINED) => {
                (Admitted { accepts: Accepts::Json, sender: Identified::default() }, Some(refused))
            }
            Err(refused) => return Ok(*refused),
        };
        let place = || self.place(&parts, length, admitted.sender.principal.as_ref());
        let read = read(body, &self.settings.limits, place).await;
        let bytes = match (refused, read) {
            (None, Ok(bytes)) => bytes,
            (None, Err(why)) => return Ok(unread(&self.settings.limits, &why)),
            (Some(refused), _) => return Ok(*refused),
        };
        let begun = poll_fn(|cx| Poll::Ready(self.start(&mut parts, &admitted, &bytes, cx))).await;
        let later = match begun {
            Ok(response) => return Ok(response),
            Err(Instead::Answer(response)) => return Ok(*response),
            Err(Instead::Later(later)) => later,
            #[cfg(feature = "legacy")]
            Err(Instead::Legacy(taken)) => {
                // A call may take long: its message need not stay in memory meanwhile.
                drop((parts, admitted, bytes));
                // Boxed: modern requests wait in the same future and need not carry its size.
                return Ok(Box::pin(self.legacy_response(*taken)).await);
            }
        };
        drop((parts, admitted, bytes));
        Ok(later.await)
    }

    /// Begins the call of a message and polls it once. Most calls are done then: those never become a part of the
    /// future that [`answer`](Self::answer) is, which would be copied and allocated with room for them.
    fn start(
        &self,
        parts: &mut Parts,
        admitted: &Admitted,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Result<Response<Body>, Instead<'_>> {
        let mut call = self.accept(parts, admitted, bytes)?;
        match call.poll_event(cx) {
            Poll::Ready(event) => Ok(self.begin_response(call, Some(event), admitted.accepts)),
            Poll::Pending => Err(Instead::Later(Box::pin(self.later(call, admitted.accepts)))),
        }
    }

    /// Decodes a message and begins its call, if it is a modern request.
    fn accept(&self, parts: &mut Parts, admitted: &Admitted, bytes: &[u8]) -> Result<InFlight, Instead<'_>> {
        #[cfg(feature = "opentelemetry")]
        if self.endpoint.telemetry().is_some() {
            parts.extensions.insert(crate::telemetry::Network::http(Some(parts.version)));
        }
        if let Some((id, request)) = headers::decode_call(&self.endpoint, &parts.headers, bytes) {
            let peer = self.peer(parts, admitted);
            return Ok(self.endpoint.begin_sized(id, &request, &peer, bytes.len()));
        }
        let message = match Message::decode(bytes) {
            Ok(Message::Request(message)) => message,
            #[cfg(feature = "legacy")]
            other if self.settings.legacy.knows(&parts.headers) => {
                return Err(self.session_message(parts, admitted, other, bytes));
            }
            // No notification means anything here; all of them are accepted (H10).
            Ok(Message::Notification(_)) => return Err(respond(StatusCode::ACCEPTED, Body::empty()).into()),
            Ok(Message::Response(response)) => {
                let error = ErrorObject::invalid_request(
                    "the server asks nothing, so there is nothing to respond to",
                );
                return Err(refuse(response.id.as_ref(), &error).into());
            }
            Err(malformed) => return Err(refuse(malformed.id.as_ref(), &malformed.error).into()),
        };
        #[cfg(feature = "legacy")]
        if self.settings.legacy.takes(&parts.headers, &message) {
            return Err(self.legacy_message(parts, admitted, Message::Request(message)));
        }
        let peer = self.peer(parts, admitted);
        let request = headers::decode(&self.endpoint, &parts.headers, &message, &peer)
            .map_err(|error| refuse(Some(&message.id), &error))?;
        if admitted.accepts == Accepts::Json && matches!(request, ClientRequest::SubscriptionsListen(_)) {
            let error = ErrorObject::invalid_request(
                "subscriptions/listen is answered by a stream: accept text/event-stream",
            );
            return Err(refuse_with(StatusCode::NOT_ACCEPTABLE, Some(&message.id), &error).into());
        }
        Ok(self.endpoint.begin_sized(message.id, &request, &peer, bytes.len()))
    }

    /// Answers a method other than POST.
    #[cfg_attr(
        not(feature = "legacy"),
        expect(
            unused_variables,
            clippy::needless_pass_by_value,
            reason = "sessions alone have other methods"
        )
    )]
    fn other_method(&self, parts: &mut Parts, sender: Identified) -> Response<Body> {
        #[cfg(feature = "legacy")]
        if let Some(response) = self.legacy_stream(parts, sender) {
            return response;
        }
        let why = if cfg!(feature = "legacy") {
            "this endpoint takes POST: streams are opened by subscriptions/listen; GET and DELETE are for sessions of \
             earlier revisions, named by mcp-session-id"
        } else {
            "this endpoint takes POST: streams are opened by subscriptions/listen"
        };
        refuse_with(StatusCode::METHOD_NOT_ALLOWED, None, &ErrorObject::invalid_request(why))
    }

    /// Returns the peer of a message, with the extensions of its request.
    fn peer(&self, parts: &mut Parts, admitted: &Admitted) -> Peer {
        Peer {
            principal: admitted.sender.principal.clone(),
            access: admitted.sender.access.clone(),
            address: self.address,
            listens: if admitted.accepts == Accepts::Json { Listens::No } else { Listens::Yes },
            extensions: std::mem::take(&mut parts.extensions),
            ..Peer::default()
        }
    }

    /// Takes a place for a body that has to be waited for, if there is room for the length its head announces and for
    /// the call it will become.
    fn place(
        &self,
        parts: &Parts,
        length: Option<usize>,
        principal: Option<&Principal>,
    ) -> Option<Reservation> {
        let owner = Owner::new(principal, self.address);
        // A message without `Mcp-Method` may be an answer that a running call waits for.
        if parts.headers.contains_key(METHOD) && !self.endpoint.has_place_for(&owner) {
            return None;
        }
        let bodies = &self.settings.bodies;
        bodies.has_room(&owner, length.unwrap_or(1)).then(|| bodies.charge(&owner, 0))
    }

    /// Identifies the sender of a request where nothing checks tokens: by the author's function, if there is one. It may panic
    /// over what a peer sent: that fails this request alone (Z1), and never makes the caller anonymous.
    pub(super) fn anonymous(&self, parts: &Parts) -> Arrived {
        self.pass_gate(parts)?;
        let access = Access::unguarded();
        let Some(principal) = &self.settings.principal else {
            return Ok(Identified { principal: None, access });
        };
        let principal = catch_unwind(AssertUnwindSafe(|| principal(parts)));
        let principal = principal.map_err(|_| Box::new(failed(&panicked())))?;
        Ok(Identified { principal, access })
    }

    /// Checks a request by its head, before the body is read.
    fn admit(
        &self,
        parts: &Parts,
        length: Option<usize>,
        sender: Identified,
    ) -> Result<Admitted, Box<Response<Body>>> {
        let no = |status, why: &'static str| {
            Err(Box::new(refuse_with(status, None, &ErrorObject::invalid_request(why))))
        };
        if !headers::is_json(&parts.headers) {
            return no(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send the message as content-type application/json",
            );
        }
        if !headers::is_plain(&parts.headers) {
            return Err(Box::new(refuse_coding()));
        }
        let Some(accepts) = headers::accepts(&parts.headers) else {
            return no(StatusCode::NOT_ACCEPTABLE, "accept application/json and text/event-stream");
        };
        if length.is_some_and(|length| length > self.settings.limits.body_bytes) {
            return Err(Box::new(unread(&self.settings.limits, &Unread::TooLarge)));
        }
        Ok(Admitted { accepts, sender })
    }

    /// Waits for the first event of a call, for as long as a connection may be silent where it can be a stream.
    async fn later(&self, mut call: InFlight, accepts: Accepts) -> Response<Body> {
        let first = match accepts {
            Accepts::Json => Some(call.event().await),
            _ => tokio::time::timeout(self.settings.limits.keep_alive, call.event()).await.ok(),
        };
        self.begin_response(call, first, accepts)
    }

    /// Responds with the error of a call: with a challenge, if the caller lacks scopes.
    fn failed_call(&self, id: &RequestId, error: ErrorObject) -> Response<Body> {
        let (head, challenge) = (Head::of(&error), self.challenge(&error));
        let mut message = Vec::with_capacity(256);
        self.endpoint.encode(&mut message, id, Err(error));
        let response = head.json(message);
        match challenge {
            Some(challenge) => challenged(response, challenge),
            None => response,
        }
    }

    /// Responds to a call. Its first event decides the kind of answer (H4).
    fn begin_response(&self, call: InFlight, first: Option<Event>, accepts: Accepts) -> Response<Body> {
        match first {
            Some(Event::Response(Err(error)))
                if accepts != Accepts::Stream || needed_scope(&error).is_some() =>
            {
                self.failed_call(call.id(), error)
            }
            Some(Event::Response(outcome)) if accepts != Accepts::Stream => {
                let mut message = Vec::with_capacity(256);
                self.endpoint.encode(&mut message, call.id(), outcome);
                json(StatusCode::OK, message)
            }
            first => {
                stream(Body::events(self.endpoint.clone(), call, first, self.settings.limits.keep_alive))
            }
        }
    }
}

/// Sender of a request, as far as its head tells.
#[derive(Default)]
pub(super) struct Identified {
    pub(super) principal: Option<Principal>,
    pub(super) access: Access,
}

/// The sender of a request, or the response that refuses it.
pub(super) type Arrived = Result<Identified, Box<Response<Body>>>;

/// Properties of a request whose head was accepted.
pub(super) struct Admitted {
    pub(super) accepts: Accepts,
    pub(super) sender: Identified,
}

/// Outcome of a message that is not answered by a modern call at once.
pub(super) enum Instead<'a> {
    /// This response ends the exchange.
    Answer(Box<Response<Body>>),
    /// The message belongs to the handshake eras, which have taken it.
    #[cfg(feature = "legacy")]
    Legacy(Box<Taken>),
    /// The call waits for something.
    Later(Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>),
}

impl From<Response<Body>> for Instead<'_> {
    fn from(response: Response<Body>) -> Self {
        Self::Answer(Box::new(response))
    }
}

/// Longest refused body that is still read.
const DRAINED: usize = 64 * 1024;

impl<B> Service<Request<B>> for Http
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
