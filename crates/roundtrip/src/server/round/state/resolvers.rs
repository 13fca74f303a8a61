//! Resolvers of a handler's parameters: those that run, and the values of those that have run.

use std::sync::Arc;

use super::{AskError, Branch, Inner, RoundState};

/// Guard of a running resolver.
#[derive(Debug)]
pub(crate) struct ResolverGuard {
    round: Arc<RoundState>,
    key: &'static str,
}

impl Drop for ResolverGuard {
    fn drop(&mut self) {
        self.round.lock().resolving.retain(|(key, _)| *key != self.key);
    }
}

impl RoundState {
    /// Returns the value that a resolver had in an earlier round, as JSON.
    pub(crate) fn recall_resolved(&self, key: &str) -> Result<Option<String>, AskError> {
        if self.leaves(key) {
            // The worker drops the handler.
            return Err(AskError::Closed);
        }
        Ok(self.open()?.recall_step(key)?.and_then(Result::ok))
    }

    /// Begins a resolver. Until it asks or ends, the round does not end either. `keys` are its own, and those of all resolvers
    /// that it needs.
    pub(crate) fn begin_resolver(
        self: &Arc<Self>,
        key: &'static str,
        keys: Arc<[&'static str]>,
    ) -> Result<ResolverGuard, AskError> {
        let mut inner = self.open()?;
        if inner.uses(key) || inner.journal.peek(key).is_some_and(|found| found.is_answer()) {
            return Err(inner.twice(key));
        }
        inner.resolving.push((key, keys));
        Ok(ResolverGuard { round: Arc::clone(self), key })
    }
}

impl Inner {
    /// Returns whether a resolver is at work: it runs, and waits for no answer. What it is going to ask is to go out with what
    /// the others ask.
    pub(super) fn is_resolving(&self) -> bool {
        self.resolving.iter().any(|(key, _)| {
            let branch = Some(*key);
            let asks = self.asked.iter().any(|asked| asked.branch == branch);
            !asks && !self.parked.iter().any(|(parked, _)| *parked == branch)
        })
    }

    /// Returns whether a branch depends on an answer of this round: one that it has read, or a resolver that it needs. The body
    /// depends on all. Resolvers run side by side, so others may or may not have read theirs by now.
    pub(super) fn depends(&self, branch: Branch, answer: &str) -> bool {
        let resolver = self.resolving.iter().find(|(key, _)| Some(*key) == branch);
        let Some((_, keys)) = resolver else { return true };
        self.read.get(answer).is_some_and(|reader| keys.contains(reader))
    }
}
