//! RAII guards: a running `once` step, a parked handler.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use super::RoundState;

/// Guard of a running step.
#[derive(Debug)]
pub(crate) struct StepGuard {
    pub(super) round: Arc<RoundState>,
    pub(super) key: String,
}

impl StepGuard {
    /// Polls the step; inside it nothing can be asked meanwhile.
    pub(crate) async fn run<F: Future>(&self, effect: F) -> F::Output {
        let mut effect = pin!(effect);
        poll_fn(|cx| {
            let _stepping = Stepping::begin(&self.round);
            effect.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let mut inner = self.round.lock();
        remove(&mut inner.running, &self.key);
        RoundState::stir(inner);
    }
}

/// Guard of a step that is being polled on this thread.
struct Stepping<'a>(&'a RoundState, ThreadId);

impl<'a> Stepping<'a> {
    fn begin(round: &'a RoundState) -> Self {
        let thread = thread::current().id();
        round.lock().stepping.push(thread);
        Self(round, thread)
    }
}

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        remove(&mut self.0.lock().stepping, &self.1);
    }
}

/// Guard of a parked handler: at a checkpoint, or in `until`.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(super) round: Arc<RoundState>,
    pub(super) key: String,
}

impl Drop for Parked {
    fn drop(&mut self) {
        remove(&mut self.round.lock().parked, &self.key);
    }
}

fn remove<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(index) = list.iter().position(|other| other == item) {
        list.swap_remove(index);
    }
}
