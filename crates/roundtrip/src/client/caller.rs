//! Settings of a client that sessions of the handshake eras need beyond its messages.

use std::sync::Weak;

use roundtrip_core::wire::ProtocolVersion;

use super::handlers::Handlers;
use super::limits::ClientLimits;
use super::options::TaskWish;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::{Network, Telemetry};

/// Client that sends a request.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The one revision the user wants spoken, where there is one.
    pub(crate) pinned: Option<ProtocolVersion>,
    pub(crate) limits: ClientLimits,
    /// True if calls of tools may become tasks.
    pub(crate) offers_tasks: bool,
    /// Wish for a task, where the request is a call.
    pub(crate) task: TaskWish,
    /// Handlers for questions outside of any call. They end with their clients, whatever a session still waits for.
    pub(crate) handlers: Weak<Handlers>,
    /// Telemetry of the client, and its connection, to measure sessions.
    #[cfg(feature = "opentelemetry")]
    pub(crate) telemetry: Option<(Telemetry, Network)>,
}
