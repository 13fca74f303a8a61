//! Errors by who must act, and the one mapping from a JSON-RPC error to an HTTP status.

use std::error::Error as StdError;
use std::time::Duration;

use crate::wire::{
    ErrorObject, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY, PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION,
};

/// Our own code for "too many at once, try again later". It lies outside the range JSON-RPC reserves.
pub const BUSY: i64 = 503;

/// Our own code for a prompt or resource whose question the user refused. Tools tell the model instead.
pub const DECLINED: i64 = 403;

/// When an error arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// While the request was read: it is not one we can serve.
    Request,
    /// While the call ran: the request was fine.
    Call,
}

/// The HTTP status of an error answer.
///
/// What is wrong with a *request* has the status the specification gives it. A call that ran and failed is still
/// a successful exchange of messages: clients that find a 4xx may take the server for one of another era.
pub fn http_status(error: &ErrorObject, stage: Stage) -> u16 {
    match error.code {
        METHOD_NOT_FOUND => 404,
        PARSE_ERROR
        | INVALID_REQUEST
        | HEADER_MISMATCH
        | MISSING_REQUIRED_CLIENT_CAPABILITY
        | UNSUPPORTED_PROTOCOL_VERSION => 400,
        INVALID_PARAMS if stage == Stage::Request => 400,
        BUSY => 503,
        _ => 200,
    }
}

/// Why a call came to nothing, sorted by who has to do something about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Your code asked for something that cannot be done.
    #[error("{0}")]
    ApiMisuse(String),

    /// The peer cannot do this: another version, a capability it lacks.
    #[error("the peer cannot do this: {0}")]
    PeerIncompatible(String),

    /// The peer sent something that breaks the protocol.
    #[error("the peer broke the protocol: {0}")]
    PeerMisbehaved(String),

    /// The peer answered with an error.
    #[error("the server answered: {0}")]
    Rejected(#[source] ErrorObject),

    /// The peer could not be reached, or the connection broke.
    #[error("{message}")]
    Unreachable {
        /// What happened.
        message: String,
        /// Whether the request may have reached the server.
        sent: Sent,
        /// What the transport said.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },

    /// The call could have gone on, but not within the bounds it was given: too many rounds, or too long a wait.
    #[error("gave up: {0}")]
    GaveUp(String),

    /// A handler of yours failed, or refused: this is what it said.
    #[error("{0}")]
    Handler(#[source] Box<dyn StdError + Send + Sync>),

    /// The client was closed, or dropped, while the call was under way.
    #[error("the client was closed while the call was under way")]
    Closed,

    /// No answer in time. The call has been cancelled.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// Whether a request may have reached the server before the connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It cannot have: sending again is safe.
    No,
    /// It may have: sending again may run it twice.
    Maybe,
}

impl Error {
    /// A connection that broke.
    pub fn unreachable(message: impl Into<String>, sent: Sent) -> Self {
        Self::Unreachable { message: message.into(), sent, source: None }
    }

    /// What a handler failed with. One of our own errors stays what it is.
    pub fn handler(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        error.into().downcast::<Self>().map_or_else(Self::Handler, |own| *own)
    }
}
