//! What the door needs of an edge.

use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{
    ErrorObject, HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolVersion, RequestId,
    UNSUPPORTED_PROTOCOL_VERSION,
};

use crate::client::{BoxFuture, Error, Incoming, Outgoing, PeerMisbehaved};

/// The wire to one server, for both eras.
pub(crate) trait Link: Clone + Send + Sync + Unpin + 'static {
    /// Where a session is: what all its messages have in common.
    type At: Clone + Send + Sync + Unpin + 'static;

    /// Whether the era has to be known even by those who would speak one alone (stdio, "Backward Compatibility").
    /// Otherwise their requests are sent as they are, and refusals looked at.
    const PROBES: bool;
    /// How long a server may be silent about its era before it is asked in the old way too.
    const SILENCE: Duration;
    /// Whether what belongs to no call has to be read, whoever waits for it.
    const SHARED: bool;

    /// Which life of the server this is: what was found out in another one no longer counts. None where there is no
    /// server yet.
    fn life(&self) -> Option<u64>;

    /// Sends a modern request as it is.
    fn modern(&self, outgoing: &Outgoing) -> impl Future<Output = Result<Incoming, Failure>> + Send;

    /// Sends the request that begins a session.
    fn begin(&self, id: RequestId, message: Bytes) -> BoxFuture<Result<(Self::At, Incoming), Failure>>;

    /// Puts down which revision was agreed on.
    fn agree(&self, at: &mut Self::At, version: ProtocolVersion);

    /// Sends a request; what comes of it, requests of the server's own included where the wire says whose they are.
    fn request(&self, at: &Self::At, id: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, Failure>>;

    /// Sends a response or a notification, of which nothing comes.
    fn tell(&self, at: &Self::At, message: Bytes) -> BoxFuture<Result<(), Failure>>;

    /// What the server says that belongs to no call.
    fn listen(&self, at: &Self::At) -> BoxFuture<Result<Incoming, Failure>>;

    /// Tells the server that nobody waits for a request any more, where dropping what comes of it does not.
    fn cancel(&self, at: &Self::At, id: &RequestId) -> BoxFuture<()>;

    /// Ends a session.
    fn end(&self, at: &Self::At) -> BoxFuture<()>;

    /// Begins to end whatever would outlive the client, without waiting for it.
    fn shut(&self);
}

/// Why a message came to nothing.
pub(crate) enum Failure {
    /// The server turned it away.
    Refused(Refusal),
    /// The session is over; the message was not looked at.
    Gone,
    /// Anything else.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// An answer that is none, or one under an HTTP status that says no.
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The JSON-RPC error that came with it.
    pub(crate) error: Option<ErrorObject>,
    /// What a client that knows of one era alone makes of it.
    pub(crate) otherwise: Result<Incoming, Error>,
}

impl Refusal {
    /// Whether this may be how an old server speaks. Refusals for other reasons say nothing of eras.
    pub(crate) fn is_doubt(&self) -> bool {
        if self.error.as_ref().is_some_and(is_modern) {
            return false;
        }
        match self.status {
            // Credentials, money, proxies, time, size and patience.
            401 | 402 | 403 | 407 | 408 | 413 | 425 | 429 | 431 | 451 => false,
            // Taken for a notification.
            202 | 204 => true,
            status => (400..500).contains(&status),
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match (self.otherwise, self.error) {
            (Err(error), _) => error,
            (Ok(_), Some(error)) => error.into(),
            (Ok(_), None) => {
                let why = format!("HTTP {} where no answer was due", self.status);
                PeerMisbehaved::UnexpectedResponse(why).into()
            }
        }
    }
}

/// Whether an error is one that only servers of the modern era give (versioning, "Backward Compatibility").
pub(super) fn is_modern(error: &ErrorObject) -> bool {
    matches!(error.code, HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION)
}
