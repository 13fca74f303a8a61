//! [`Lease`]: a task that this process works on. All its changes go through here.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roundtrip_core::seal::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::lock::lock;
use crate::server::delivery::{pause_after, waits_after};
use crate::server::limits::Admission;
use crate::server::notify::status::StatusSlot;
use crate::server::round::{Keeper, ParkedRound, Snapshot};
use crate::task::{Ended, Millis, Record, StoredTask, TaskId, TaskStoreError, TaskStoreHandle};

/// Pause before a store that failed is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Reason why a worker stops before its handler has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Another worker has the task, or it is gone: nothing may be written any more.
    Lost,
    /// A client has cancelled it.
    Cancelled,
    /// It has been given back, for another worker to carry on.
    Released,
    /// Its time to live is over.
    Expired,
}

/// A task that this process works on.
pub(crate) struct Lease {
    store: TaskStoreHandle,
    held: tokio::sync::Mutex<Held>,
    id: TaskId,
    fence: u64,
    length: Duration,
    admission: Arc<Admission>,
    stop: watch::Sender<Option<Stop>>,
    heard: watch::Sender<Heard>,
    parked: Mutex<Option<ParkedRound>>,
}

/// News of the task. A look that finds nothing must not hide the change that comes after it, so it counts as no version.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// Newest version.
    version: u64,
    /// Number of times that it may have changed.
    looks: u64,
}

/// The task as it was last read or written.
struct Held {
    stored: StoredTask,
    record: Record,
}

/// Time at which a task is next for a worker, once it has been changed.
#[derive(Clone, Copy)]
enum Due {
    /// This worker keeps it.
    Held,
    /// None has it, and it can be taken at once: its handler was stopped in the middle. A cancelled task is kept, and ended here.
    GivenBack,
    /// None has it, and it can be taken if there is something to do: after a pause if it waits for something outside.
    Released,
}

impl Due {
    /// Returns the time at which the task is due for a worker, where a lease has this length.
    fn time(self, record: &Record, now: Millis, length: Duration) -> Option<Millis> {
        match self {
            Self::GivenBack if !record.is_cancelled() => Some(now),
            Self::Held | Self::GivenBack => Some(now.plus(length)),
            Self::Released => record.is_runnable().then(|| now.plus(pause_after(record.waits()))),
        }
    }

    /// Returns the reason why the worker stops once the record is stored, if it does.
    fn stop(self, record: &Record) -> Option<Stop> {
        match self {
            _ if record.has_ended() => Some(Stop::Lost),
            _ if record.is_cancelled() => Some(Stop::Cancelled),
            Self::Held => None,
            Self::GivenBack | Self::Released => Some(Stop::Released),
        }
    }
}

