//! In-process transport: the client's messages go straight to the server's handlers.
//!
//! Messages are the same bytes as on any wire, but nothing is copied through a socket and no task is spawned: the
//! handler runs while its answer is awaited, and is dropped with it.

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{ErrorObject, Message, encode_error};

use super::client::{BoxFuture, Client, Error, Incoming, Outgoing, Transport};
use super::server::{Endpoint, Event, InFlight, Peer, Principal, Server, SetupError};

impl Client {
    /// Connects a client to a server in the same process: for tests, and for hosts that bring their own tools.
    ///
    /// # Errors
    /// Returns the first mistake in the server's setup.
    pub fn in_process(server: Server) -> Result<Self, SetupError> {
        Ok(Self::new(InProcess::new(server.build()?)))
    }

    /// Makes every call as this principal, in process. Over HTTP the server works out who calls.
    ///
    /// ```
    /// use roundtrip::{Caller, Client, Principal, Server, Tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tool = Tool::new("whoami", async |caller: Caller| caller.principal.map(|who| who.to_string()).unwrap_or_default());
    /// let client = Client::in_process(Server::new("desk", "1.0.0").tool(tool))?.principal(Principal::new("ada"));
    /// let result = client.call_tool("whoami", serde_json::json!({})).await?;
    /// assert_eq!(result.content[0].as_text(), Some("ada"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn principal(self, principal: Principal) -> Self {
        self.set_transport("principal", |transport: &mut InProcess| {
            transport.peer.principal = Some(principal);
            Ok(())
        })
    }

    /// Attaches an [`Extension`](crate::Extension) to every request, in process, as a layer of the HTTP stack would.
    pub fn extension<T: Clone + Send + Sync + 'static>(self, extension: T) -> Self {
        self.set_transport("extension", |transport: &mut InProcess| {
            transport.peer.extensions.insert(extension);
            Ok(())
        })
    }
}

/// Transport to a server in the same process. [`Client::in_process`] is the short way; use this with an [`Endpoint`],
/// or to wrap it in a transport of your own.
#[derive(Clone)]
pub struct InProcess {
    endpoint: Endpoint,
    peer: Peer,
    /// Shared by clones.
    closed: Arc<AtomicBool>,
}

impl InProcess {
    /// Creates a transport to a started server. Any number of them, and of any other transport, can share one.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, peer: Peer::default(), closed: Arc::default() }
    }
}

impl Transport for InProcess {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        if self.closed.load(Ordering::Relaxed) {
            return Box::pin(ready(Err(Error::Closed)));
        }
        Box::pin(ready(Ok(Box::pin(self.begin(&outgoing)) as Incoming)))
    }

    /// Ends the open subscriptions, and takes no more requests. Calls under way go on until they are answered or dropped.
    fn close(&self) -> BoxFuture<()> {
        self.closed.store(true, Ordering::Relaxed);
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
                let call = self.endpoint.begin(request.id, &decoded, &self.peer);
                Answers { endpoint: self.endpoint.clone(), call: Some(call), refusal: None }
            }
            Err(error) => refused(&error),
        }
    }
}

/// Stream of one call's messages. Dropping it drops the handler, which cancels the call.
struct Answers {
    endpoint: Endpoint,
    /// `None` once it has answered, or if the request was refused.
    call: Option<InFlight>,
    /// The error response of a refused request.
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
