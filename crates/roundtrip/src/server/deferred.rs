//! Calls that are prepared inside their own future: hooks run first, or a codec or a store of rate limits has to be waited for.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use roundtrip_core::wire::{ClientRequest, ErrorObject, RequestId};

use super::hook::{CallInfo, HeldRequest, Hook};
use super::methods::{Received, refused};
use super::outcome::{Outcome, OutcomeFuture};
use super::peer::Peer;
use super::rate::Place;
use super::run::in_flight::Source;
use super::run::runner::{Runner, Work};
use super::started::Started;
use super::target::Target;

/// A call that is prepared while it is polled.
struct Deferred {
    started: Arc<Started>,
    request: Arc<HeldRequest>,
    /// Set by the preparation, for the transport.
    source: Arc<OnceLock<Source>>,
}

impl Started {
    /// Begins a call: at once where nothing runs and nothing has to be waited for before its handler.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
    ) -> (Runner, Source) {
        let waits = self.rates.waits(&self.limits, Place::SERVER, request, peer);
        if !waits && let Err(error) = self.rates.take_now(&self.limits, Place::SERVER, request, peer) {
            return refused(error);
        }
        if waits || !self.begins_now(request) {
            return self.defer(id, request, peer, None);
        }
        match self.target(request, peer) {
            Ok(target) if self.is_ready(&target, request, peer) => {
                if let Err(error) = self.rates.take_now(target.limits(), target.place(), request, peer) {
                    return refused(error);
                }
                let received = Received { id, peer, opened: None, place: None, promotion: None };
                self.prepare(request, received, target)
            }
            Ok(target) => self.defer(id, request, peer, Some(target)),
            Err(error) => refused(error),
        }
    }

    /// Returns whether nothing runs and nothing has to be waited for between a target and its handler.
    fn is_ready(&self, target: &Target, request: &ClientRequest<'_>, peer: &Peer) -> bool {
        target.hooks().is_empty() && !self.rates.waits(target.limits(), target.place(), request, peer)
    }

    /// Returns whether a call's target can be looked up at once: no hook of the server runs before it, and its
    /// `requestState` opens without waiting.
    fn begins_now(&self, request: &ClientRequest<'_>) -> bool {
        self.hooks.is_empty() && self.flows.opens_now(request)
    }

    /// Puts a call off until its hooks let it go on. None of the author's extractors runs before that, and neither
    /// arguments nor `requestState` are looked at. `target` is what it is for, if that has been looked up.
    fn defer(
        self: &Arc<Self>,
        id: &RequestId,
        request: &ClientRequest<'_>,
        peer: &Peer,
        target: Option<Target>,
    ) -> (Runner, Source) {
        let held = match HeldRequest::new(id, request, peer) {
            Ok(held) => held,
            Err(error) => return refused(error),
        };
        let source = Arc::new(OnceLock::new());
        let call =
            Deferred { started: Arc::clone(self), request: Arc::clone(&held), source: Arc::clone(&source) };
        let mut work: OutcomeFuture = Box::pin(call.run(target));
        if !self.hooks.is_empty() {
            work = Hook::wrap(&self.hooks, &CallInfo::new(request, &held), work);
        }
        if self.rates.waits(&self.limits, Place::SERVER, request, peer) {
            work = Box::pin(Arc::clone(self).run_within_limits(held, work));
        }
        (Work::Other(work).into(), Source::Deferred(source))
    }
}

impl Started {
    /// Runs a call once the server's rate limits let it through.
    async fn run_within_limits(self: Arc<Self>, held: Arc<HeldRequest>, work: OutcomeFuture) -> Outcome {
        let request = held.decode()?;
        self.rates.take(&self.limits, Place::SERVER, &request, &held.peer).await?;
        drop(request);
        drop(held);
        work.await
    }
}

impl Deferred {
    /// Runs the call behind the server's hooks: looks its target up, whose hooks come next. The target is looked up once,
    /// so that one that is replaced meanwhile does not run inside the hooks of another.
    async fn run(self, target: Option<Target>) -> Outcome {
        let request = self.request.decode()?;
        let target = match target {
            Some(target) => target,
            None => self.started.target(&request, &self.request.peer)?,
        };
        self.started.rates.take(target.limits(), target.place(), &request, &self.request.peer).await?;
        if target.hooks().is_empty() {
            let runner = self.prepare(&request, target).await?;
            drop(request);
            return self.finish(runner).await;
        }
        let call = CallInfo::new(&request, &self.request);
        drop(request);
        let hooks = target.hooks().to_vec();
        Hook::wrap(&hooks, &call, Box::pin(self.run_target(target))).await
    }

    /// Runs the call behind all hooks.
    async fn run_target(self, target: Target) -> Outcome {
        let request = self.request.decode()?;
        let runner = self.prepare(&request, target).await?;
        drop(request);
        self.finish(runner).await
    }

    /// Opens `requestState`, and starts the handler.
    async fn prepare(&self, request: &ClientRequest<'_>, target: Target) -> Result<Runner, ErrorObject> {
        let HeldRequest { id, peer, place, .. } = &*self.request;
        let opened = self.started.flows.open_state(request, peer).await?;
        let received = Received { id, peer, opened, place: Some(place), promotion: None };
        let (runner, source) = self.started.prepare(request, received, target);
        // Set once: there is one preparation.
        let _ = self.source.set(source);
        Ok(runner)
    }

    /// Polls the handler to its end. The request need not stay in memory meanwhile, unless a hook looks at it.
    async fn finish(self, mut runner: Runner) -> Outcome {
        drop(self);
        poll_fn(|cx| runner.poll(cx)).await
    }
}
