//! A started server: from a request to a call on its way. Every transport goes through here.

use std::fmt;
use std::sync::{Arc, Weak};

use roundtrip_core::wire::{
    CallToolRequestParams, ClientRequest, ErrorObject, HeaderParams, LONGEST_ID, ProtocolVersion, Request,
    RequestId, ServerResult, decode_params, encode_error, peek_version,
};
#[cfg(feature = "legacy")]
use roundtrip_core::wire::{ServerCapabilities, SubscriptionFilter};
use serde::Deserialize;

use super::budget::Owner;
use super::hook::Viewer;
use super::limits::too_many_calls;
use super::methods::refused;
use super::offer::catalog::Catalog;
use super::outcome::{Outcome, sendable};
use super::peer::Peer;
use super::run::in_flight::InFlight;
use super::run::span::CallSpan;
use super::started::{SUPPORTED, Started};
use super::task::dialect::Dialect;
use super::task::service::TaskService;
use super::task_methods::is_of_sep_2322;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::{Network, Serving, Telemetry};

/// Request that begins a session of the handshake eras.
pub(crate) const INITIALIZE: &str = "initialize";

/// Most bytes around a result: its envelope, with the longest id.
const LONGEST_ENVELOPE: usize = LONGEST_ID + 64;
/// Bytes that a question takes, more often than not.
const USUAL_QUESTION: usize = 768;

/// A server that has been checked and started. Transports hand it requests; clones share everything.
#[derive(Clone)]
pub struct Endpoint(Arc<Started>);

impl Endpoint {
    pub(crate) fn new(started: Started) -> Self {
        let started = Arc::new(started);
        if let Some(tasks) = &started.tasks {
            let server: Weak<Started> = Arc::downgrade(&started);
            tasks.start(server);
        }
        Self(started)
    }

    /// Returns the catalog of the server's offers, which can be changed while it runs.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Decodes a request by its method, and checks that we speak its revision.
    ///
    /// # Errors
    /// The JSON-RPC error to answer. An unsupported version wins over parameters that do not fit, because
    /// another revision may well have other parameters. `initialize` belongs to an unsupported version.
    pub fn decode<'a>(&self, request: &Request<'a>) -> Result<ClientRequest<'a>, ErrorObject> {
        match ClientRequest::decode(&request.method, request.params) {
            Ok(ClientRequest::TaskPayload(mut params)) if request.stream.is_some() => {
                params.stream = params.stream.or(request.stream);
                self.supported(&params.meta.protocol_version).map(|()| ClientRequest::TaskPayload(params))
            }
            Ok(decoded) => self.supported(&decoded.meta().protocol_version).map(|()| decoded),
            Err(error) => match peek_version(request.params) {
                Some(version) => self.supported(&version).and(Err(self.refusal(request, error))),
                None => Err(refuse_handshake(request).unwrap_or_else(|| self.refusal(request, error))),
            },
        }
    }

    fn supported(&self, version: &str) -> Result<(), ErrorObject> {
        match version.parse::<ProtocolVersion>() {
            Ok(known) if SUPPORTED.contains(&known) => Ok(()),
            _ => Err(self.unsupported(version)),
        }
    }

    /// Returns the error of a request in a revision that this server does not speak, or not without a handshake (W6).
    pub(crate) fn unsupported(&self, version: &str) -> ErrorObject {
        self.0.unsupported(version)
    }

    /// Returns the error of parameters or headers that do not fit: another where there is no such method for the request at
    /// all.
    pub(crate) fn refusal(&self, request: &Request<'_>, error: ErrorObject) -> ErrorObject {
        let has = |tasks: &Arc<TaskService>| tasks.sep_2322.is_open_to(request.params);
        if is_of_sep_2322(&request.method) && !self.0.tasks.as_ref().is_some_and(has) {
            return ErrorObject::method_not_found(&request.method);
        }
        error
    }

    /// Starts a call. The handler runs when the call is polled.
    pub fn begin(&self, id: RequestId, request: &ClientRequest<'_>, peer: &Peer) -> InFlight {
        self.begin_sized(id, request, peer, 0)
    }

    /// Starts a call that came in a message of so many bytes, if there is room for them.
    pub(crate) fn begin_sized(
        &self,
        id: RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
        size: usize,
    ) -> InFlight {
        let span = self.span_of(&id, request, peer);
        let entered = span.enter();
        let admission = &self.0.flows.admission;
        let mut permit = admission.admit();
        // A subscription has a budget of its own, for as long as it is open.
        let size = if matches!(request, ClientRequest::SubscriptionsListen(_)) { 0 } else { size };
        let (runner, source) = if !permit.claim(peer) || !permit.weigh(peer, size) {
            refused(too_many_calls())
        } else {
            self.0.begin(&id, request, peer)
        };
        drop(entered);
        InFlight::new(id, runner, source, span, permit)
    }

    #[cfg(not(feature = "opentelemetry"))]
    fn span_of(&self, _: &RequestId, request: &ClientRequest<'_>, _: &Peer) -> CallSpan {
        CallSpan::new(request)
    }

    /// Writes the answer to a request at the end of `out`, naming the server in its `_meta` (W7). Where messages are
    /// lines, it goes through [`one_line`](roundtrip_core::wire::one_line) afterwards.
    pub fn encode(&self, out: &mut Vec<u8>, id: &RequestId, outcome: Outcome) {
        let failed = match outcome {
            Ok(result) => {
                // A state or a page can be long: room for it, and for all that is written around it, is made once.
                out.reserve(match &result {
                    ServerResult::InputRequired(asks) => {
                        USUAL_QUESTION + asks.request_state.as_ref().map_or(0, String::len)
                    }
                    ServerResult::Cached(page) => LONGEST_ENVELOPE + page.get().len(),
                    _ => 0,
                });
                match result.encode(out, id, &self.0.signature) {
                    Ok(()) => return,
                    Err(error) => ErrorObject::internal(format!("the result does not serialise: {error}")),
                }
            }
            Err(error) => sendable(error),
        };
        encode_error(out, Some(id), &failed);
    }

    /// Checks a call against the header annotations of its tool, if it has any. The tool is looked up only if some tool of the
    /// server has.
    pub(crate) fn header_params<T>(&self, tool: &str, check: impl FnOnce(&HeaderParams) -> T) -> Option<T> {
        if !self.0.catalog.has_header_params() {
            return None;
        }
        let entry = self.0.catalog.read().tools.get(tool).map(Arc::clone)?;
        let headers = &entry.own.headers;
        (!headers.is_empty()).then(|| check(headers))
    }

    /// Returns whether a request may leave out `Mcp-Name`: one about a task in SEP-2322's dialect (T11).
    pub(crate) fn may_go_unnamed(&self, request: &ClientRequest<'_>) -> bool {
        let speaks =
            |tasks: &Arc<TaskService>| tasks.sep_2322.dialect(request.meta()) == Some(Dialect::Sep2322);
        request.method().starts_with("tasks/") && self.0.tasks.as_ref().is_some_and(speaks)
    }

    /// Returns whether a caller sees the tool of a call, if there is one.
    pub(crate) fn shows_tool(&self, params: &CallToolRequestParams<'_>, peer: &Peer) -> bool {
        let entry = self.0.catalog.read().tools.get(&params.name).map(Arc::clone);
        let viewer = Viewer::new(&params.meta, peer);
        entry.is_some_and(|entry| entry.scope.shows(&viewer).unwrap_or(false))
    }

    /// Begins to drain this instance: handlers that reach a [`checkpoint`](super::Ask::checkpoint) end their round
    /// there, with state alone, and the client's retry carries on wherever it lands. Everything else goes on.
    pub fn drain(&self) {
        self.0.flows.admission.drain();
    }

    /// Waits until every round that holds a claim in the [`ledger`](super::ledger) has been recorded: those of clients that
    /// have hung up go on without a connection, and replies that a database has refused are tried again. Await it last when you shut
    /// down, under a timeout of yours.
    pub async fn finished(&self) {
        self.0.flows.admission.finished().await;
        if let Some(config) = &self.0.ledger {
            config.ledger.settled().await;
        }
    }

    /// Returns the number of calls that run now, open subscriptions not included.
    pub fn running_calls(&self) -> usize {
        self.0.flows.admission.running().saturating_sub(self.0.catalog.hub().calls())
    }

    /// Returns whether one more call may run now.
    pub(crate) fn has_place(&self) -> bool {
        self.0.flows.admission.has_place()
    }

    /// Returns whether one more call of a caller may run now.
    pub(crate) fn has_place_for(&self, owner: &Owner) -> bool {
        self.0.flows.admission.has_place_for(owner)
    }

    /// Ends every subscription with its result; calls go on.
    pub fn close_subscriptions(&self) {
        self.0.catalog.hub().close();
    }
}

