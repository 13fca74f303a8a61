//! Calls that are prepared inside their own future: hooks run first, or a codec has to be waited for.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use roundtrip_core::wire::{ClientRequest, ErrorObject, RequestId};
use serde_json::value::RawValue;

use super::methods::refused;
use super::outcome::Outcome;
use super::peer::Peer;
use super::run::hook::{CallInfo, Hook};
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::Started;

/// A request that outlives the message it was read from.
struct OwnedRequest {
    id: RequestId,
    method: &'static str,
    params: Box<RawValue>,
    peer: Peer,
}

impl Started {
    /// Returns whether a call can be prepared at once: no hook runs before it, and its `requestState` opens without waiting.
    pub(super) fn begins_now(&self, request: &ClientRequest<'_>) -> bool {
        self.hooks.is_empty() && self.flows.opens_now(request)
    }

    /// Puts a call off until its hooks let it go on. None of the author's extractors runs before that, and neither
    /// arguments nor `requestState` are looked at.
    pub(super) fn defer(
        self: &Arc<Self>,
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> (Runner, Source) {
        let params = match request.to_params() {
            Ok(params) => params,
            Err(error) => {
                return refused(ErrorObject::internal(format!("the request cannot be kept: {error}")));
            }
        };
        let owned = OwnedRequest { id: id.clone(), method: request.method(), params, peer: peer.clone() };
        let source = Arc::new(OnceLock::new());
        let call = Box::pin(Arc::clone(self).run_deferred(owned, Arc::clone(&source)));
        let work = Hook::wrap(&self.hooks, &CallInfo::new(request, peer), call);
        (Work::Other(work).into(), Source::Deferred(source))
    }

    async fn run_deferred(self: Arc<Self>, owned: OwnedRequest, source: Arc<OnceLock<Source>>) -> Outcome {
        let mut runner = {
            let request = ClientRequest::decode(owned.method, Some(&owned.params))?;
            let opened = self.flows.open_state(&request, &owned.peer).await?;
            let (runner, own) = self.prepare(&owned.id, &request, &owned.peer, opened);
            // Set once: there is one preparation.
            let _ = source.set(own);
            runner
        };
        drop(owned);
        poll_fn(|cx| runner.poll(cx)).await
    }
}
