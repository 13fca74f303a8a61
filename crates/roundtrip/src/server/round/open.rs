//! Opens `requestState` and reads `inputResponses`, before a handler is looked at.

use std::sync::Arc;

use roundtrip_core::round::{Journal, read_responses};
use roundtrip_core::seal::{Binding, Claims, Digest, FlowId, TokenVersion};
use roundtrip_core::wire::{
    CallTool, CallToolRequestParams, ClientRequest, Complete, CompleteRequestParams, ErrorObject, GetPrompt,
    GetPromptRequestParams, Method as _, ReadResource, ReadResourceRequestParams, RequestMeta,
};
use serde_json::value::RawValue;

use super::flow::{FlowConfig, OpenedState};
use super::input::{BoundArguments, RoundInput};
use crate::server::access::Access;
use crate::server::clock::now;
use crate::server::peer::{Peer, Principal};

/// Request of one of the three methods whose handlers may ask: the parts of it that make a round.
#[derive(Clone, Copy)]
pub(crate) struct AskingRequest<'a> {
    method: &'static str,
    target: &'a str,
    arguments: BoundArguments<'a>,
    state: Option<&'a str>,
    responses: Option<&'a RawValue>,
    meta: &'a RequestMeta<'a>,
}

impl<'a> From<&'a CallToolRequestParams<'a>> for AskingRequest<'a> {
    #[inline]
    fn from(params: &'a CallToolRequestParams<'a>) -> Self {
        Self {
            method: CallTool::NAME,
            target: &params.name,
            arguments: BoundArguments::Json(params.arguments),
            state: params.request_state.as_deref(),
            responses: params.input_responses,
            meta: &params.meta,
        }
    }
}

impl<'a> From<&'a GetPromptRequestParams<'a>> for AskingRequest<'a> {
    fn from(params: &'a GetPromptRequestParams<'a>) -> Self {
        Self {
            method: GetPrompt::NAME,
            target: &params.name,
            arguments: BoundArguments::Texts(&params.arguments),
            state: params.request_state.as_deref(),
            responses: params.input_responses,
            meta: &params.meta,
        }
    }
}

impl<'a> From<&'a ReadResourceRequestParams<'a>> for AskingRequest<'a> {
    fn from(params: &'a ReadResourceRequestParams<'a>) -> Self {
        Self {
            method: ReadResource::NAME,
            target: &params.uri,
            arguments: BoundArguments::None,
            state: params.request_state.as_deref(),
            responses: params.input_responses,
            meta: &params.meta,
        }
    }
}

impl<'a> AskingRequest<'a> {
    fn of(request: &'a ClientRequest<'a>) -> Option<Self> {
        match request {
            ClientRequest::CallTool(params) => Some(params.into()),
            ClientRequest::GetPrompt(params) => Some(params.into()),
            ClientRequest::ReadResource(params) => Some(params.into()),
            _ => None,
        }
    }
}

impl FlowConfig {
    /// Returns the OAuth client that a new task's answers are bound to, if the version that this instance writes has one.
    pub(crate) fn bound_client(&self, access: &Access) -> Option<Digest> {
        access.client().filter(|_| self.sealer.writes() >= TokenVersion::V2)
    }

    /// Returns whether a request's `requestState` can be opened without waiting. Only a codec of the author's own may take
    /// its time.
    #[inline]
    pub(crate) fn opens_now(&self, request: &ClientRequest<'_>) -> bool {
        self.sealer.seals_now() || request.request_state().is_none()
    }

    /// Opens a request's `requestState`, waiting for the codec.
    pub(crate) async fn open_state(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> Result<Option<OpenedState>, ErrorObject> {
        let Some(asking) = AskingRequest::of(request) else { return Ok(None) };
        let Some(token) = asking.state else { return Ok(None) };
        let binding = self.input(asking, peer, None).binding()?;
        self.open(token, &binding).await.map(Some)
    }

    /// Gathers the inputs of a round: its `requestState` is opened here unless that has been done, and its
    /// `inputResponses` are read, also for handlers that never ask (M4, M11). `known` is the digest of method and target,
    /// where the target has it ready.
    #[inline]
    pub(crate) fn round_input<'a>(
        self: &'a Arc<Self>,
        asking: AskingRequest<'a>,
        peer: &'a Peer,
        opened: Option<OpenedState>,
        known: Option<Digest>,
    ) -> Result<RoundInput<'a>, ErrorObject> {
        let mut input = self.input(asking, peer, known);
        if let Some(raw) = input.responses {
            input.answers = read_responses(raw)?;
        }
        input.opened = match (opened, asking.state) {
            (None, Some(token)) => Some(self.open_now(token, &input.binding()?)?),
            (opened, _) => opened,
        };
        Ok(input)
    }

    /// Gathers the inputs of a round of a task: its journal comes from the store, and not from a token.
    pub(crate) fn kept_input<'a>(
        self: &'a Arc<Self>,
        asking: AskingRequest<'a>,
        peer: &'a Peer,
        known: Digest,
        (flow, round): (FlowId, u32),
        journal: Journal,
    ) -> Result<RoundInput<'a>, ErrorObject> {
        let mut input = self.input(asking, peer, Some(known));
        if let Some(raw) = input.responses {
            input.answers = read_responses(raw)?;
        }
        // The digest of the arguments is left to the first parameter that can ask: most tasks have none.
        let unbound = Binding::of(self.known_audience, known, known, None);
        let claims = Claims::begin(flow, unbound, now(), self.valid_for);
        input.opened = Some((Claims { round, ..claims }, journal));
        Ok(input)
    }

    /// Gathers the inputs of a completion, which has no rounds: its parameters are taken from a call as a handler's are.
    pub(crate) fn completion_input<'a>(
        self: &'a Arc<Self>,
        params: &'a CompleteRequestParams<'a>,
        peer: &'a Peer,
    ) -> RoundInput<'a> {
        let request = AskingRequest {
            method: Complete::NAME,
            target: params.reference.target(),
            arguments: BoundArguments::None,
            state: None,
            responses: None,
            meta: &params.meta,
        };
        self.input(request, peer, None)
    }

    #[inline]
    fn input<'a>(
        self: &'a Arc<Self>,
        asking: AskingRequest<'a>,
        peer: &'a Peer,
        known: Option<Digest>,
    ) -> RoundInput<'a> {
        RoundInput {
            flows: self,
            method: asking.method,
            target: asking.target,
            known,
            principal: peer.principal.as_ref().map(Principal::as_str),
            access: &peer.access,
            arguments: asking.arguments,
            responses: asking.responses.filter(|raw| raw.get() != "null"),
            answers: Vec::new(),
            capabilities: &asking.meta.client_capabilities,
            questions: &peer.questions,
            reentry: peer.reentry.as_ref(),
            bound: None,
            opened: None,
            flow: None,
        }
    }
}
