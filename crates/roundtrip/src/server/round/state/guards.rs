//! What a handler stands in the middle of, for as long as it does.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use super::RoundState;

/// A step that is running.
#[derive(Debug)]
pub(crate) struct StepGuard {
    pub(super) table: Arc<RoundState>,
    pub(super) key: String,
}

impl StepGuard {
    /// Polls the step, in which nothing can be asked meanwhile.
    pub(crate) async fn run<F: Future>(&self, effect: F) -> F::Output {
        let mut effect = pin!(effect);
        poll_fn(|cx| {
            let _stepping = Stepping::begin(&self.table);
            effect.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let mut inner = self.table.lock();
        remove(&mut inner.running, &self.key);
        RoundState::stir(inner);
    }
}

/// A step that is being polled, on this thread.
struct Stepping<'a>(&'a RoundState, ThreadId);

impl<'a> Stepping<'a> {
    fn begin(table: &'a RoundState) -> Self {
        let thread = thread::current().id();
        table.lock().stepping.push(thread);
        Self(table, thread)
    }
}

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        remove(&mut self.0.lock().stepping, &self.1);
    }
}

/// A handler that stands where it wants to go on elsewhere, or later.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(super) table: Arc<RoundState>,
    pub(super) key: String,
}

impl Drop for Parked {
    fn drop(&mut self) {
        remove(&mut self.table.lock().parked, &self.key);
    }
}

fn remove<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(index) = list.iter().position(|other| other == item) {
        list.swap_remove(index);
    }
}
