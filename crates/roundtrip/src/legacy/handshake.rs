//! `initialize`, which begins a session of the handshake eras (lifecycle, "Initialization").

use std::borrow::Cow;

use roundtrip_core::wire::{
    ClientCapabilities, ElicitationCapability, Era, Implementation, ProtocolVersion, Raw, SamplingCapability,
    ServerCapabilities,
};
use serde::{Deserialize, Serialize};

pub(super) use crate::server::INITIALIZE;

/// Notification by which a client says that it is ready.
pub(super) const INITIALIZED: &str = "notifications/initialized";
/// Asks whether the other side is still there. Both sides may ask.
pub(super) const PING: &str = "ping";
/// Sets the level of log messages for a whole session.
pub(super) const SET_LEVEL: &str = "logging/setLevel";
/// Subscribes to the changes of a resource.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
/// Ends such a subscription.
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Error code: a web page has to be visited first. Its data lists the pages under `elicitations` (2025-11-25 alone).
pub(super) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// Error code: no such resource.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// Newest revision that has a handshake.
pub(super) const NEWEST: ProtocolVersion = ProtocolVersion::V2025_11_25;

/// Parses a version string that names a handshake revision.
pub(super) fn revision(version: &str) -> Option<ProtocolVersion> {
    version.parse::<ProtocolVersion>().ok().filter(|version| version.era() == Era::Handshake)
}

/// Parameters of `initialize`: the client's revision, capabilities and name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeRequestParams<'a> {
    pub(super) protocol_version: Cow<'a, str>,
    pub(super) capabilities: ClientCapabilities,
    /// Kept as text: it is for display only.
    pub(super) client_info: Raw,
}

/// Result of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: String,
    pub(super) capabilities: ServerCapabilities,
    pub(super) server_info: Implementation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
}

/// Returns the client capabilities that a revision knows, by the `ClientCapabilities` of its schema:
///
/// | revision | `roots`, `sampling`, `experimental` | `elicitation` | `elicitation.form`, `elicitation.url`, `sampling.context`, `sampling.tools` |
/// |---|---|---|---|
/// | 2024-11-05, 2025-03-26 | yes | no | no |
/// | 2025-06-18 | yes | yes, and it means forms | no |
/// | 2025-11-25 | yes | yes | yes |
pub(super) fn within_revision(
    mut capabilities: ClientCapabilities,
    version: ProtocolVersion,
) -> ClientCapabilities {
    capabilities.extensions.clear();
    if version < ProtocolVersion::V2025_11_25 {
        let forms = capabilities.elicitation.is_some_and(|modes| modes.allows_form());
        let elicits = forms && version >= ProtocolVersion::V2025_06_18;
        capabilities.elicitation = elicits.then(ElicitationCapability::default);
        capabilities.sampling = capabilities.sampling.map(|_| SamplingCapability::default());
    }
    capabilities
}
