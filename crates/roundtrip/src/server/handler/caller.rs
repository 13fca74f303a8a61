//! [`Caller`]: the client of a call, its principal and its rights.

use std::collections::BTreeMap;
use std::sync::Arc;

use roundtrip_core::auth::{Claims, ScopeError, ScopeSet};
use roundtrip_core::wire::{ClientCapabilities, Era, ErrorObject, Implementation, ProtocolVersion, Raw};
use serde::de::DeserializeOwned;

use super::call::{Call, Rejection};
use super::extract::FromCall;
use crate::server::access::Access;
use crate::server::peer::Principal;

/// Extractor for the caller: the client as its `_meta` describes it, and its principal.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Client capabilities declared by this request.
    pub capabilities: ClientCapabilities,
    /// Protocol revision of the request.
    pub protocol_version: ProtocolVersion,
    /// The authenticated principal, if the transport has one.
    pub principal: Option<Principal>,
    access: Access,
    /// Scopes that callers of the offer need.
    needed: Option<Arc<ScopeSet>>,
    info: Option<Raw>,
    meta: BTreeMap<String, Raw>,
}

impl Caller {
    /// Returns the era of its revision.
    pub fn era(&self) -> Era {
        self.protocol_version.era()
    }

    /// Returns the client's name and version: self-reported, for display only.
    pub fn info(&self) -> Option<Implementation> {
        self.info.as_ref().and_then(|info| info.to().ok())
    }

    /// Returns a value of the request's `_meta` under a key that is not the protocol's own.
    pub fn meta<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.meta.get(key).and_then(|value| value.to().ok())
    }

    /// Refuses the call unless the request declared the capabilities it needs (W9).
    ///
    /// # Errors
    /// -32021, naming what is missing.
    pub fn require(&self, required: &ClientCapabilities) -> Result<(), ErrorObject> {
        if self.capabilities.covers(required) {
            Ok(())
        } else {
            Err(ErrorObject::missing_capability("this call", &self.capabilities, required))
        }
    }

    /// Returns the claims of the caller's access token: its subject, its client, its scopes, and all others. `None` where no
    /// token was checked, as on stdio.
    ///
    /// The token itself is not here: it was given to this server, and is no key to others.
    pub fn claims(&self) -> Option<&Claims> {
        self.access.claims()
    }

    /// Returns the scopes of the caller's access token, without those that they imply. `None` where no token was checked.
    pub fn scopes(&self) -> Option<&ScopeSet> {
        self.claims().map(|claims| &claims.scopes)
    }

    /// Returns whether the caller has these scopes, by itself or by those that imply them. Where no tokens are checked, as on
    /// stdio, it has.
    pub fn has_scopes<S: AsRef<str>>(&self, scopes: impl IntoIterator<Item = S>) -> bool {
        ScopeSet::of(scopes).is_ok_and(|scopes| self.access.has(&scopes))
    }

    /// Refuses the call unless the caller has these scopes: for those that depend on the arguments. Fixed ones are
    /// declared with [`Tool::scopes`](crate::Tool::scopes).
    ///
    /// The client gets HTTP 403 with a challenge, if nothing was sent before, and can come back with a wider token. That
    /// costs a flow nothing: answers and steps are kept.
    ///
    /// ```
    /// use roundtrip::{Args, Caller, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { folder: String }
    ///
    /// async fn write(Args(file): Args<File>, caller: Caller) -> Result<&'static str, ToolError> {
    ///     caller.need_scopes([format!("files:write:{}", file.folder)])?;
    ///     Ok("written")
    /// }
    /// # roundtrip::Tool::new("write", write);
    /// ```
    ///
    /// # Errors
    /// 403, naming all that the call needs. -32602 for a text that cannot be a scope, because of a space for one.
    pub fn need_scopes<S: AsRef<str>>(&self, scopes: impl IntoIterator<Item = S>) -> Result<(), ErrorObject> {
        let wrong =
            |error: ScopeError| ErrorObject::invalid_params(format!("the arguments name no scope: {error}"));
        let needed = ScopeSet::of(scopes).map_err(wrong)?;
        self.access.need(&needed, self.needed.as_deref())
    }
}

impl FromCall for Caller {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let version = &call.meta.protocol_version;
        let unknown = |_| ErrorObject::unsupported_version(version, &ProtocolVersion::ALL);
        Ok(Self {
            capabilities: (*call.meta.client_capabilities).clone(),
            protocol_version: version.parse().map_err(unknown)?,
            principal: call.peer.principal.clone(),
            access: call.peer.access.clone(),
            needed: call.needed.cloned(),
            info: call.meta.client_info.map(Raw::from),
            meta: call.meta.extra.iter().map(|(key, value)| (key.to_string(), Raw::from(*value))).collect(),
        })
    }
}
