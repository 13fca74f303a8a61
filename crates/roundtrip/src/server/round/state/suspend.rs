//! Suspension: ends a round without a result once its handler waits for nothing but answers.

use std::sync::MutexGuard;
use std::task::Context;
use std::time::Duration;

use roundtrip_core::round::{Journal, PinKey};

use super::{AskError, Asked, Delivery, Inner, RoundState, wake_all};

/// Status of a round whose handler is pending.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
#[derive(Debug)]
pub(crate) enum Suspension {
    /// The handler waits for other things than answers.
    None,
    /// The handler waits for an answer, and a running step or a resolver at work keeps the round from ending.
    BehindStep,
    /// The round has ended.
    Ended(Suspended),
}

/// Journal and questions of a round that ended without a result.
#[derive(Debug)]
pub(crate) struct Suspended {
    pub(crate) journal: Journal,
    pub(crate) asked: Vec<Asked>,
    /// Mistake of a handler that asks in a way that cannot work.
    pub(crate) misuse: Option<AskError>,
    /// True if there is nothing to remember, and the handler wants no `requestState` for that.
    pub(crate) stateless: bool,
    /// True if the round was progress: it has settled an answer, begun a step, or changed the author's state.
    pub(crate) advanced: bool,
    /// True if the handler asks nothing, and has not stopped at a checkpoint: it waits for something outside.
    pub(crate) waits: bool,
    /// True if the round has begun a step.
    pub(crate) stepped: bool,
}

impl RoundState {
    /// Ends the round if the handler waits for nothing but answers, and closes the state. Otherwise the runner is woken
    /// when that may have changed.
    pub(crate) fn suspend(&self, cx: &Context<'_>) -> Suspension {
        let mut inner = self.lock();
        let waits = self.waits_for_the_end(&inner);
        let resolves = inner.misuse.is_none() && inner.is_resolving();
        if waits && inner.running.is_empty() && !resolves {
            return Suspension::Ended(self.end(inner));
        }
        if !inner.runner.as_ref().is_some_and(|runner| runner.will_wake(cx.waker())) {
            inner.runner = Some(cx.waker().clone());
        }
        if waits { Suspension::BehindStep } else { Suspension::None }
    }

    /// Returns whether something waits for the round to end: a question, a parked handler, or a mistake.
    fn waits_for_the_end(&self, inner: &Inner) -> bool {
        let (parked, waits) = (!inner.parked.is_empty(), inner.asked.iter().any(|asked| asked.waits));
        // Live questions do not end the round, and a parked handler waits for their answers.
        let asked = if self.is_live() { parked && !waits } else { parked || waits };
        (asked || inner.misuse.is_some()) && !inner.closed
    }

    /// Ends a round that has waited too long for its steps: a step that waits, through a task or a channel, for a question
    /// of its own round never ends, because the question is sent when the round ends. A resolver is no such mistake: it runs
    /// again in the next round.
    pub(crate) fn give_up_on_steps(&self, waited: Duration) -> Suspended {
        let mut inner = self.lock();
        if inner.running.is_empty() {
            return self.end(inner);
        }
        let steps = inner.running.join("`, `");
        let asked = inner
            .asked
            .iter()
            .map(|asked| &*asked.key)
            .chain(inner.parked.iter().map(|(_, key)| key.as_str()));
        let asked = asked.collect::<Vec<_>>().join("`, `");
        inner.misuse.get_or_insert_with(|| {
            AskError::Misuse(format!(
                "`{asked}` has waited {waited:?} for the step `{steps}` to end, and is asked only when it has: a step \
                 must not wait for an answer, not even through a task or a channel; ask before or after `once`, or \
                 raise `Limits::question_behind_step` if the step is merely slow"
            ))
        });
        self.end(inner)
    }

    /// Ends the round if the handler has returned with questions or with state, and closes the state.
    pub(crate) fn returned(&self) -> Option<Suspended> {
        let inner = self.lock();
        if inner.closed || (inner.asked.is_empty() && !inner.handed_off) {
            return None;
        }
        Some(self.end(inner))
    }

    /// Ends the round with its state alone if the handler has begun a step, and closes the state. The error of a handler that
    /// lacks scopes has no place for `requestState`: without it the step would run again when the client comes back with a
    /// wider token. The next round finds the step done, and is refused with nothing to lose. Tasks and live
    /// questions have no next round.
    pub(crate) fn refused(&self) -> Option<Suspended> {
        if !matches!(self.questions, Delivery::EndRound) || self.keeper().is_some() {
            return None;
        }
        let mut inner = self.lock();
        if inner.closed || !inner.stepped {
            return None;
        }
        inner.asked.clear();
        Some(self.end(inner))
    }

    /// Records that this round has ended without a result and was progress.
    pub(crate) fn set_advanced(&self) {
        self.lock().advanced = true;
    }

    /// Returns whether this round has ended without a result and was progress.
    pub(crate) fn has_advanced(&self) -> bool {
        self.lock().advanced
    }

    fn end(&self, mut inner: MutexGuard<'_, Inner>) -> Suspended {
        inner.closed = true;
        inner.forget_given();
        let advanced = inner.stepped || inner.journal.has_advanced();
        if let Some(reentry) = &self.reentry {
            // A handler that waits in `until` looks again after a pause, whatever it did before.
            reentry.set_due(advanced && inner.parked.is_empty());
        }
        // The journal that is left behind is never used: the state is closed.
        let left = Journal::new(PinKey::new([0; PinKey::LEN]));
        let journal = std::mem::replace(&mut inner.journal, left);
        let stateless = inner.by_key_alone && journal.is_empty();
        let (asked, misuse) = (std::mem::take(&mut inner.asked), inner.misuse.take());
        let moves = inner.parked.iter().any(|(_, key)| inner.passed.contains(key));
        let (waits, stepped) = (asked.is_empty() && !moves, inner.stepped);
        let suspended = Suspended { journal, asked, misuse, stateless, advanced, waits, stepped };
        wake_all(inner);
        suspended
    }
}
