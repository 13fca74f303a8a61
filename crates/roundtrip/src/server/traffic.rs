//! How much a server has on its hands, and whether it wants less of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::budget::{Budget, Owner, Reservation};
use super::builder::Limits;
use super::call::Peer;

/// The size of a message up to which its call is counted, but not weighed. There are too many of these to look at whose
/// each one is, and their number is limited.
const SMALL: usize = 64 * 1024;

/// The calls of one server.
#[derive(Debug)]
pub(crate) struct Traffic {
    running: AtomicUsize,
    draining: AtomicBool,
    limits: Limits,
    /// Bytes of the messages of calls that run, where they are large.
    bytes: Arc<Budget>,
}

/// A place among the calls that may run at once; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    traffic: Arc<Traffic>,
    /// Boxed, because few calls have it.
    bytes: Option<Box<Reservation>>,
}

impl Permit {
    /// Takes room for what the call keeps of its message; whether there was any.
    pub(crate) fn weigh(&mut self, peer: &Peer, size: usize) -> bool {
        if size > SMALL {
            self.bytes = self.traffic.bytes.reserve(&Owner::of(peer), size).map(Box::new);
            return self.bytes.is_some();
        }
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.traffic.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Traffic {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            running: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            bytes: Budget::new(limits.call_bytes),
            limits,
        })
    }

    pub(crate) fn admit(self: &Arc<Self>) -> Permit {
        self.running.fetch_add(1, Ordering::Relaxed);
        Permit { traffic: Arc::clone(self), bytes: None }
    }

    /// Whether there are more calls than may run at once, the one being admitted included (Z3).
    pub(crate) fn is_full(&self) -> bool {
        self.running.load(Ordering::Relaxed) > self.limits.concurrent_calls
    }

    /// Returns whether one more call may run now.
    pub(crate) fn has_place(&self) -> bool {
        self.running.load(Ordering::Relaxed) < self.limits.concurrent_calls
    }

    /// How many calls may run at once.
    pub(crate) fn most(&self) -> usize {
        self.limits.concurrent_calls
    }

    /// Whether work that can move to another instance had better do so (A8).
    pub(crate) fn is_moving(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.running.load(Ordering::Relaxed) > self.limits.shed_above
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}
