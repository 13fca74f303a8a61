//! Opens `requestState` and reads `inputResponses`, before a handler is looked at.

use roundtrip_core::round::{Journal, read_responses};
use roundtrip_core::seal::{Claims, Digest};
use roundtrip_core::wire::{
    CallTool, ClientRequest, ErrorObject, GetPrompt, Method as _, ReadResource, RequestMeta,
};
use serde_json::value::RawValue;

use super::input::{BoundArguments, RoundInput};
use crate::server::endpoint::Endpoint;
use crate::server::peer::{Peer, Principal};

/// Claims and journal of an opened `requestState`.
pub(crate) type OpenedState = (Claims, Journal);

/// The parts of a request that one of the three methods that may ask came with.
#[derive(Clone, Copy)]
struct AskingRequest<'a> {
    method: &'static str,
    target: &'a str,
    arguments: BoundArguments<'a>,
    responses: Option<&'a RawValue>,
    meta: &'a RequestMeta<'a>,
}

impl<'a> AskingRequest<'a> {
    fn of(request: &'a ClientRequest<'a>) -> Option<Self> {
        Some(match request {
            ClientRequest::CallTool(params) => Self {
                method: CallTool::NAME,
                target: &params.name,
                arguments: BoundArguments::Json(params.arguments),
                responses: params.input_responses,
                meta: &params.meta,
            },
            ClientRequest::GetPrompt(params) => Self {
                method: GetPrompt::NAME,
                target: &params.name,
                arguments: BoundArguments::Texts(&params.arguments),
                responses: params.input_responses,
                meta: &params.meta,
            },
            ClientRequest::ReadResource(params) => Self {
                method: ReadResource::NAME,
                target: &params.uri,
                arguments: BoundArguments::None,
                responses: params.input_responses,
                meta: &params.meta,
            },
            _ => return None,
        })
    }
}

impl Endpoint {
    /// Returns whether a request's `requestState` can be opened without waiting. Only a codec of the author's own may take
    /// its time.
    pub(crate) fn opens_now(&self, request: &ClientRequest<'_>) -> bool {
        self.inner().flows.sealer.seals_now() || request.request_state().is_none()
    }

    /// Opens a request's `requestState`, waiting for the codec.
    pub(crate) async fn open_state(
        &self,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> Result<Option<OpenedState>, ErrorObject> {
        let (Some(asking), Some(token)) = (AskingRequest::of(request), request.request_state()) else {
            return Ok(None);
        };
        let binding = self.input(asking, peer).binding()?;
        self.inner().flows.open(token, &binding).await.map(Some)
    }

    /// Gathers the inputs of a round: its `requestState` is opened here unless that has been done, and its
    /// `inputResponses` are read, also for handlers that never ask (M4, M11). `known` is the digest of method and target,
    /// where the target has it ready.
    pub(crate) fn round_input<'a>(
        &'a self,
        request: &'a ClientRequest<'a>,
        peer: &'a Peer,
        opened: Option<OpenedState>,
        known: Option<Digest>,
    ) -> Result<RoundInput<'a>, ErrorObject> {
        let asking =
            AskingRequest::of(request).ok_or_else(|| ErrorObject::internal("this method cannot ask"))?;
        let mut input = self.input(asking, peer);
        input.known = known;
        if let Some(raw) = input.responses {
            input.answers = read_responses(raw)?;
        }
        input.opened = match (opened, request.request_state()) {
            (None, Some(token)) => Some(self.inner().flows.open_now(token, &input.binding()?)?),
            (opened, _) => opened,
        };
        Ok(input)
    }

    fn input<'a>(&'a self, asking: AskingRequest<'a>, peer: &'a Peer) -> RoundInput<'a> {
        RoundInput {
            flows: &self.inner().flows,
            method: asking.method,
            target: asking.target,
            known: None,
            principal: peer.principal.as_ref().map(Principal::as_str),
            arguments: asking.arguments,
            responses: asking.responses.filter(|raw| raw.get() != "null"),
            answers: Vec::new(),
            capabilities: &asking.meta.client_capabilities,
            questions: &peer.questions,
            bound: None,
            opened: None,
            flow: None,
        }
    }
}
