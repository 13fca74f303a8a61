//! Opening a request's state before its handler is looked at.

use std::pin::Pin;
use std::sync::Arc;

use roundtrip_core::round::{Journal, read_responses};
use roundtrip_core::seal::Claims;
use roundtrip_core::wire::{ClientCapabilities, ErrorObject, Method, decode_params};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::input::{BoundArguments, RoundInput};
use crate::server::endpoint::Endpoint;
use crate::server::handler::call::{Peer, Principal};
use crate::server::run::in_flight::Source;
use crate::server::run::outbox::Outbox;
use crate::server::run::runner::{Runner, Work};

/// What a state held.
pub(crate) type OpenedState = (Claims, Journal);

/// A state on its way to be opened elsewhere.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<OpenedState, ErrorObject>> + Send>>;

/// What a call has that was put off until its state was opened.
pub(crate) struct PutOff {
    opened: OpenedState,
    /// Where its notifications go: the transport has had its other end from the start.
    outbox: Arc<Outbox>,
}

/// When a call can begin.
pub(crate) enum Begin {
    Now,
    /// A codec of the author's own has to be waited for.
    Later(Opening),
}

/// How one of the three methods is prepared.
type Prepare<M> = fn(&Endpoint, &<M as Method>::Params<'_>, &Peer, Option<PutOff>) -> (Runner, Source);

impl Endpoint {
    pub(crate) fn start<'a>(
        &'a self,
        method: &'static str,
        target: &'a str,
        peer: &'a Peer,
        capabilities: &'a ClientCapabilities,
    ) -> RoundInput<'a> {
        RoundInput {
            flows: &self.inner().flows,
            method,
            target,
            known: None,
            principal: peer.principal.as_ref().map(Principal::as_str),
            arguments: BoundArguments::None,
            responses: None,
            answers: Vec::new(),
            capabilities,
            questions: &peer.questions,
            bound: None,
            opened: None,
            outbox: None,
            flow: None,
        }
    }

    /// Opens the state that came with a request, and looks at its answers, also for handlers that never ask (M4, M11).
    pub(crate) fn open(
        &self,
        start: &mut RoundInput<'_>,
        token: Option<&str>,
        put_off: Option<PutOff>,
    ) -> Result<Begin, ErrorObject> {
        start.responses = start.responses.filter(|raw| raw.get() != "null");
        if let Some(raw) = start.responses {
            start.answers = read_responses(raw)?;
        }
        let Some(token) = token else { return Ok(Begin::Now) };
        if let Some(PutOff { opened, outbox }) = put_off {
            (start.opened, start.outbox) = (Some(opened), Some(outbox));
            return Ok(Begin::Now);
        }
        let (flows, binding) = (&self.inner().flows, start.binding()?);
        // With a key ring there is nothing to wait for; only a codec of the author's own may take its time.
        if let Some(opened) = flows.open_now(token, &binding) {
            start.opened = Some(opened?);
            return Ok(Begin::Now);
        }
        let (flows, token) = (Arc::clone(flows), token.to_owned());
        Ok(Begin::Later(Box::pin(async move { flows.open(&token, &binding).await })))
    }

    /// Prepares a call once its state has been opened. Meanwhile the request is kept as text.
    pub(crate) fn later<M: Method>(
        &self,
        opening: Opening,
        params: &impl Serialize,
        peer: &Peer,
        prepare: Prepare<M>,
    ) -> (Runner, Source) {
        let (endpoint, peer) = (self.clone(), peer.clone());
        let text = to_raw_value(params);
        let outbox = Arc::new(Outbox::new(peer.listens));
        let source = Source::from(Some(Arc::clone(&outbox)));
        let beginning = async move {
            let begun = async {
                let opened = opening.await?;
                let text = text.map_err(|error| ErrorObject::internal(error.to_string()))?;
                let params = decode_params::<M::Params<'_>>(Some(&text))?;
                let put_off = PutOff { opened, outbox };
                Ok::<_, ErrorObject>(Box::new(prepare(&endpoint, &params, &peer, Some(put_off)).0))
            };
            begun.await.unwrap_or_else(|error| Box::new(Work::from(error).into()))
        };
        (Work::Later(Box::pin(beginning)).into(), source)
    }
}
