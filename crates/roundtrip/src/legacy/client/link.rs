//! Trait that an edge implements for the [`EraClient`](super::EraClient): sessions, over a link that sends modern requests.

use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{ProtocolVersion, RequestId};

use crate::client::{BoxFuture, Error, Failure, Incoming, Link, Refusal};

/// Link to one server, for both eras.
pub(crate) trait SessionLink: Link + Clone + Unpin {
    /// Address of a session: what all its messages share.
    type At: Clone + Send + Sync + Unpin + 'static;

    /// Longest silence after `server/discover` before `initialize` is tried too.
    const SILENCE: Duration;
    /// True if messages that belong to no call have to be read, even without a listener.
    const SHARED: bool;

    /// Sends the request that begins a session.
    fn begin(&self, id: RequestId, message: Bytes)
    -> BoxFuture<Result<(Self::At, Incoming), SessionFailure>>;

    /// Stores the revision that was agreed on.
    fn agree(&self, at: &mut Self::At, version: ProtocolVersion);

    /// Sends a request; returns its messages, including requests of the server if the link shows which call they
    /// belong to.
    fn request(
        &self,
        at: &Self::At,
        id: RequestId,
        message: Bytes,
    ) -> BoxFuture<Result<Incoming, SessionFailure>>;

    /// Sends a response or a notification.
    fn tell(&self, at: &Self::At, message: Bytes) -> BoxFuture<Result<(), SessionFailure>>;

    /// Returns the messages that belong to no call.
    fn listen(&self, at: &Self::At) -> BoxFuture<Result<Incoming, SessionFailure>>;

    /// Cancels a request, if dropping its messages does not.
    fn cancel(&self, at: &Self::At, id: &RequestId) -> BoxFuture<()>;

    /// Returns whether a session was begun with the credentials that requests are sent with now. One of others is over.
    fn is_current(&self, at: &Self::At) -> bool {
        let _ = at;
        true
    }

    /// Returns the id of a session, if it has one.
    #[cfg(feature = "opentelemetry")]
    fn session_id(at: &Self::At) -> Option<&str> {
        let _ = at;
        None
    }

    /// Ends a session.
    fn end(&self, at: &Self::At) -> BoxFuture<()>;
}

/// Reasons for which a message failed in a session.
pub(crate) enum SessionFailure {
    /// The server refused it.
    Refused(Box<Refusal>),
    /// The session is over; the message was not handled.
    Gone,
    /// Anything else.
    Error(Error),
}

impl From<Error> for SessionFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Failure> for SessionFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::Error(error) => Self::Error(error),
        }
    }
}
