//! A client and a server in one process: the client's messages go straight to the server's handlers.
//!
//! Messages are the same bytes as on any wire, but nothing is copied through a socket and no task is spawned: the
//! handler runs while its answer is awaited, and is dropped with it.

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{ErrorObject, Message, encode_error};

use super::client::{BoxFuture, Client, Error, Incoming, Outgoing, Transport};
use super::server::{Endpoint, Event, InFlight, Peer, Server, SetupError};

impl Client {
    /// A client of a server in this very process: for tests, and for hosts that bring their own tools.
    ///
    /// # Errors
    /// The first mistake in how the server was put together.
    pub fn in_process(server: Server) -> Result<Self, SetupError> {
        Ok(Self::new(InProcess::new(server.build()?)))
    }
}

/// A transport to a server in this very process. [`Client::in_process`] is the short way; with an [`Endpoint`] in
/// hand, or to put a transport of your own around it, this is the long one.
pub struct InProcess {
    endpoint: Endpoint,
}

impl InProcess {
    /// A transport to a started server. Any number of them, and of any other transport, can share one.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Transport for InProcess {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        Box::pin(ready(Ok(Box::pin(self.begin(&outgoing)) as Incoming)))
    }

    /// Ends the open streams of changes. Calls go on: they end with whoever awaits them.
    fn close(&self) -> BoxFuture<()> {
        self.endpoint.close_subscriptions();
        Box::pin(ready(()))
    }
}

impl InProcess {
    fn begin(&self, outgoing: &Outgoing) -> Answers {
        let refused = |error: &ErrorObject| {
            let mut message = Vec::new();
            encode_error(&mut message, Some(&outgoing.id), error);
            Answers { endpoint: self.endpoint.clone(), call: None, refusal: Some(message.into()) }
        };
        let request = match Message::decode(&outgoing.message) {
            Ok(Message::Request(request)) => request,
            Ok(_) => return refused(&ErrorObject::invalid_request("not a request")),
            Err(malformed) => return refused(&malformed.error),
        };
        match self.endpoint.decode(&request) {
            Ok(decoded) => {
                let call = self.endpoint.begin(request.id, &decoded, &Peer::default());
                Answers { endpoint: self.endpoint.clone(), call: Some(call), refusal: None }
            }
            Err(error) => refused(&error),
        }
    }
}

/// What a call has to say. Dropping it drops the handler, which is how calls are cancelled here.
struct Answers {
    endpoint: Endpoint,
    /// None once it has answered, or where it never began.
    call: Option<InFlight>,
    /// What there is to say where it never began.
    refusal: Option<Bytes>,
}

impl Stream for Answers {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(call) = &mut this.call else { return Poll::Ready(this.refusal.take().map(Ok)) };
        let message = match ready!(call.poll_event(cx)) {
            Event::Notification(message) => message,
            Event::Response(outcome) => {
                let mut message = Vec::new();
                this.endpoint.encode(&mut message, call.id(), outcome);
                this.call = None;
                message
            }
        };
        Poll::Ready(Some(Ok(message.into())))
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InProcess").field(&self.endpoint).finish()
    }
}
