//! Outcome of `initialize`: the negotiated revision, capabilities and client info.

use std::borrow::Cow;

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    ClientCapabilities, ErrorObject, LoggingLevel, ProtocolVersion, Raw, RequestMeta, decode_params,
};
use serde_json::value::RawValue;

use super::translate;
use crate::legacy::handshake::{
    InitializeRequestParams, InitializeResult, NEWEST, revision, within_revision,
};
use crate::server::{Endpoint, HeldViewer, Peer};

/// Most bytes of the parameters of `initialize`.
const LARGEST: usize = 16 * 1024;

/// Version, capabilities and client info negotiated by `initialize`, which a modern client sends with every request.
#[derive(Debug, Clone)]
pub(super) struct Negotiated {
    pub(super) version: ProtocolVersion,
    capabilities: ClientCapabilities,
    client_info: Option<Raw>,
}

impl Negotiated {
    /// Returns the terms of a call without `initialize`: an anonymous client that can be asked nothing.
    pub(super) fn unknown(version: ProtocolVersion) -> Self {
        Self { version, capabilities: ClientCapabilities::default(), client_info: None }
    }

    /// Agrees on the client's revision, or on our newest if that is not supported (lifecycle, "Version Negotiation").
    pub(super) fn agree(
        endpoint: &Endpoint,
        params: Option<&RawValue>,
        oldest: ProtocolVersion,
    ) -> Result<(Self, Raw), ErrorObject> {
        if params.is_some_and(|params| params.get().len() > LARGEST) {
            return Err(ErrorObject::invalid_params(format!(
                "params: at most {LARGEST} bytes, which a session keeps"
            )));
        }
        let wanted: InitializeRequestParams<'_> = decode_params(params)?;
        let version =
            revision(&wanted.protocol_version).filter(|version| *version >= oldest).unwrap_or(NEWEST);
        let mut capabilities = endpoint.capabilities();
        capabilities.extensions.clear();
        let answer = InitializeResult {
            protocol_version: version.as_str().to_owned(),
            capabilities,
            server_info: (*endpoint.inner().info).clone(),
            instructions: endpoint.inner().instructions.clone(),
        };
        let mut capabilities = within_revision(wanted.capabilities, version);
        capabilities.experimental.clear();
        let negotiated = Self { version, capabilities, client_info: Some(wanted.client_info) };
        Ok((negotiated, translate::raw(&answer)?))
    }

    /// Returns the client as visibility rules see it.
    pub(super) fn viewer(&self, peer: &Peer) -> HeldViewer {
        HeldViewer::new(self.version, &self.capabilities, peer)
    }

    /// Translates the parameters of a legacy request into those of a modern one.
    pub(super) fn modern(
        &self,
        params: Option<&RawValue>,
        log_level: Option<LoggingLevel>,
    ) -> Result<Params, ErrorObject> {
        let (mut params, meta) = translate::request(params)?;
        let meta = RequestMeta {
            progress_token: meta.progress_token,
            protocol_version: self.version.as_str().into(),
            client_info: self.client_info.as_ref().map(AsRef::as_ref),
            client_capabilities: Box::new(self.capabilities.clone()),
            log_level,
            extra: meta.extra.iter().map(|(name, value)| (Cow::Borrowed(name), value.as_ref())).collect(),
        };
        params.set("_meta", Some(translate::raw(&meta)?));
        Ok(params)
    }
}
