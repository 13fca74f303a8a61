//! [`Lease`]: a task that this process works on. All its changes go through here.

mod keeper;
mod questions;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::held::{Held, Next, Stop, give_up};
use super::validity::{Poke, TwoClocks, Validity};
use crate::lock::lock;
use crate::server::delivery::{pause_after, waits_after};
use crate::server::limits::Admission;
use crate::server::notify::status::StatusSlot;
use crate::server::round::{ParkedRound, Pieces, ShownQuestions};
use crate::task::{Ended, Millis, Record, TaskId, TaskKey, TaskStoreError, TaskStoreHandle};

/// Pause before a store that failed is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// A task that this process works on.
pub(crate) struct Lease {
    store: TaskStoreHandle,
    key: TaskKey,
    held: tokio::sync::Mutex<Held>,
    fence: AtomicU64,
    length: Duration,
    validity: watch::Sender<Validity>,
    /// Has the leases renewed before their time.
    poke: Poke,
    admission: Arc<Admission>,
    stop: watch::Sender<Option<Stop>>,
    heard: watch::Sender<Heard>,
    parked: Mutex<Option<ParkedRound>>,
    /// Questions that are to be shown, in the order they were put.
    shown: Mutex<Vec<ShownQuestions>>,
    /// Notified when there are some.
    shows: Notify,
    /// The round that its handler is in, if it can ask.
    round: OnceLock<Arc<dyn Pieces>>,
    /// Description of what the task is left for.
    misfit: Mutex<Option<String>>,
    /// Time at which the run was last seen to be polled.
    polled: Mutex<TwoClocks>,
}

/// News of the task. A poll that finds nothing must not hide the change that comes after it, so it counts as no version.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// Newest version.
    version: u64,
    /// Number of times that it may have changed.
    polls: u64,
}

impl Lease {
    pub(super) fn new(
        store: TaskStoreHandle,
        (key, fence): (TaskKey, u64),
        held: Held,
        (sent, length): (TwoClocks, Duration),
        (admission, poke): (Arc<Admission>, Poke),
    ) -> Arc<Self> {
        let stop = watch::Sender::new(held.record.is_cancelled().then_some(Stop::Cancelled));
        Arc::new(Self {
            store,
            key,
            heard: watch::Sender::new(Heard { version: held.version, polls: 0 }),
            held: tokio::sync::Mutex::new(held),
            fence: AtomicU64::new(fence),
            length,
            validity: watch::Sender::new(Validity::new(sent, length)),
            poke,
            admission,
            stop,
            parked: Mutex::default(),
            shown: Mutex::default(),
            shows: Notify::new(),
            round: OnceLock::new(),
            misfit: Mutex::default(),
            polled: Mutex::new(TwoClocks::now()),
        })
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.key.id
    }

    pub(super) fn key(&self) -> &TaskKey {
        &self.key
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence.load(Ordering::SeqCst)
    }

    /// Sets the round whose journal is stored with the task.
    pub(super) fn keeps(&self, round: Arc<dyn Pieces>) {
        // Set once: a lease has one run.
        let _ = self.round.set(round);
    }

    /// Waits until the worker is to stop.
    pub(crate) async fn stopped(&self) -> Stop {
        let mut stop = self.stop.subscribe();
        loop {
            if let Some(stop) = *stop.borrow_and_update() {
                return stop;
            }
            // The sender is `self`, so there is no end to wait for but this.
            let _ = stop.changed().await;
        }
    }

    /// Waits until the task is another's, or gone.
    pub(crate) async fn lost(&self) {
        // The sender is `self`, so there is no end to wait for but this.
        let _ = self.stop.subscribe().wait_for(|stop| *stop == Some(Stop::Lost)).await;
    }

