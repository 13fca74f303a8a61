//! Trait that an edge implements to reach one server, and the ways in which a message fails there.

use roundtrip_core::error::{Error, PeerMisbehaved};
use roundtrip_core::wire::{
    Era, ErrorObject, HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, ProtocolVersion,
    UNSUPPORTED_PROTOCOL_VERSION,
};
use serde_json::Value;

use super::transport::{Incoming, Outgoing};

/// Link to one server.
pub(crate) trait Link: Send + Sync + 'static {
    /// True if the era of the server has to be known before the first request (stdio, "Backward Compatibility"). Otherwise
    /// requests can be sent unchanged, and refusals examined.
    const PROBES: bool;

    /// Returns the current life of the server: an era detected in another life no longer counts. `None` if there is
    /// no server yet.
    fn life(&self) -> Option<u64>;

    /// Sends a request unchanged.
    fn send(&self, outgoing: &Outgoing) -> impl Future<Output = Result<Incoming, Failure>> + Send;

    /// Begins to end whatever would outlive the client, without waiting for it.
    fn shut(&self);
}

/// Reasons for which a request failed.
pub(crate) enum Failure {
    /// The server refused it.
    Refused(Box<Refusal>),
    /// Anything else.
    Error(Error),
}

impl Failure {
    /// Returns the outcome for a client that knows one era alone.
    pub(crate) fn otherwise(self) -> Result<Incoming, Error> {
        match self {
            Self::Refused(refusal) => refusal.otherwise,
            Self::Error(error) => Err(error),
        }
    }
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
    /// Returns whether a legacy server may refuse a modern request like this. Refusals for other reasons do not depend on
    /// the era.
    pub(crate) fn may_be_legacy(&self) -> bool {
        if self.is_modern() {
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

    /// Returns whether only a modern server refuses like this.
    pub(crate) fn is_modern(&self) -> bool {
        self.error.as_ref().is_some_and(is_modern)
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
    match error.code {
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY => true,
        UNSUPPORTED_PROTOCOL_VERSION => !names_old_revisions(error),
        _ => false,
    }
}

/// Returns whether an error names revisions that this client speaks, all of which begin with a handshake.
fn names_old_revisions(error: &ErrorObject) -> bool {
    let supported = error.data.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
    let named = supported.into_iter().flatten().filter_map(Value::as_str);
    let newest = named.filter_map(|version| version.parse::<ProtocolVersion>().ok()).max();
    cfg!(feature = "legacy") && newest.is_some_and(|newest| newest.era() == Era::Handshake)
}
