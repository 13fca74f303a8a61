//! [`CallInfo`]: the request of a call, as hooks see it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use roundtrip_core::seal::FlowId;
use roundtrip_core::wire::{ClientRequest, ErrorObject, ProtocolVersion, RequestId, json};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::viewer::revision;
use crate::server::access::Access;
use crate::server::peer::{Peer, Principal};

/// Facts about a call, for hooks.
///
/// The request has not been looked into when hooks run: its arguments are not checked, and its `requestState` is sealed.
/// Flow and round are known once `next.run()` has returned.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallInfo {
    /// The request's id.
    pub id: RequestId,
    /// The method, `tools/call` for one.
    pub method: &'static str,
    /// The tool's or prompt's name, or the resource's URI. For `completion/complete`, those of its reference.
    pub target: Option<Arc<str>>,
    /// The protocol revision of the request.
    pub revision: ProtocolVersion,
    /// The authenticated principal, if the transport has one.
    pub principal: Option<Principal>,
    /// The rights of the caller's access token.
    pub access: Access,
    /// Extensions that the HTTP stack attached to the request.
    pub extensions: http::Extensions,
    /// True for a request with `requestState`: it claims to continue a flow.
    pub has_state: bool,
    /// True for a request with `inputResponses`. Clients of the handshake eras answer while the handler waits, in
    /// messages of their own.
    pub has_answers: bool,
    request: Arc<HeldRequest>,
}

impl CallInfo {
    pub(crate) fn new(request: &ClientRequest<'_>, held: &Arc<HeldRequest>) -> Self {
        let HeldRequest { id, method, peer, .. } = &**held;
        Self {
            id: id.clone(),
            method,
            target: target(request).map(Arc::from),
            revision: revision(request.meta()),
            principal: peer.principal.clone(),
            access: peer.access.clone(),
            extensions: peer.extensions.clone(),
            has_state: request.request_state().is_some(),
            has_answers: request.input_responses().is_some(),
            request: Arc::clone(held),
        }
    }

    /// Returns the JSON text of the arguments of a tool or a prompt, unchecked. It is found by a scan of the request, and
    /// not copied.
    ///
    /// [`digest_arguments`](crate::seal::digest_arguments) gives a digest of it that is the same however the client wrote
    /// it down.
    pub fn arguments(&self) -> Option<&RawValue> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        json::from_str::<Params<'_>>(self.request.params.get()).ok()?.arguments
    }

    /// Returns the id of the flow, which all rounds of a call have in common.
    ///
    /// It is `None` until [`Next::run`](super::Next::run) has returned, because `requestState` is opened behind all hooks:
    /// a caller that a hook refuses learns nothing about a token. It stays `None` for a refused token, and for a call that
    /// came without one and whose handler cannot ask.
    pub fn flow(&self) -> Option<FlowId> {
        self.request.place.get().map(|place| place.flow)
    }

    /// Returns the number of this request among those of its flow, counted from 1. It is known when the
    /// [`flow`](Self::flow) is.
    pub fn round(&self) -> Option<u32> {
        self.request.place.get().map(|place| place.round)
    }
}

fn target<'a>(request: &'a ClientRequest<'_>) -> Option<&'a str> {
    match request {
        ClientRequest::Complete(params) => Some(params.reference.target()),
        _ => request.target(),
    }
}

/// Shows neither arguments nor answers nor state: they do not belong into a log.
impl fmt::Debug for CallInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallInfo")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("target", &self.target)
            .field("revision", &self.revision)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// A request's place in its flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) flow: FlowId,
    /// Counted from 1.
    pub(crate) round: u32,
}

/// A request that outlives the message it was read from.
pub(crate) struct HeldRequest {
    pub(crate) id: RequestId,
    method: &'static str,
    params: Box<RawValue>,
    pub(crate) peer: Peer,
    /// Set once `requestState` has been opened, or the handler can ask.
    pub(crate) place: OnceLock<Place>,
}

impl HeldRequest {
    pub(crate) fn new(
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> Result<Arc<Self>, ErrorObject> {
        let params = request
            .to_params()
            .map_err(|error| ErrorObject::internal(format!("the request cannot be kept: {error}")))?;
        let (id, method, peer) = (id.clone(), request.method(), peer.clone());
        Ok(Arc::new(Self { id, method, params, peer, place: OnceLock::new() }))
    }

    pub(crate) fn decode(&self) -> Result<ClientRequest<'_>, ErrorObject> {
        ClientRequest::decode(self.method, Some(&self.params))
    }
}
