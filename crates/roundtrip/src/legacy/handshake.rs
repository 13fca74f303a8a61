//! `initialize`: how a session of the old eras begins (lifecycle, "Initialization").

use std::borrow::Cow;

use roundtrip_core::wire::{
    ClientCapabilities, Era, ErrorObject, Implementation, ProtocolVersion, Raw, ServerCapabilities,
    decode_params,
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

/// What a client can be asked at a revision: what it declares beyond that, the revision has no words for.
pub(super) fn within_revision(
    mut capabilities: ClientCapabilities,
    version: ProtocolVersion,
) -> ClientCapabilities {
    capabilities.experimental.clear();
    capabilities.extensions.clear();
    if version < ProtocolVersion::V2025_06_18 {
        capabilities.elicitation = None;
    }
    if version < ProtocolVersion::V2025_11_25 {
        if let Some(elicitation) = &mut capabilities.elicitation {
            elicitation.url = None;
        }
        if let Some(sampling) = &mut capabilities.sampling {
            sampling.tools = None;
        }
    }
    capabilities
}
