//! Refusal of a token: the reason for the log, and one sentence for the client.

use std::fmt;

use serde_json::json;

use super::{CodecError, KeyId};
use crate::wire::ErrorObject;

/// Reason a token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Longer than allowed; not even decoded.
    #[error("it is longer than allowed")]
    TooLarge,
    /// Not a token in the one spelling that tokens have, or not one that holds what tokens hold.
    #[error("it is malformed")]
    Malformed,
    /// A version this release does not read.
    #[error("it has format {0}, which this release does not read")]
    Format(u8),
    /// Sealed with a key that is not on the ring, as by another instance, or before a restart.
    #[error(
        "its key is not on the ring: another instance sealed it, or this one before a restart; \
         instances that carry on each other's flows share a `Keyring`"
    )]
    UnknownKey,
    /// Changed, or never made by a holder of the key that it names, which is on the ring.
    #[error("it was changed or forged: it names a key of the ring, which did not seal it as it is")]
    Forged,
    /// The codec could not open it.
    #[error("the codec did not open it")]
    Codec,
    /// Made for another service.
    #[error("it was made for another audience")]
    WrongAudience,
    /// Made for another caller, or for a known one and presented by an unknown one, or the reverse.
    #[error("it was made for another principal")]
    WrongPrincipal,
    /// Made for another OAuth client of the caller, or for a known one and presented by an unknown one, or the reverse.
    #[error("it was made through another OAuth client")]
    WrongClient,
    /// Made for another method, or another tool, prompt or resource.
    #[error("it was made for another method or target")]
    WrongTarget,
    /// Made for a call with other arguments.
    #[error("it was made for other arguments")]
    WrongArguments,
    /// Made later than now, by more than clocks may differ.
    #[error("it was made in the future: the clocks of two instances differ")]
    NotYetValid,
    /// Presented too late.
    #[error("it has expired")]
    Expired,
    /// The flow has gone on longer than allowed.
    #[error("its flow is older than allowed")]
    FlowTooOld,
}

/// A token that was refused. The client learns nothing of the reason: answer with
/// [`error_object`](Self::error_object), and log this.
#[derive(Debug)]
pub struct Rejected {
    /// The reason, for the log.
    pub reason: Reason,
    /// The key id in the token.
    pub key: Option<KeyId>,
    source: Option<CodecError>,
}

impl Rejected {
    pub(super) fn by_key(reason: Reason, key: KeyId) -> Self {
        Self { reason, key: Some(key), source: None }
    }

    pub(super) fn by_codec(source: CodecError) -> Self {
        Self { reason: Reason::Codec, key: None, source: Some(source) }
    }

    /// Returns the error for the client: the same for every reason, so that trying reveals nothing.
    pub fn error_object(&self) -> ErrorObject {
        ErrorObject::invalid_params("Invalid or expired requestState")
            .with_data(json!({ "reason": "invalid_request_state" }))
    }
}

impl From<Reason> for Rejected {
    fn from(reason: Reason) -> Self {
        Self { reason, key: None, source: None }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request state was refused: {}", self.reason)?;
        match self.key {
            Some(key) => write!(f, " (key {key})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Rejected {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Reason a state could not be sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The token would be longer than allowed.
    #[error(
        "the sealed state would have {size} characters and {limit} are allowed: remember less in this flow"
    )]
    TooLarge {
        /// The length of the token, in characters.
        size: usize,
        /// The limit, in characters.
        limit: usize,
    },
    /// The codec failed.
    #[error("the codec did not seal the state")]
    Codec(#[source] CodecError),
}
