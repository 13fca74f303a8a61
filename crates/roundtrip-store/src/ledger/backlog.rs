//! [`Backlog`]: replies that the database has not taken yet. One worker records them (K3).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use roundtrip::seal::{Digest, Timestamp};
use roundtrip::server::ledger::RoundKey;
use tokio::sync::watch;

use super::{Holder, Inner, Records};
use crate::retry::in_time;
use crate::{StoreError, Usage};

/// Pause between two attempts while the database refuses.
const PAUSE: Duration = Duration::from_secs(1);

/// Most bytes of waiting replies. Past them, and past a caller's share of them, rounds are refused before they run.
const CAPACITY: Usage = Usage { records: u64::MAX, bytes: 64 << 20 };

/// Bytes that a waiting reply takes besides its content.
const OVERHEAD: u64 = 256;

/// A reply under its claim.
pub(super) struct ClaimedReply {
    pub(super) key: RoundKey,
    pub(super) holder: Holder,
    pub(super) sealed: Vec<u8>,
    pub(super) until: Timestamp,
}

impl ClaimedReply {
    fn size(&self) -> u64 {
        OVERHEAD.saturating_add(self.sealed.len() as u64)
    }

    fn has_expired(&self) -> bool {
        Timestamp::from(SystemTime::now()) > self.until
    }
}

/// Replies that wait to be recorded, of all callers. None is dropped for want of room: they are of rounds that have had their
/// effects.
#[derive(Default)]
pub(super) struct Backlog {
    queue: Mutex<Queue>,
    /// True while a reply waits.
    waits: watch::Sender<bool>,
}

#[derive(Default)]
struct Queue {
    replies: VecDeque<Arc<ClaimedReply>>,
    /// Bytes of all callers together.
    bytes: u64,
    /// Bytes of each caller that has waiting replies.
    owners: HashMap<Digest, u64>,
    has_worker: bool,
}

impl Queue {
    fn of(&self, owner: &Digest) -> u64 {
        self.owners.get(owner).copied().unwrap_or_default()
    }
}

impl Backlog {
    /// Returns whether a caller may begin a round whose reply may have to wait.
    pub(super) fn has_room(&self, owner: &Digest) -> bool {
        let queue = self.lock();
        let bytes = |bytes| Usage { records: 0, bytes };
        CAPACITY.has_room(bytes(queue.of(owner)), bytes(queue.bytes))
    }

    /// Returns whether no reply waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().replies.is_empty()
    }

    /// Waits until no reply waits.
    pub(super) async fn emptied(&self) {
        // The sender is here, so this does not fail.
        let _ = self.waits.subscribe().wait_for(|waits| !waits).await;
    }

    /// Returns whether a worker has to be started: replies wait, and there is none. It counts as started.
    fn wants_worker(&self) -> bool {
        let mut queue = self.lock();
        !queue.replies.is_empty() && !std::mem::replace(&mut queue.has_worker, true)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reply that was refused. Returns whether a worker has to be started.
    fn add(&self, reply: ClaimedReply) -> bool {
        let mut queue = self.lock();
        queue.bytes = queue.bytes.saturating_add(reply.size());
        let own = queue.of(reply.key.owner()).saturating_add(reply.size());
        queue.owners.insert(*reply.key.owner(), own);
        queue.replies.push_back(Arc::new(reply));
        self.waits.send_replace(true);
        !std::mem::replace(&mut queue.has_worker, true)
    }

    /// Returns the reply to try next. `None` ends the worker.
    fn first(&self) -> Option<Arc<ClaimedReply>> {
        let mut queue = self.lock();
        let first = queue.replies.front().map(Arc::clone);
        queue.has_worker = first.is_some();
        first
    }

    /// Puts the first reply behind the others, so that none is held up by a reply that is refused for itself.
    fn defer_first(&self) {
        let mut queue = self.lock();
        if !queue.replies.is_empty() {
            queue.replies.rotate_left(1);
        }
    }

    /// Removes the first reply, which needs no further attempt.
    fn remove_first(&self) {
        let mut queue = self.lock();
        let Some(reply) = queue.replies.pop_front() else { return };
        let (owner, size) = (reply.key.owner(), reply.size());
        queue.bytes = queue.bytes.saturating_sub(size);
        match queue.of(owner).saturating_sub(size) {
            0 => drop(queue.owners.remove(owner)),
            left => drop(queue.owners.insert(*owner, left)),
        }
        self.waits.send_replace(!queue.replies.is_empty());
    }
}

impl<R: Records> Inner<R> {
    /// Keeps a reply that was refused, for the worker. An outage is logged when it begins and when it is over.
    pub(super) fn record_later(self: &Arc<Self>, reply: ClaimedReply, error: &StoreError) {
        if self.backlog.add(reply) {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "the database takes no replies: they are kept in memory, and recorded as soon as it does"
            );
            self.start_worker();
        }
    }

    /// Starts a worker in this runtime, if replies wait that have none: the runtime of the last one has ended.
    pub(super) fn ensure_worker(self: &Arc<Self>) {
        if self.backlog.wants_worker() {
            self.start_worker();
        }
    }

    fn start_worker(self: &Arc<Self>) {
        tokio::spawn(Worker { ledger: Arc::clone(self), has_ended: false }.run());
    }
}

/// The worker of a ledger's backlog. It is there while replies wait.
struct Worker<R: Records> {
    ledger: Arc<Inner<R>>,
    has_ended: bool,
}

/// Numbers of replies by what became of them.
#[derive(Default)]
struct Tally {
    recorded: u64,
    /// Not needed any more: their rounds cannot be repeated.
    expired: u64,
    lost: u64,
    /// Error of the last reply that was lost.
    error: Option<StoreError>,
}

impl Tally {
    fn log(&self) {
        let Self { recorded, expired, lost, error } = self;
        match error {
            None => tracing::info!(recorded, expired, "the database takes replies again"),
            Some(error) => {
                let error = error as &dyn std::error::Error;
                tracing::error!(recorded, expired, lost, error, "replies could not be recorded");
            }
        }
    }
}

impl<R: Records> Worker<R> {
    async fn run(mut self) {
        let mut tally = Tally::default();
        tokio::time::sleep(PAUSE).await;
        while let Some(reply) = self.ledger.backlog.first() {
            if self.attempt(&reply, &mut tally).await {
                self.ledger.backlog.remove_first();
                self.ledger.held.remove(reply.key.id(), &reply.holder);
            } else {
                self.ledger.backlog.defer_first();
                tokio::time::sleep(PAUSE).await;
            }
        }
        self.has_ended = true;
        tally.log();
    }

    /// Tries to record a reply, and counts what became of it. False if it has to be tried again.
    async fn attempt(&self, reply: &ClaimedReply, tally: &mut Tally) -> bool {
        if reply.has_expired() {
            tally.expired += 1;
            return true;
        }
        match in_time(self.ledger.write(reply)).await {
            Ok(()) => tally.recorded += 1,
            Err(error) if error.may_pass_for_a_record() => return false,
            Err(error) => {
                tally.lost += 1;
                tally.error = Some(error);
            }
        }
        true
    }
}

/// A worker whose runtime has ended leaves the replies to the next one.
impl<R: Records> Drop for Worker<R> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.ledger.backlog.lock().has_worker = false;
        }
    }
}
