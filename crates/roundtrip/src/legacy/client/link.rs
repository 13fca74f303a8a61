//! Trait that an edge implements for the [`EraClient`](super::EraClient).

use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{
    ErrorObject, HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolVersion, RequestId,
    UNSUPPORTED_PROTOCOL_VERSION,
};

use crate::client::{BoxFuture, Error, Incoming, Outgoing, PeerMisbehaved};

/// Link to one server, for both eras.
pub(crate) trait Link: Clone + Send + Sync + Unpin + 'static {
    /// Address of a session: what all its messages share.
    type At: Clone + Send + Sync + Unpin + 'static;

    /// True if the era has to be known even by clients pinned to one (stdio, "Backward Compatibility"). Otherwise
    /// their requests are sent unchanged, and refusals examined.
    const PROBES: bool;
    /// Longest silence after `server/discover` before `initialize` is tried too.
    const SILENCE: Duration;
    /// True if messages that belong to no call have to be read, even without a listener.
    const SHARED: bool;

    /// Returns the current life of the server: an era detected in another life no longer counts. `None` if there is
    /// no server yet.
    fn life(&self) -> Option<u64>;

    /// Sends a modern request unchanged.
    fn modern(&self, outgoing: &Outgoing) -> impl Future<Output = Result<Incoming, Failure>> + Send;

    /// Sends the request that begins a session.
    fn begin(&self, id: RequestId, message: Bytes) -> BoxFuture<Result<(Self::At, Incoming), Failure>>;

    /// Stores the revision that was agreed on.
    fn agree(&self, at: &mut Self::At, version: ProtocolVersion);

    /// Sends a request; returns its messages, including requests of the server if the link shows which call they
    /// belong to.
    fn request(&self, at: &Self::At, id: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, Failure>>;

    /// Sends a response or a notification.
    fn tell(&self, at: &Self::At, message: Bytes) -> BoxFuture<Result<(), Failure>>;

    /// Returns the messages that belong to no call.
    fn listen(&self, at: &Self::At) -> BoxFuture<Result<Incoming, Failure>>;

    /// Cancels a request, if dropping its messages does not.
    fn cancel(&self, at: &Self::At, id: &RequestId) -> BoxFuture<()>;

    /// Ends a session.
    fn end(&self, at: &Self::At) -> BoxFuture<()>;

    /// Begins to end whatever would outlive the client, without waiting for it.
    fn shut(&self);
}

/// Reasons for which a message failed.
pub(crate) enum Failure {
    /// The server refused it.
    Refused(Refusal),
    /// The session is over; the message was not handled.
    Gone,
    /// Anything else.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// A response that is no answer, or one whose HTTP status is an error.
pub(crate) struct Refusal {
    /// HTTP status.
    pub(crate) status: u16,
    /// JSON-RPC error in the body.
    pub(crate) error: Option<ErrorObject>,
    /// Outcome for a client that knows one era alone.
    pub(crate) otherwise: Result<Incoming, Error>,
}

impl Refusal {
    /// Returns whether this may be how a legacy server refuses a modern request. Refusals for other reasons do not
    /// depend on the era.
    pub(crate) fn is_doubt(&self) -> bool {
        if self.error.as_ref().is_some_and(is_modern) {
            return false;
        }
        match self.status {
            // Credentials, payment, proxies, timeouts, size and rate.
            401 | 402 | 403 | 407 | 408 | 413 | 425 | 429 | 431 | 451 => false,
            // Handled as a notification.
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

/// Returns whether an error is one that only modern servers send (versioning, "Backward Compatibility").
pub(super) fn is_modern(error: &ErrorObject) -> bool {
    matches!(error.code, HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION)
}
