//! [`Started`]: a server that has been checked and started.

use std::sync::Arc;

use roundtrip_core::wire::{ErrorObject, Implementation, ProtocolVersion, ServerCapabilities, Signature};

use super::handler::call::StateMap;
#[cfg(feature = "legacy")]
use super::handshake::{Handshake, Served};
use super::hook::Hook;
use super::ledger::LedgerConfig;
use super::offer::catalog::Catalog;
use super::offer::list::Listings;
use super::rate::{RateGate, RateLimit};
use super::round::FlowConfig;
use super::task::service::TaskService;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Telemetry;

/// The revisions of the modern era that a started server speaks.
pub(crate) const SUPPORTED: &[ProtocolVersion] = &[ProtocolVersion::V2026_07_28];

impl Started {
    /// Returns the revisions that the server speaks, the newest first.
    pub(crate) fn spoken(&self) -> &'static [ProtocolVersion] {
        #[cfg(feature = "legacy")]
        if self.handshake.served != Served::Refused {
            return &ProtocolVersion::ON_EVERY_TRANSPORT;
        }
        SUPPORTED
    }

    /// Returns the error of a request in a revision that no request can be in. A revision that begins with a handshake is not
    /// named to a request that is in it already.
    pub(crate) fn unsupported(&self, version: &str) -> ErrorObject {
        let others: Vec<ProtocolVersion> =
            self.spoken().iter().copied().filter(|spoken| spoken.as_str() != version).collect();
        ErrorObject::unsupported_version(version, &others)
    }
}

/// A started server: its settings and its offers. `methods` and `deferred` prepare calls of it.
pub(crate) struct Started {
    pub(crate) info: Arc<Implementation>,
    pub(crate) signature: Signature,
    pub(crate) instructions: Option<String>,
    pub(crate) declared: ServerCapabilities,
    pub(crate) catalog: Catalog,
    pub(crate) state: StateMap,
    pub(crate) hooks: Vec<Hook>,
    /// Limits on all calls together.
    pub(crate) limits: Vec<RateLimit>,
    pub(crate) rates: RateGate,
    pub(crate) listings: Listings,
    pub(crate) flows: Arc<FlowConfig>,
    pub(crate) ledger: Option<LedgerConfig>,
    pub(crate) tasks: Option<Arc<TaskService>>,
    #[cfg(feature = "opentelemetry")]
    pub(crate) telemetry: Option<Telemetry>,
    /// Settings for clients of the handshake eras.
    #[cfg(feature = "legacy")]
    pub(crate) handshake: Handshake,
}
