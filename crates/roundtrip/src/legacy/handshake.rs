//! `initialize`: how a session of the old eras begins (lifecycle, "Initialization").

use std::borrow::Cow;

use roundtrip_core::wire::{
    ClientCapabilities, ElicitationCapability, Era, ErrorObject, Implementation, ProtocolVersion, Raw,
    SamplingCapability, ServerCapabilities, decode_params,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The request that begins a session.
pub(super) const INITIALIZE: &str = "initialize";
/// The notification by which a client says that it is ready.
pub(super) const INITIALIZED: &str = "notifications/initialized";
/// Asks whether the other side is still there. Both sides may ask.
pub(super) const PING: &str = "ping";
/// Sets the level of log messages for a whole session.
pub(super) const SET_LEVEL: &str = "logging/setLevel";
/// Asks to be told of a resource's changes.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";
/// Takes that back.
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// "This needs a visit to a web page first": its data lists the pages under `elicitations` (2025-11-25 alone).
pub(super) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// "No such resource".
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// The newest revision that has a handshake.
pub(super) const NEWEST: ProtocolVersion = ProtocolVersion::V2025_11_25;

/// The old revision a version string names.
pub(super) fn revision(version: &str) -> Option<ProtocolVersion> {
    version.parse::<ProtocolVersion>().ok().filter(|version| version.era() == Era::Handshake)
}

/// Who the client is and what it wants to speak.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeRequestParams<'a> {
    pub(super) protocol_version: Cow<'a, str>,
    pub(super) capabilities: ClientCapabilities,
    /// Kept as text: it is for display only.
    pub(super) client_info: Raw,
}

/// What the server makes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: String,
    pub(super) capabilities: ServerCapabilities,
    pub(super) server_info: Implementation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
}

/// What whoever wants to begin a session is told where there are none: what is spoken, which may be all that people get
/// to see (versioning, "Backward Compatibility").
pub(super) fn refusal(params: Option<&RawValue>) -> ErrorObject {
    let wanted = decode_params::<InitializeRequestParams<'_>>(params);
    let wanted = wanted.map_or(Cow::Borrowed("none"), |wanted| wanted.protocol_version);
    ErrorObject::unsupported_version(&wanted, &[ProtocolVersion::LATEST])
}

/// Client capabilities that a revision has words for, by the `ClientCapabilities` of its schema:
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
