//! [`Commitment`]: the mark of a call that may not be dropped any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Mark of a call whose effects are on their way to a store and cannot be taken back: it is becoming a task, or its reply is being
/// recorded. One that the ledger has claimed goes on from here, though its client hangs up (M6).
#[derive(Debug, Clone, Default)]
pub(crate) struct Commitment(Arc<AtomicBool>);

impl Commitment {
    pub(crate) fn set(&self, is_made: bool) {
        self.0.store(is_made, Ordering::Relaxed);
    }

    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
