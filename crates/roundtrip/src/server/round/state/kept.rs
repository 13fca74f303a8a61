//! Rounds in a task: their journal is kept in its store, and a call can become one while it runs.

use std::sync::Arc;
use std::task::Waker;

use roundtrip_core::round::{Found, Kind};
use roundtrip_core::wire::Raw;

use super::steps::StepGuard;
use super::{AskError, RoundState, wake_all};
use crate::server::round::keeper::{Detachment, Keeper, Moment, Pieces};

impl RoundState {
    /// Returns the task that the round is run in, if it is.
    pub(crate) fn keeper(&self) -> Option<&Arc<dyn Keeper>> {
        self.keeper.get()
    }

    /// Makes the round one of a task from here on.
    pub(crate) fn keep_in(&self, keeper: Arc<dyn Keeper>) {
        let mut inner = self.lock();
        inner.detachment = Detachment::Impossible;
        // Set once: a call becomes a task once.
        let _ = self.keeper.set(keeper);
        wake_all(inner);
    }

    /// Stores what has changed in the journal before or after a step, in a task; elsewhere this does nothing. It does not return if
    /// the handler is not to go on: the step is over then, or does not begin.
    pub(crate) async fn keep(&self, moment: Moment, step: StepGuard) -> StepGuard {
        if let Some(keeper) = self.keeper()
            && !Arc::clone(keeper).keep(moment).await
        {
            // The worker waits for the steps that run, and then drops the handler.
            drop(step);
            return std::future::pending().await;
        }
        step
    }

    /// Allows the call to become a task where its handler wants it to.
    pub(crate) fn allow_detaching(&self, allowed: bool) {
        let mut inner = self.lock();
        inner.detachment = if allowed { Detachment::Possible } else { Detachment::Impossible };
        wake_all(inner);
    }

    /// Returns whether the handler waits for its call to become a task.
    pub(crate) fn wants_to_detach(&self) -> bool {
        self.lock().detachment == Detachment::Wanted
    }

    /// Returns whether a step is running, which is to end before the handler is dropped.
    pub(crate) fn is_in_a_step(&self) -> bool {
        !self.lock().running.is_empty()
    }

    /// Uses up the key of a detachment, and asks for it. Returns false where no task can be, or the call is one.
    pub(crate) fn detach(&self, key: &str) -> Result<bool, AskError> {
        let mut inner = self.open()?;
        if inner.uses(key) {
            return Err(inner.twice(key));
        }
        match inner.journal.find(key) {
            None => inner.journal.remember(Kind::Passed, key, None, ""),
            Some(Found { kind: Kind::Passed, used: false, .. }) => {}
            Some(found) => {
                let is_other = !found.used;
                let error = inner.twice(key);
                return Err(if is_other && self.leave_for(key, "a detachment") {
                    AskError::Closed
                } else {
                    error
                });
            }
        }
        if inner.detachment == Detachment::Impossible {
            return Ok(false);
        }
        inner.detachment = Detachment::Wanted;
        let runner = inner.runner.take();
        drop(inner);
        runner.into_iter().for_each(Waker::wake);
        Ok(true)
    }
}

impl RoundState {
    /// Returns the whole journal as its first piece, for a task that the call becomes.
    pub(crate) fn first_piece(&self) -> Vec<u8> {
        self.lock().journal.first_piece()
    }

    /// Leaves the task to others, because its journal has something else under a key: another version has written it (T16). Returns
    /// false in a round that is not one of a task.
    pub(super) fn leave_for(&self, key: &str, what: &str) -> bool {
        self.leave(&format!("`{key}` is {what} now, and was not when the task began"))
    }

    /// Leaves the task to a process whose handler reads its journal. Returns false in a round that is not one of a task.
    pub(crate) fn leave(&self, why: &str) -> bool {
        self.keeper().map(|keeper| keeper.leave(why.to_owned())).is_some()
    }
}

impl Pieces for RoundState {
    fn next_piece(&self) -> Option<Vec<u8>> {
        self.next_piece_of_shown()
    }

    fn size(&self) -> Option<usize> {
        let inner = self.lock();
        (!inner.closed).then(|| inner.journal.size())
    }

    fn give(&self, answers: &[(&str, &Raw)]) -> Vec<String> {
        self.give_shown(answers)
    }

    fn settle(&self, keys: &[String]) {
        self.settle_shown(keys);
    }
}
