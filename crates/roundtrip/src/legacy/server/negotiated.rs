//! Outcome of `initialize`: the negotiated revision, capabilities and client info.

use std::borrow::Cow;

use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    ClientCapabilities, ErrorObject, LoggingLevel, ProtocolVersion, Raw, RequestMeta, decode_params,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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
    pub(super) capabilities: ClientCapabilities,
    pub(super) client_info: Option<Raw>,
}

impl Negotiated {
    /// Returns the terms of a call without `initialize`: an anonymous client that can be asked nothing.
    pub(super) fn unknown(version: ProtocolVersion) -> Self {
        Self { version, capabilities: ClientCapabilities::default(), client_info: None }
    }

    /// Agrees on the client's revision, or on our newest if that is not supported (lifecycle, "Version Negotiation").
    /// `lists_tasks` says whether the caller has tasks of its own to list.
    pub(super) fn agree(
        endpoint: &Endpoint,
        params: Option<&RawValue>,
        oldest: ProtocolVersion,
        lists_tasks: bool,
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
        let mut answer = serde_json::to_value(&answer)
            .map_err(|error| ErrorObject::internal(format!("this does not serialise: {error}")))?;
        if version.has_experimental_tasks() && endpoint.inner().tasks.is_some() {
            answer["capabilities"]["tasks"] = tasks(lists_tasks);
        }
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
        if !self.version.has_experimental_tasks() {
            params.set("task", None);
        }
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

/// Returns the `tasks` capability of 2025-11-25.
fn tasks(lists: bool) -> Value {
    let mut tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    if lists {
        tasks["list"] = json!({});
    }
    tasks
}