    /// Has the worker stop. The first reason counts, unless the task is lost: then nothing may be written any more, whatever was to
    /// be done before.
    pub(crate) fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|stop| {
            let counts = stop.is_none() || (why == Stop::Lost && *stop != Some(Stop::Lost));
            if counts {
                *stop = Some(why);
            }
            counts
        });
    }

    /// Notes a version of the task, which another may have written.
    pub(crate) fn changed(&self, version: u64) {
        self.heard.send_if_modified(|heard| {
            let newer = version > heard.version;
            heard.version = version.max(heard.version);
            newer
        });
    }

    /// Notes that the task may have changed.
    pub(crate) fn poll(&self) {
        self.heard.send_modify(|heard| heard.polls = heard.polls.wrapping_add(1));
    }

    /// Notes that the lease was renewed under this fence, by a statement that was sent then.
    pub(super) fn renewed(&self, fence: u64, sent: TwoClocks, version: u64) {
        if fence == self.fence() {
            self.validity.send_replace(Validity::new(sent, self.length));
            self.changed(version);
        }
    }

    /// Notes that the store did not renew the lease under this fence: another worker has the task, or this process is just taking
    /// it again.
    pub(super) fn missed(&self, fence: u64) {
        let is_lost = !self.poke.is_doubtful() && fence == self.fence() && self.may_write();
        if is_lost {
            tracing::warn!(task = %self.id(), "another worker has taken this task up, or it is gone");
            self.stop(Stop::Lost);
        }
    }

    /// Continues under the next fence: the lease had expired, and this very process has taken the task again. Returns false if
    /// another had it in between.
    pub(super) fn retake(&self, fence: u64, sent: TwoClocks) -> bool {
        let moved =
            self.fence.compare_exchange(fence.wrapping_sub(1), fence, Ordering::SeqCst, Ordering::SeqCst);
        let is_own = moved.is_ok() && self.may_write();
        if is_own {
            self.validity.send_replace(Validity::new(sent, self.length));
            self.poll();
        }
        is_own
    }

    /// Notes that the run is being polled.
    pub(super) fn is_polled(&self) {
        *lock(&self.polled) = TwoClocks::now();
    }

    /// Returns the time since the run was last polled, and counts it as polled: what is wrong is reported once in a while.
    pub(super) fn unpolled(&self, longest: Duration) -> Option<Duration> {
        let mut polled = lock(&self.polled);
        let passed = polled.passed();
        (passed > longest).then(|| {
            *polled = TwoClocks::now();
            passed
        })
    }

    /// Waits until another has changed the task, and takes the change over.
    pub(crate) async fn follow(&self) {
        let (mut news, mut polls) = (self.heard.subscribe(), 0);
        loop {
            let heard = *news.borrow_and_update();
            let mut held = self.held.lock().await;
            if heard.version > held.version || heard.polls != polls {
                polls = heard.polls;
                self.reread(&mut held).await;
                // A store that failed is asked again: no other news of this version will come.
                while heard.version > held.version && self.may_write() {
                    drop(held);
                    held = self.held.lock().await;
                    self.reread(&mut held).await;
                }
                if held.record.is_cancelled() {
                    self.stop(Stop::Cancelled);
                } else {
                    self.deliver(&mut held).await;
                }
            }
            drop(held);
            // The sender is `self`, so there is no end to wait for but this.
            let _ = news.changed().await;
        }
    }

    /// Reads the record.
    pub(crate) async fn with<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(&self.held.lock().await.record)
    }

    /// Begins a run of the handler with the answers there are. Nothing is written: a run that comes to nothing leaves them. Returns
    /// whether the task was left to others before.
    pub(crate) async fn begin(&self) -> bool {
        self.held.lock().await.record.begin()
    }

    /// Stores the record.
    pub(crate) async fn store(&self) {
        self.change(Next::Held, |_, _| {}).await;
    }

    /// Takes the description of the task's state and the new parts of its result into the record. Returns whether there were any.
    ///
    /// The next change stores them: nothing waits between the slot and the record, so a change that is given up half-way loses none.
    pub(crate) async fn note(&self, status: &StatusSlot) -> bool {
        let Held { record, parts, .. } = &mut *self.held.lock().await;
        let (message, (first, new)) = (status.take(), status.take_parts());
        if let Some(message) = &message {
            record.set_message(message, Millis::now());
        }
        parts.extend(record.add_parts(first, &new, Millis::now()));
        message.is_some() || !new.is_empty()
    }

    /// Ends the task.
    pub(crate) async fn end(&self, how: impl Fn() -> Ended) {
        self.change(Next::Released, |record, now| record.end(&how(), now)).await;
    }

    /// Gives the task back as it is. One that was cancelled ends: it has no handler.
    pub(crate) async fn give_back(&self) {
        let cancelled = |record: &mut Record, now| {
            if record.is_cancelled() {
                record.end(&Ended::Cancelled, now);
            }
        };
        self.change(Next::GivenBack, cancelled).await;
    }

    /// Gives the task back with the round that its handler has ended. Returns the pause before it is taken again.
    pub(crate) async fn release(&self, parked: ParkedRound) -> Duration {
        let ParkedRound { journal, asked, stateful, waits, stepped, max_rounds } = parked;
        self.held.lock().await.add_last(journal);
        let park = |record: &mut Record, now| {
            record.park(asked.clone(), stateful, waits, now);
            record.set_waits(waits_after(record.waits(), waits, stepped));
            give_up(record, max_rounds, now);
        };
        self.change(Next::Released, park).await;
        self.with(|record| pause_after(record.waits())).await
    }

    /// Changes the task, if this worker still has it. What others have changed meanwhile is taken over first, and what the handler
    /// has added to its journal is stored with it: answers that the record has used up are there.
    async fn change(&self, next: Next, change: impl Fn(&mut Record, Millis)) {
        self.change_held(&mut *self.held.lock().await, next, change).await;
    }

    /// Makes a change under the lock of the record. Returns whether it is stored.
    async fn change_held(&self, held: &mut Held, next: Next, change: impl Fn(&mut Record, Millis)) -> bool {
        while self.may_write() {
            let now = Millis::now();
            self.collect(held);
            let mut record = held.record.clone();
            change(&mut record, now);
            if let Some(error) = held.overflow(|| self.size(held)) {
                record.end(&Ended::Failed(error), now);
            }
            let mut stored = match record.change(&self.key, held.version, next.due(&record)) {
                Ok(stored) => stored,
                Err(error) => {
                    tracing::error!(%error, task = %self.id(), "a task cannot be written");
                    self.stop(Stop::Lost);
                    return false;
                }
            };
            stored.parts = held.parts.clone();
            // A task that has ended has no journal.
            if stored.is_live {
                (stored.journal, stored.replaces_journal) = (held.journal.clone(), held.replaces);
            }
            match self.store.0.write(stored, now).await {
                Ok(true) => {
                    held.version += 1;
                    held.is_stored();
                    // Under the lock: a change that waits for it must not take back what was given back.
                    next.stop(&record).into_iter().for_each(|why| self.stop(why));
                    held.record = record;
                    return true;
                }
                Ok(false) => self.reread(held).await,
                Err(error) => self.failed(&error).await,
            }
        }
        false
    }

    /// Adds what the handler has changed in its journal to the pieces that are to be stored. They stay there until they are: a
    /// handler may drop the future that stores them.
    fn collect(&self, held: &mut Held) {
        if let Some(piece) = self.round.get().and_then(|round| round.next_piece()) {
            held.add_piece(piece);
        }
    }

    /// Returns the size of the journal as a whole. If its round is over and it is large, that is the size of its pieces.
    fn size(&self, held: &Held) -> usize {
        self.round.get().and_then(|round| round.size()).unwrap_or(held.bytes)
    }

    /// Appends to the journal what has changed in it.
    async fn append(&self) {
        let mut held = self.held.lock().await;
        let mut refused = None;
        while self.may_write() {
            self.collect(&mut held);
            if held.overflow(|| self.size(&held)).is_some() {
                drop(held);
                // It ends there: it remembers too much.
                return self.store().await;
            }
            if held.journal.is_empty() {
                return;
            }
            let fence = self.fence();
            match self.store.0.append(&self.key, fence, &held.journal).await {
                Ok(true) => return held.journal.clear(),
                Ok(false) if refused == Some(fence) => {
                    self.doubt(fence).await;
                }
                // This process may have taken its own task again meanwhile.
                Ok(false) => {
                    refused = Some(fence);
                    self.reread(&mut held).await;
                }
                Err(error) => self.failed(&error).await,
            }
        }
    }

    /// Waits until the lease holds, if it has expired: a step that begins after that may run elsewhere, too. The process may have
    /// been stopped for any time since it last looked.
    async fn holds(&self) {
        let mut validity = self.validity.subscribe();
        while !validity.borrow_and_update().holds() && self.stop.borrow().is_none() {
            self.poke.poke();
            tokio::select! {
                _ = validity.changed() => {}
                _ = self.stopped() => {}
            }
        }
    }

    fn may_write(&self) -> bool {
        !matches!(*self.stop.borrow(), Some(Stop::Lost | Stop::Released))
    }

    /// Reads the task again, which another has changed, and takes over what clients may change.
    async fn reread(&self, held: &mut Held) {
        let fence = self.fence();
        match self.store.0.read(&self.key, Millis::now()).await {
            Ok(Some(stored)) if stored.fence == fence => match Record::read(&stored.work) {
                Ok(record) if record.has_ended() => self.stop(Stop::Lost),
                Ok(record) => {
                    // Whoever has read the task, the handler gets its answers.
                    if held.record.take_over(record) {
                        self.shows.notify_one();
                    }
                    held.version = stored.version;
                }
                Err(error) => {
                    tracing::error!(%error, task = %self.id(), "a task cannot be read");
                    self.stop(Stop::Lost);
                }
            },
            Ok(_) => self.doubt(fence).await,
            Err(error) => self.failed(&error).await,
        }
    }

    /// Waits before a task is looked at again that this process may just be taking, if it is not lost.
    async fn doubt(&self, fence: u64) {
        self.missed(fence);
        if self.may_write() {
            sleep(RETRY).await;
        }
    }

    /// Waits before a store that failed is tried again. Once the lease has expired another worker may have the task.
    async fn failed(&self, error: &TaskStoreError) {
        tracing::error!(error = error as &dyn std::error::Error, task = %self.id(), "a task cannot be stored");
        if matches!(error, TaskStoreError::Unreadable(_)) || !self.validity.borrow().holds() {
            return self.stop(Stop::Lost);
        }
        sleep(RETRY).await;
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", self.id()).field("fence", &self.fence()).finish_non_exhaustive()
    }
}
