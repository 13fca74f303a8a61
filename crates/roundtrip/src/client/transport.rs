//! Trait between the client and its transports.

use std::any::Any;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
#[cfg(feature = "oauth")]
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
#[cfg(feature = "oauth")]
use roundtrip_core::auth::CallAttempts;
use roundtrip_core::error::Error;
#[cfg(feature = "oauth")]
use roundtrip_core::error::HttpRefusal;
use roundtrip_core::wire::{Era, ProtocolVersion, RequestId};

#[cfg(feature = "legacy")]
use super::caller::Caller;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Network;

/// Boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Stream of the messages that answer one request: whole JSON-RPC messages as bytes, notifications first, the answer last.
///
/// **Dropping it before the answer cancels the request**, in the way the transport has for that.
pub type Incoming = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// One request on its way out.
#[derive(Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The whole JSON-RPC message, without a line break in it.
    pub message: Bytes,
    /// Its id, which no other request of this client has.
    pub id: RequestId,
    /// Its method.
    pub method: &'static str,
    /// Its target: a tool or prompt by name, a resource by URI.
    pub target: Option<String>,
    /// The revision it speaks.
    pub version: ProtocolVersion,
    /// Arguments to be mirrored in headers, values encoded; none unless the transport [has
    /// headers](Transport::has_headers).
    pub mirrored: Vec<(String, String)>,
    /// True if it asks for its result in parts: none of these may be left out on the way.
    pub parts: bool,
    /// Settings of its client, for a session with a legacy server.
    #[cfg(feature = "legacy")]
    pub(crate) caller: Caller,
}

/// Shows neither the message nor the values of headers: they hold arguments, answers and state.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mirrored: Vec<&str> = self.mirrored.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Outgoing")
            .field("message", &format_args!("{} bytes", self.message.len()))
            .field("id", &self.id)
            .field("method", &self.method)
            .field("target", &self.target)
            .field("version", &self.version)
            .field("mirrored", &mirrored)
            .finish_non_exhaustive()
    }
}

/// Carries requests to one server, and the messages that answer them back.
///
/// Write your own to speak MCP over anything else, and give it to [`Client::new`](super::Client::new).
pub trait Transport: Any + Send + Sync {
    /// Sends one request. Dropping the future, or the stream it gives, cancels the request.
    ///
    /// Errors say by their kind who must act. [`Error::Unreachable`] and [`Error::Refused`] say whether the request may
    /// have reached the server. A request that cannot have is sent again ([`Resend`](super::Resend)) after
    /// [`NoConnection`](super::Unreachable::NoConnection) and [`Broken`](super::Unreachable::Broken) alone.
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>>;

    /// Returns whether requests have headers, in which arguments can be mirrored (H3).
    fn has_headers(&self) -> bool {
        false
    }

    /// Returns whether a client can be told to speak this revision alone. A transport that carries messages as they are
    /// has only those that need no session.
    fn speaks(&self, version: ProtocolVersion) -> bool {
        version.era() == Era::Modern
    }

    /// Returns the revision that is spoken with the server, for a transport that translates between revisions. Others
    /// have none to tell: the client knows what it sent.
    fn protocol_version(&self) -> Option<ProtocolVersion> {
        None
    }

    /// Returns a number that grows whenever requests begin to be sent in another name, for example after a sign-in. The
    /// client then forgets the results that it kept, and keeps no answer to a request from before the change. A number that is
    /// smaller than one before it is that of a name which is no longer used: nothing is kept for it.
    fn credentials(&self) -> u64 {
        0
    }

    /// Gets another token after a refusal, so that the request can be sent again. `None` if there is none to get.
    ///
    /// It has `left` of the request's time, and returns the part of it that it took: time in which a person signs in is not
    /// counted. When that time is up it fails with [`Error::Timeout`], which the client reports as the request's. `attempts` are
    /// those of the whole call.
    #[cfg(feature = "oauth")]
    fn authorize(
        &self,
        refusal: &HttpRefusal,
        attempts: &mut CallAttempts,
        left: Duration,
    ) -> Option<BoxFuture<Result<Duration, Error>>> {
        let _ = (refusal, attempts, left);
        None
    }

    /// Describes the connection, for the telemetry of the client.
    #[cfg(feature = "opentelemetry")]
    fn network(&self) -> Network {
        Network::default()
    }

    /// Abandons the round of a `requestState`: the handlers failed, or the caller has gone. Only a transport
    /// that keeps something for a state has anything to do here.
    fn abandon(&self, state: &str) {
        let _ = state;
    }

    /// Ends the connection in good order. Requests still under way fail, and later ones: both with [`Error::Closed`].
    fn close(&self) -> BoxFuture<()> {
        Box::pin(ready(()))
    }
}
