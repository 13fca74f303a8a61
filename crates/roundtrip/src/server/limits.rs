//! Limits of a server, and admission control: running calls, their limit, the drain flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use roundtrip_core::error::BUSY;
use roundtrip_core::seal::Digest;
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
/// Of bytes, of subscriptions and of calls, one principal has at most half of what the others leave. Callers without a principal
/// share by the address they call from, where it is known, and as one where it is not.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Calls running at the same time, listening ones included. Default: 10,000.
    ///
    /// While a quarter of them or less run, calls are not counted by caller. Past that they are, and a caller may begin another
    /// while it has less than half of what the others leave; calls that were not counted are taken for others'. So one caller has
    /// at most five eighths of the limit, and the next one finds room. The only caller of a pipe has all of it.
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
    /// waits as long, and then goes out without it. A task shows its questions while steps run on. Default: 60 s.
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
    /// Calls that may run before they are counted by caller.
    unshared: usize,
    /// Calls by caller, of those that began when more ran.
    calls: Arc<Budget>,
    /// Bytes of the messages of calls that run, where they are large.
    bytes: Arc<Budget<Digest>>,
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
    /// Share of the caller, where calls are counted by caller. Boxed, because few have it.
    share: Option<Box<Reservation>>,
}

/// Room for a message that is kept, if it is large; given back when dropped. Boxed, because few calls have it.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    _bytes: Option<Box<Reservation<Digest>>>,
}

impl Permit {
    /// Takes the place for a caller, if there is one, in its share too (Z3).
    #[inline]
    pub(crate) fn claim(&mut self, peer: &Peer) -> bool {
        self.admission.running() <= self.admission.unshared || self.claim_share(peer)
    }

    /// The part of it that a calm server does without.
    #[inline(never)]
    fn claim_share(&mut self, peer: &Peer) -> bool {
        let admission = &self.admission;
        // This one is counted already.
        let others = admission.running().saturating_sub(1);
        if others >= admission.limits.concurrent_calls {
            return false;
        }
        if peer.is_only {
            return true;
        }
        let share = admission.calls.reserve_among(&Owner::of(peer), 1, others);
        self.share = share.map(Box::new);
        self.share.is_some()
    }

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
            unshared: limits.concurrent_calls.div_ceil(4),
            calls: Budget::new(limits.concurrent_calls),
            bytes: Budget::new(limits.call_bytes),
            limits,
            claimed: watch::Sender::new(0),
        })
    }

    /// Counts a call that arrives. It may run if it can [`claim`](Permit::claim) its place.
    pub(crate) fn admit(self: &Arc<Self>) -> Permit {
        self.running.fetch_add(1, Ordering::Relaxed);
        Permit { admission: Arc::clone(self), bytes: Weight::default(), share: None }
    }

    /// Takes room for a message that is kept. Returns `None` where there is not enough.
    pub(crate) fn weigh(&self, peer: &Peer, size: usize) -> Option<Weight> {
        if size <= SMALL {
            return Some(Weight::default());
        }
        self.weigh_task(Owner::of(peer).digest(), size)
    }

    /// Returns whether so many bytes of one account can ever have room.
    pub(crate) fn could_weigh(&self, size: usize) -> bool {
        size <= SMALL || size <= self.limits.call_bytes.div_ceil(2)
    }

    /// Takes room for the stored bytes of a task. Returns `None` where there is not enough.
    pub(crate) fn weigh_task(&self, account: Digest, size: usize) -> Option<Weight> {
        if size <= SMALL {
            return Some(Weight::default());
        }
        self.bytes.reserve(&account, size).map(|bytes| Weight { _bytes: Some(Box::new(bytes)) })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns whether one more call may run now.
    pub(crate) fn has_place(&self) -> bool {
        self.running.load(Ordering::Relaxed) < self.limits.concurrent_calls
    }

    /// Returns whether one more call of a caller may run now.
    pub(crate) fn has_place_for(&self, owner: &Owner) -> bool {
        let running = self.running();
        running < self.unshared || self.has_place() && self.calls.has_room_among(owner, 1, running)
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

    /// Lets the rest of a claimed round run although its client has hung up. It keeps a place among the calls, in its caller's
    /// share, and has [`Limits::finish_within`] to end.
    pub(crate) fn finish(self: &Arc<Self>, work: OutcomeFuture, owner: &Owner) {
        let Ok(runtime) = Handle::try_current() else {
            return tracing::warn!("the runtime has ended, and a claimed round with it: it may run again");
        };
        let (mut permit, bound) = (self.admit(), self.limits.finish_within);
        permit.share = (self.running() > self.unshared).then(|| Box::new(self.calls.charge(owner, 1)));
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
