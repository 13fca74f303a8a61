//! Resolvers of a handler's parameters: those that run, and the values of those that have run.

use std::sync::Arc;

use super::{AskError, Inner, RoundState, remove};

/// Guard of a running resolver.
#[derive(Debug)]
pub(crate) struct ResolverGuard {
    round: Arc<RoundState>,
    key: &'static str,
}

impl Drop for ResolverGuard {
    fn drop(&mut self) {
        remove(&mut self.round.lock().resolving, &self.key);
    }
}

impl RoundState {
    /// Returns the value that a resolver had in an earlier round, as JSON.
    pub(crate) fn recall_resolved(&self, key: &str) -> Result<Option<String>, AskError> {
        Ok(self.open()?.recall_step(key)?.and_then(Result::ok))
    }

    /// Begins a resolver. Until it asks or ends, the round does not end either.
    pub(crate) fn begin_resolver(self: &Arc<Self>, key: &'static str) -> Result<ResolverGuard, AskError> {
        let mut inner = self.open()?;
        if inner.uses(key) || inner.journal.peek(key).is_some_and(|found| found.is_answer()) {
            return Err(inner.twice(key));
        }
        inner.resolving.push(key);
        Ok(ResolverGuard { round: Arc::clone(self), key })
    }
}

impl Inner {
    /// Returns whether a resolver is at work: it runs, and waits for no answer. What it is going to ask is to go out with what
    /// the others ask.
    pub(super) fn is_resolving(&self) -> bool {
        self.resolving.iter().any(|key| {
            let branch = Some(*key);
            let asks = self.asked.iter().any(|asked| asked.branch == branch);
            !asks && !self.parked.iter().any(|(parked, _)| *parked == branch)
        })
    }
}
