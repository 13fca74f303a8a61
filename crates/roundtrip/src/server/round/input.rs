//! The beginning of a round: the state it came with is opened, the answers it came with are merged.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use roundtrip_core::round::{Journal, PinKey, Stalled};
use roundtrip_core::seal::{
    ArgumentsError, Binding, Claims, Digest, FlowId, digest_arguments, digest_text_arguments,
};
use roundtrip_core::wire::{ClientCapabilities, ErrorObject};
use serde_json::value::RawValue;

use super::flow::{Flow, FlowConfig, OpenedState};
use super::state::RoundState;
use crate::server::access::Access;
use crate::server::clock::random;
use crate::server::delivery::{Delivery, Reentry};
use crate::server::hook::Place;
use crate::server::notify::outbox::Outbox;

/// Inputs of one round: binding, opened `requestState`, `inputResponses`. Built into round state by the first extractor that
/// can ask.
pub(crate) struct RoundInput<'a> {
    pub(crate) flows: &'a Arc<FlowConfig>,
    pub(crate) method: &'static str,
    pub(crate) target: &'a str,
    /// The digest of method and target, where what is called has it ready.
    pub(crate) known: Option<Digest>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) access: &'a Access,
    pub(crate) arguments: BoundArguments<'a>,
    pub(crate) responses: Option<&'a RawValue>,
    /// The same, taken apart.
    pub(crate) answers: Vec<(Cow<'a, str>, &'a RawValue)>,
    pub(crate) capabilities: &'a ClientCapabilities,
    /// Delivery of questions.
    pub(crate) questions: &'a Delivery,
    /// Pace of the rounds, if the transport enters the handler again by itself.
    pub(crate) reentry: Option<&'a Arc<Reentry>>,
    /// Binding of the flow, once it has been computed.
    pub(crate) bound: Option<Binding>,
    /// Claims and journal of the token, if there was one.
    pub(crate) opened: Option<OpenedState>,
    /// Made by the first parameter that can ask.
    pub(crate) flow: Option<Box<Flow>>,
}

/// Shows neither arguments nor answers nor state: they do not belong into a log.
impl fmt::Debug for RoundInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundInput")
            .field("method", &self.method)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// Arguments that a flow is bound to.
#[derive(Clone, Copy)]
pub(crate) enum BoundArguments<'a> {
    Json(Option<&'a RawValue>),
    Texts(&'a BTreeMap<Cow<'a, str>, Cow<'a, str>>),
    None,
}

impl BoundArguments<'_> {
    pub(crate) fn digest(self) -> Result<Digest, ArgumentsError> {
        match self {
            Self::Json(raw) => digest_arguments(raw.map(RawValue::get)),
            Self::Texts(texts) => {
                digest_text_arguments(texts.iter().map(|(name, value)| (&**name, &**value)))
            }
            Self::None => digest_arguments(None),
        }
    }
}

impl RoundInput<'_> {
    pub(crate) fn binding(&mut self) -> Result<Binding, ErrorObject> {
        if let Some(bound) = self.bound {
            return Ok(bound);
        }
        let arguments = self.arguments.digest();
        let arguments =
            arguments.map_err(|error| ErrorObject::invalid_params(format!("params.arguments: {error}")))?;
        let target = self.known.unwrap_or_else(|| Binding::target(self.method, self.target));
        let binding = Binding::of(self.flows.known_audience, target, arguments, self.principal)
            .through(self.access.client());
        self.bound = Some(binding);
        Ok(binding)
    }

    /// Returns the claims of the token that this round began with.
    pub(crate) fn claims(&self) -> Option<&Claims> {
        let opened = self.opened.as_ref().map(|(claims, _)| claims);
        opened.or_else(|| self.flow.as_ref().and_then(|flow| flow.claims.as_ref()))
    }

    /// Returns the rounds of this flow so far that were no progress.
    pub(crate) fn stalled(&self) -> Stalled {
        match (&self.opened, &self.flow) {
            (Some((claims, journal)), _) => self.flows.stalled(Some(claims), journal),
            (None, Some(flow)) => flow.stalled,
            (None, None) => Stalled::NONE,
        }
    }

    /// Returns the bytes that a result in parts may have.
    pub(crate) fn streamed_bytes(&self) -> usize {
        self.flows.admission.limits().streamed_bytes
    }

    /// Lets the flow remember what is sent through an outbox, which leaves out what earlier rounds have sent.
    pub(crate) fn remember_sent(&mut self, outbox: Option<&Arc<Outbox>>) {
        if let (Some(flow), Some(outbox)) = (&mut self.flow, outbox) {
            outbox.remember(flow.round.take_sent());
            flow.outbox = Some(Arc::clone(outbox));
        }
    }

    /// Returns the place in its flow of this request, once there is a flow: it came with a token, or its handler can ask.
    pub(crate) fn place(&self) -> Option<Place> {
        let flow = match &self.flow {
            Some(flow) => flow.flow,
            None => self.claims()?.flow,
        };
        let before = self.claims().map_or(0, |claims| claims.round);
        Some(Place { flow, round: before.saturating_add(1) })
    }

    /// Returns the state of this round, built on the first call.
    pub(crate) fn round_state(&mut self) -> Result<Arc<RoundState>, ErrorObject> {
        if let Some(flow) = &self.flow {
            return Ok(Arc::clone(&flow.round));
        }
        let binding = self.binding()?;
        let (flow, claims, mut journal) = match self.opened.take() {
            // The claims of a task are bound only here.
            Some((claims, journal)) => (claims.flow, Some(Claims { binding, ..claims }), journal),
            None => {
                // Drawn at once: asking the system twice costs twice.
                let [flow, pins] = halves(random()?);
                (FlowId::new(flow), None, Journal::new(PinKey::new(pins)))
            }
        };
        journal.merge(&self.answers);
        let stalled = self.flows.stalled(claims.as_ref(), &journal);
        let round = claims.map_or(0, |claims| claims.round);
        let span = tracing::Span::current();
        span.record("flow", tracing::field::display(flow)).record("round", round.saturating_add(1));
        #[cfg(feature = "opentelemetry")]
        if self.flows.reports {
            crate::telemetry::set_flow(flow, round.saturating_add(1), journal.trace());
        }
        let state = Arc::new(RoundState::new(
            (flow, round),
            journal,
            (self.capabilities.clone(), self.questions.clone(), self.reentry.cloned()),
            (&self.flows.admission, self.flows.trace.as_ref()),
        ));
        let flows = Arc::clone(self.flows);
        let method = self.method;
        let round = Arc::clone(&state);
        let (behind_step, outbox) = (None, None);
        let flow = Flow { round, flow, method, binding, claims, stalled, flows, behind_step, outbox };
        self.flow = Some(Box::new(flow));
        Ok(state)
    }
}

fn halves(bytes: [u8; 32]) -> [[u8; 16]; 2] {
    std::array::from_fn(|half| std::array::from_fn(|at| bytes[half * 16 + at]))
}