#[cfg(feature = "opentelemetry")]
impl Endpoint {
    /// Returns the server's telemetry, if it has any.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.0.telemetry.as_ref()
    }

    fn span_of(&self, id: &RequestId, request: &ClientRequest<'_>, peer: &Peer) -> CallSpan {
        let telemetry = self.telemetry().and_then(|telemetry| {
            let (exists, network) = (self.offers(request), peer.extensions.get::<Network>());
            telemetry.serve(&Serving { id, request, exists, address: peer.address, network })
        });
        CallSpan::new(request, telemetry)
    }

    /// Returns whether a request names a tool or a prompt of this server.
    fn offers(&self, request: &ClientRequest<'_>) -> bool {
        let tables = || self.0.catalog.read();
        match request {
            ClientRequest::CallTool(params) => tables().tools.get(&params.name).is_some(),
            ClientRequest::GetPrompt(params) => tables().prompts.get(&params.name).is_some(),
            _ => false,
        }
    }
}

/// Needs of sessions of the handshake eras.
#[cfg(feature = "legacy")]
impl Endpoint {
    pub(crate) fn inner(&self) -> &Started {
        &self.0
    }

    /// Returns the server's capabilities.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        self.0.capabilities()
    }

    /// Returns the part of a filter that this server can honour.
    pub(crate) fn honoured(&self, wanted: &SubscriptionFilter) -> SubscriptionFilter {
        self.0.honoured(wanted)
    }
}

/// Returns the error for `initialize`, with which clients of the handshake eras begin. It names the supported revision,
/// which may be all that the user sees (versioning, "Backward Compatibility").
pub(crate) fn refuse_handshake(request: &Request<'_>) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        protocol_version: String,
    }
    (request.method == INITIALIZE).then(|| {
        let wanted = decode_params::<Wanted>(request.params).map(|wanted| wanted.protocol_version);
        ErrorObject::unsupported_version(wanted.as_deref().unwrap_or("none"), SUPPORTED)
    })
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("server", &self.0.info.name).finish_non_exhaustive()
    }
}
