//! Limits of a server, and admission control: running calls, their limit, the drain flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip_core::error::BUSY;
use roundtrip_core::wire::ErrorObject;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::Instrument as _;

use super::budget::{Budget, Owner, Reservation};
use super::outcome::OutcomeFuture;
use super::peer::Peer;

/// The size of a message up to which its call is counted, but not weighed. There are too many of these to look at whose
/// each one is, and their number is limited.
const SMALL: usize = 64 * 1024;

/// Limits of what a server does at once. Past a limit, callers get a clear and cheap refusal (Z3).
///
/// Of bytes and of subscriptions, one principal has at most half of what the others leave. Callers without a principal
/// share by the address they call from, where it is known, and as one where it is not.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Calls running at the same time, listening ones included. Default: 10,000.
    pub concurrent_calls: usize,
    /// Bytes of the messages of all calls running at the same time, of those over 64 KiB. Default: 256 MiB.
    /// A single one may have half of it: raise it with the size of messages that a transport takes. A call that may become a
    /// task counts twice, for the copy that its task has, and once while this process runs the task.
    pub call_bytes: usize,
    /// Open `subscriptions/listen` streams. Default: 1,000.
    pub subscriptions: usize,
    /// Bytes that all subscriptions keep together: the URIs of the resources they watch, the capabilities of the
    /// clients that do, and the tasks that wait to be told. Default: 16 MiB.
    pub subscription_bytes: usize,
    /// Bytes of a result that a handler sends in [parts](super::Parts). Default: 16 MiB.
    pub streamed_bytes: usize,
    /// Concurrent calls above which a call that reaches a [`checkpoint`](super::Ask::checkpoint) is handed to another
    /// instance. Default: never.
    pub shed_above: usize,
    /// Time that a question may wait for a running step of [`once`](super::Ask::once) to end before its call fails: a
    /// step that waits for an answer of its own round never ends. For a resolver ([`Resolve`](super::Resolve)) at work it
    /// waits as long, and then goes out without it. Default: 60 s.
    pub question_behind_step: Duration,
    /// Time that a round with a claim in the [`ledger`](super::ledger) may go on after its client has hung up.
    /// Default: 60 s.
    pub finish_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent_calls: 10_000,
            call_bytes: 256 * 1024 * 1024,
            subscriptions: 1_000,
            subscription_bytes: 16 * 1024 * 1024,
            streamed_bytes: 16 * 1024 * 1024,
            shed_above: usize::MAX,
            question_behind_step: Duration::from_secs(60),
            finish_within: Duration::from_secs(60),
        }
    }
}

/// Returns the refusal of a call past a limit.
pub(crate) fn too_many_calls() -> ErrorObject {
    ErrorObject::new(BUSY, "the server is busy: too many calls at once; try again later")
}

/// The calls of one server.
#[derive(Debug)]
pub(crate) struct Admission {
    running: AtomicUsize,
    draining: AtomicBool,
    limits: Limits,
    /// Bytes of the messages of calls that run, where they are large.
    bytes: Arc<Budget>,
    /// Number of rounds that hold a claim in the ledger.
    claimed: watch::Sender<usize>,
}

/// A round that holds a claim in the ledger, until it is recorded or given up.
#[derive(Debug)]
pub(crate) struct Claimed(Arc<Admission>);

impl Drop for Claimed {
    fn drop(&mut self) {
        self.0.claimed.send_modify(|claimed| *claimed -= 1);
    }
}

/// A place among the calls that may run at once; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    bytes: Weight,
}

/// Room for a message that is kept, if it is large; given back when dropped. Boxed, because few calls have it.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    _bytes: Option<Box<Reservation>>,
}

impl Permit {
    /// Takes room for what the call keeps of its message; whether there was any.
    pub(crate) fn weigh(&mut self, peer: &Peer, size: usize) -> bool {
        let weight = self.admission.weigh(peer, size);
        weight.map(|weight| self.bytes = weight).is_some()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            running: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            bytes: Budget::new(limits.call_bytes),
            limits,
            claimed: watch::Sender::new(0),
        })
    }

    pub(crate) fn admit(self: &Arc<Self>) -> Permit {
        self.running.fetch_add(1, Ordering::Relaxed);
        Permit { admission: Arc::clone(self), bytes: Weight::default() }
    }

    /// Takes room for a message that is kept. Returns `None` where there is not enough.
    pub(crate) fn weigh(&self, peer: &Peer, size: usize) -> Option<Weight> {
        if size <= SMALL {
            return Some(Weight::default());
        }
        self.bytes.reserve(&Owner::of(peer), size).map(|bytes| Weight { _bytes: Some(Box::new(bytes)) })
    }

    /// Returns whether more calls run than may, the one being admitted included (Z3).
    pub(crate) fn is_full(&self) -> bool {
        self.running.load(Ordering::Relaxed) > self.limits.concurrent_calls
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns whether one more call may run now.
    pub(crate) fn has_place(&self) -> bool {
        self.running.load(Ordering::Relaxed) < self.limits.concurrent_calls
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the most calls that may run at once.
    #[cfg(feature = "legacy")]
    pub(crate) fn most(&self) -> usize {
        self.limits.concurrent_calls
    }

    /// Returns whether work that can move to another instance is to do so (A8).
    pub(crate) fn is_moving(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || self.running.load(Ordering::Relaxed) > self.limits.shed_above
    }

    /// Returns whether this instance is going to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Counts a round that holds a claim in the ledger.
    pub(crate) fn claimed(self: &Arc<Self>) -> Claimed {
        self.claimed.send_modify(|claimed| *claimed += 1);
        Claimed(Arc::clone(self))
    }

    /// Lets the rest of a claimed round run although its client has hung up. It keeps a place among the calls, and has
    /// [`Limits::finish_within`] to end.
    pub(crate) fn finish(self: &Arc<Self>, work: OutcomeFuture) {
        let Ok(runtime) = Handle::try_current() else {
            return tracing::warn!("the runtime has ended, and a claimed round with it: it may run again");
        };
        let (permit, bound) = (self.admit(), self.limits.finish_within);
        let finishing = async move {
            if tokio::time::timeout(bound, work).await.is_err() {
                tracing::error!(?bound, "a claimed round without a client did not end: it may run again");
            }
            drop(permit);
        };
        runtime.spawn(finishing.instrument(tracing::Span::current()));
    }

    /// Waits until no round holds a claim.
    pub(crate) async fn finished(&self) {
        // The sender is `self`, so there is no end to wait for but this.
        let _ = self.claimed.subscribe().wait_for(|claimed| *claimed == 0).await;
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}
