//! [`Viewer`]: the caller of a request, as visibility rules see it.

use std::fmt;

use roundtrip_core::auth::ScopeSet;
use roundtrip_core::wire::{ClientCapabilities, ProtocolVersion, RequestMeta, json};

use crate::server::access::Access;
use crate::server::peer::{Peer, Principal};

/// Caller of a request, as rules of [`Tool::visible_to`](crate::Tool::visible_to) see it.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    meta: &'a RequestMeta<'a>,
    peer: &'a Peer,
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(meta: &'a RequestMeta<'a>, peer: &'a Peer) -> Self {
        Self { meta, peer }
    }

    pub(crate) fn hold(&self) -> HeldViewer {
        HeldViewer::new(self.revision(), self.capabilities(), self.peer)
    }

    /// Returns the authenticated principal, if the transport has one.
    pub fn principal(&self) -> Option<&'a Principal> {
        self.peer.principal.as_ref()
    }

    /// Returns the rights of the caller's access token.
    pub fn access(&self) -> &'a Access {
        &self.peer.access
    }

    /// Returns whether the caller has these scopes. Where no tokens are checked, as on stdio, it has.
    pub fn has_scopes<S: AsRef<str>>(&self, scopes: impl IntoIterator<Item = S>) -> bool {
        ScopeSet::of(scopes).is_ok_and(|scopes| self.access().has(&scopes))
    }

    /// Returns an extension that the HTTP stack attached to the request.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.peer.extensions.get()
    }

    /// Returns the client capabilities of the request.
    pub fn capabilities(&self) -> &'a ClientCapabilities {
        &self.meta.client_capabilities
    }

    /// Returns the protocol revision of the request.
    pub fn revision(&self) -> ProtocolVersion {
        revision(self.meta)
    }
}

/// A viewer that outlives its request, for changes that are announced later.
#[derive(Debug)]
pub(crate) struct HeldViewer {
    revision: ProtocolVersion,
    /// Kept as text: a client says how much it is.
    capabilities: String,
    peer: Peer,
}

impl HeldViewer {
    pub(crate) fn new(revision: ProtocolVersion, capabilities: &ClientCapabilities, peer: &Peer) -> Self {
        // Without the delivery of its questions, which would keep a session alive.
        let peer = Peer {
            principal: peer.principal.clone(),
            access: peer.access.clone(),
            extensions: peer.extensions.clone(),
            ..Peer::default()
        };
        Self { revision, capabilities: serde_json::to_string(capabilities).unwrap_or_default(), peer }
    }

    /// Returns the bytes that the client's part takes.
    pub(crate) fn bytes(&self) -> usize {
        self.capabilities.len()
    }

    /// Returns what `look` says of the viewer, false if it cannot be read.
    pub(crate) fn is(&self, look: impl FnOnce(&Viewer<'_>) -> bool) -> bool {
        let Ok(client_capabilities) = json::from_str(&self.capabilities) else { return false };
        let meta = RequestMeta {
            protocol_version: self.revision.as_str().into(),
            client_capabilities,
            progress_token: None,
            client_info: None,
            log_level: None,
            extra: Vec::new(),
        };
        look(&Viewer::new(&meta, &self.peer))
    }
}

/// Returns the revision of a request. Edges let no unknown one through.
pub(crate) fn revision(meta: &RequestMeta<'_>) -> ProtocolVersion {
    meta.protocol_version.parse().unwrap_or(ProtocolVersion::LATEST)
}

impl fmt::Debug for Viewer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer")
            .field("principal", &self.principal())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