impl Lease {
    pub(crate) fn new(
        store: TaskStoreHandle,
        stored: StoredTask,
        record: Record,
        length: Duration,
        admission: Arc<Admission>,
    ) -> Arc<Self> {
        let (id, fence) = (stored.id.clone(), stored.fence);
        let stop = watch::Sender::new(record.is_cancelled().then_some(Stop::Cancelled));
        let heard = watch::Sender::new(Heard { version: stored.version, looks: 0 });
        let held = tokio::sync::Mutex::new(Held { stored, record });
        let parked = Mutex::default();
        Arc::new(Self { store, held, id, fence, length, admission, stop, heard, parked })
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.id
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
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

    /// Tells the worker to stop. The first reason counts, unless the task is lost: then nothing may be written any more, whatever
    /// was to be done before.
    pub(crate) fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|stop| {
            let counts = stop.is_none() || (why == Stop::Lost && *stop != Some(Stop::Lost));
            if counts {
                *stop = Some(why);
            }
            counts
        });
    }

    /// Hears of a version of the task, which another may have written.
    pub(crate) fn changed(&self, version: u64) {
        self.heard.send_if_modified(|heard| {
            let newer = version > heard.version;
            heard.version = version.max(heard.version);
            newer
        });
    }

    /// Hears that the task may have changed.
    pub(crate) fn look(&self) {
        self.heard.send_modify(|heard| heard.looks = heard.looks.wrapping_add(1));
    }

    /// Waits until another has changed the task, and takes the change over.
    pub(crate) async fn follow(&self) {
        let (mut news, mut looks) = (self.heard.subscribe(), 0);
        loop {
            let heard = *news.borrow_and_update();
            let mut held = self.held.lock().await;
            if heard.version > held.stored.version || heard.looks != looks {
                looks = heard.looks;
                self.reread(&mut held).await;
                if held.record.is_cancelled() {
                    self.stop(Stop::Cancelled);
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

    /// Begins a run of the handler with the answers there are. Nothing is written: a run that comes to nothing leaves them.
    pub(crate) async fn begin(&self) {
        self.held.lock().await.record.begin();
    }

    /// Says that this worker is still at it, and looks for changes that others have made.
    pub(crate) async fn renew(&self) {
        self.change(Due::Held, |_, _| {}).await;
    }

    /// Takes the description of the task's state and the new parts of its result into the record. Returns whether there were any.
    ///
    /// The next change stores them: nothing waits between the slot and the record, so a change that is given up half-way loses none.
    pub(crate) async fn note(&self, status: &StatusSlot) -> bool {
        let record = &mut self.held.lock().await.record;
        let (message, (first, parts)) = (status.take(), status.take_parts());
        if let Some(message) = &message {
            record.set_message(message, Millis::now());
        }
        if !parts.is_empty() {
            record.add_parts(first, &parts, Millis::now());
        }
        message.is_some() || !parts.is_empty()
    }

    /// Ends the task.
    pub(crate) async fn end(&self, how: impl Fn() -> Ended) {
        self.change(Due::Released, |record, now| record.end(how(), now)).await;
    }

    /// Gives the task back as it was taken. One that was cancelled ends: it has no handler.
    pub(crate) async fn give_back(&self) {
        let cancelled = |record: &mut Record, now| {
            if record.is_cancelled() {
                record.end(Ended::Cancelled, now);
            }
        };
        self.change(Due::GivenBack, cancelled).await;
    }

    /// Gives the task back with the round that its handler has ended. Returns the pause before it is taken up again.
    pub(crate) async fn release(
        &self,
        ParkedRound { journal, asked, waits, stepped }: ParkedRound,
    ) -> Duration {
        let park = |record: &mut Record, now| {
            record.park(journal.clone(), asked.clone(), now);
            record.set_waits(waits_after(record.waits(), waits, stepped));
        };
        self.change(Due::Released, park).await;
        self.with(|record| pause_after(record.waits())).await
    }

    /// Takes the round that the handler has ended.
    pub(crate) fn take_parked(&self) -> Option<ParkedRound> {
        lock(&self.parked).take()
    }

    /// Changes the task, if this worker still has it. What others have changed meanwhile is taken over first.
    async fn change(&self, due: Due, change: impl Fn(&mut Record, Millis)) {
        let given_up = Instant::now() + self.length;
        let mut held = self.held.lock().await;
        while self.may_write() {
            let now = Millis::now();
            let mut record = held.record.clone();
            change(&mut record, now);
            if let Some(error) = record.overflow() {
                record.end(Ended::Failed(error), now);
            }
            let mut stored = held.stored.clone();
            if let Err(error) = record.put(&mut stored, due.time(&record, now, self.length)) {
                tracing::error!(%error, task = %self.id, "a task cannot be written");
                return self.stop(Stop::Lost);
            }
            match self.store.0.write(stored.clone()).await {
                Ok(true) => {
                    stored.version += 1;
                    // Under the lock: a change that waits for it must not take back what was given back.
                    due.stop(&record).into_iter().for_each(|why| self.stop(why));
                    *held = Held { stored, record };
                    return;
                }
                Ok(false) => self.reread(&mut held).await,
                Err(error) => self.failed(&error, given_up).await,
            }
        }
    }

    fn may_write(&self) -> bool {
        !matches!(*self.stop.borrow(), Some(Stop::Lost | Stop::Released))
    }

    /// Reads the task again, which another has changed, and takes over what clients may change.
    async fn reread(&self, held: &mut Held) {
        let read = self.store.0.read(&held.stored.owner, &self.id).await;
        match read {
            Ok(Some(stored)) if stored.fence == self.fence => match Record::read(&stored) {
                Ok(record) if record.has_ended() => self.stop(Stop::Lost),
                Ok(record) => {
                    held.record.take_over(record);
                    held.stored = stored;
                }
                Err(error) => {
                    tracing::error!(%error, task = %self.id, "a task cannot be read");
                    self.stop(Stop::Lost);
                }
            },
            Ok(_) => {
                tracing::warn!(task = %self.id, "another worker has taken this task up, or it is gone");
                self.stop(Stop::Lost);
            }
            Err(error) => self.failed(&error, Instant::now() + self.length).await,
        }
    }

    /// Waits before a store that failed is tried again. After the length of a lease another worker may have the task.
    async fn failed(&self, error: &TaskStoreError, given_up: Instant) {
        tracing::error!(error = error as &dyn std::error::Error, task = %self.id, "a task cannot be stored");
        if Instant::now() >= given_up {
            return self.stop(Stop::Lost);
        }
        sleep(RETRY).await;
    }
}

impl Keeper for Lease {
    fn keep(self: Arc<Self>, round: Arc<dyn Snapshot>) -> BoxFuture<'static, bool> {
        Box::pin(async move {
            // The journal is read inside the change, so that an earlier one never replaces a later one.
            let due = if self.admission.is_draining() { Due::GivenBack } else { Due::Held };
            self.change(due, |record, now| record.keep(round.snapshot(), now)).await;
            // A cancelled handler ends the steps that run, and begins no other.
            self.stop.borrow().is_none()
        })
    }

    fn park(&self, parked: ParkedRound) {
        *lock(&self.parked) = Some(parked);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).field("fence", &self.fence).finish_non_exhaustive()
    }
}
