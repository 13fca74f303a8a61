//! [`Viewer`]: the caller of a request, as visibility rules see it.

use std::fmt;

use roundtrip_core::wire::{ClientCapabilities, ProtocolVersion, RequestMeta};

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

    /// Returns the authenticated principal, if the transport has one.
    pub fn principal(&self) -> Option<&'a Principal> {
        self.peer.principal.as_ref()
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
