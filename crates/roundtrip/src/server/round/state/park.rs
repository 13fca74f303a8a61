//! Parking: a handler that waits where it stands until its round ends.

use std::sync::{Arc, MutexGuard};

use roundtrip_core::round::{Found, Kind};

use super::{AskError, Branch, Inner, RoundState, remove};

/// Guard of a parked handler: at a checkpoint, or in `until`.
#[derive(Debug)]
pub(crate) struct Parked {
    round: Arc<RoundState>,
    at: (Branch, String),
}

impl Drop for Parked {
    fn drop(&mut self) {
        remove(&mut self.round.lock().parked, &self.at);
    }
}

impl RoundState {
    /// Passes a checkpoint, or parks at it: the round ends there, with nothing to ask, unless the guard is dropped before.
    pub(crate) fn checkpoint(
        self: &Arc<Self>,
        branch: Branch,
        key: &str,
    ) -> Result<Option<Parked>, AskError> {
        let moving = self.is_moving();
        let mut inner = self.open()?;
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        match inner.journal.find(key) {
            None => drop(inner.passed.insert(key.to_owned())),
            Some(Found { kind: Kind::Passed, used: false, .. }) => return Ok(None),
            Some(_) => return Err(inner.twice(key)),
        }
        if !moving {
            return Ok(None);
        }
        inner.journal.remember(Kind::Passed, key, None, "");
        Ok(Some(self.parked(inner, (branch, key.to_owned()))))
    }

    /// Ends the round here, with nothing to ask, unless the guard is dropped before.
    pub(crate) fn park(self: &Arc<Self>, branch: Branch, key: &str) -> Parked {
        self.parked(self.lock(), (branch, key.to_owned()))
    }

    fn parked(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>, at: (Branch, String)) -> Parked {
        inner.parked.push(at.clone());
        Self::stir(inner);
        Parked { round: Arc::clone(self), at }
    }
}
