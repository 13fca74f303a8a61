//! Middleware at the level of MCP calls: the same around HTTP, stdio and in-process calls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use roundtrip_core::wire::ClientRequest;

use crate::server::outcome::{Outcome, OutcomeFuture};
use crate::server::peer::{Peer, Principal};

/// What a hook gets to know about a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallInfo {
    /// The method, `tools/call` for one.
    pub method: &'static str,
    /// The tool's or prompt's name, or the resource's URI.
    pub target: Option<String>,
    /// The authenticated principal, if the transport has one.
    pub principal: Option<Principal>,
    /// What the HTTP stack in front attached to the request.
    pub extensions: http::Extensions,
}

impl CallInfo {
    pub(crate) fn new(request: &ClientRequest<'_>, peer: &Peer) -> Self {
        Self {
            method: request.method(),
            target: request.target().map(str::to_owned),
            principal: peer.principal.clone(),
            extensions: peer.extensions.clone(),
        }
    }
}

/// The rest of the call: later hooks, then the handler. Dropping it means the handler never runs.
pub struct Next(OutcomeFuture);

impl Next {
    /// Lets the call go on.
    pub async fn run(self) -> Outcome {
        self.0.await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// A function around every call.
#[derive(Clone)]
pub(crate) struct Hook(Arc<dyn Fn(CallInfo, Next) -> OutcomeFuture + Send + Sync>);

impl Hook {
    pub(crate) fn new<F, Fut>(hook: F) -> Self
    where
        F: Fn(CallInfo, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        Self(Arc::new(move |call, next| Box::pin(hook(call, next))))
    }

    /// Wraps hooks around a call, the first one outermost.
    pub(crate) fn wrap(hooks: &[Self], call: &CallInfo, innermost: OutcomeFuture) -> OutcomeFuture {
        hooks.iter().rev().fold(innermost, |inner, hook| {
            let (hook, call) = (Arc::clone(&hook.0), call.clone());
            // Called when polled, where a panic of the author's code is caught (Z1).
            Box::pin(async move { hook(call, Next(inner)).await })
        })
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
