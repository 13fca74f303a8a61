//! Middleware at the level of MCP calls: the same around HTTP, stdio and in-process calls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::call_info::CallInfo;
use crate::server::outcome::{Outcome, OutcomeFuture, caught, panicked};

/// The rest of the call: later hooks, then the handler. Dropping it means the handler never runs.
pub struct Next(OutcomeFuture);

impl Next {
    /// Lets the call go on. A later hook or a handler that panics gives an internal error, as the client gets it.
    pub async fn run(self) -> Outcome {
        // One piece of code that panics does not take the hooks around it along (Z1).
        caught(self.0).await.unwrap_or_else(|| Err(panicked()))
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// A function around calls.
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
