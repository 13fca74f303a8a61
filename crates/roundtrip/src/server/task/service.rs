//! [`TaskService`]: the tasks of a started server, and the loop of its workers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use roundtrip_core::seal::{Digest, FlowId};
use roundtrip_core::wire::ErrorObject;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tracing::Instrument as _;

use super::config::Tasks;
use super::dialect::Sep2322;
use super::errors::{busy, read_view, too_many, unwritable};
use super::kept_extension::KeptExtensions;
use super::lease::{Lease, Stop};
use super::run::Run;
use super::sweep::sweep;
use super::waiting::Waiters;
use crate::lock::lock;
use crate::server::clock::random;
use crate::server::limits::{Admission, Weight};
use crate::server::notify::status::StatusSlot;
use crate::server::notify::subscription::{Change, Hub};
use crate::server::outcome::caught;
use crate::server::run::commitment::Commitment;
use crate::server::run::runner::Runner;
use crate::task::{
    Ended, Millis, Record, StoredTask, TaskCall, TaskChanges, TaskId, TaskOwner, TaskStoreError,
    TaskStoreHandle,
};

/// Most tasks that are taken at once.
const BATCH: usize = 16;
/// Most changes that are heard of between two looks for tasks that are due.
const TOGETHER: usize = 256;
/// Time after which the store is looked at, even if it has announced nothing.
const IDLE: Duration = Duration::from_secs(1);

/// Prepares the handler of a task that another worker has begun.
pub(crate) trait Resume: Send + Sync {
    /// Returns the handler, ready to run, or the error that the task ends with.
    fn resume(&self, record: &Record) -> Result<(Runner, Arc<StatusSlot>), ErrorObject>;
}

/// The tasks of a started server.
pub(crate) struct TaskService {
    pub(super) store: TaskStoreHandle,
    pub(crate) ttl: Duration,
    per_caller: usize,
    lease: Duration,
    /// Places of tasks that this process works on.
    slots: Arc<Semaphore>,
    /// Tasks that this process works on.
    running: Mutex<HashMap<TaskId, Arc<Lease>>>,
    /// The server, which is dropped before this ends.
    resume: OnceLock<Weak<dyn Resume>>,
    works: OnceLock<()>,
    wake: Notify,
    admission: Arc<Admission>,
    /// Subscriptions that may watch tasks, each with the owner of the tasks.
    hub: Arc<Hub>,
    /// Owners of tasks that are watched.
    watched: Mutex<HashMap<TaskId, TaskOwner>>,
    /// Requests that wait for a task to change.
    pub(super) waiters: Waiters,
    /// Requests that may speak SEP-2322's dialect.
    pub(crate) sep_2322: Sep2322,
    /// Extensions of a request that are stored with its task.
    pub(crate) extensions: KeptExtensions,
}

impl TaskService {
    pub(crate) fn new(tasks: Tasks, admission: &Arc<Admission>, hub: &Arc<Hub>) -> Arc<Self> {
        Arc::new(Self {
            store: tasks.store,
            ttl: tasks.ttl,
            per_caller: tasks.per_caller,
            lease: tasks.lease,
            slots: Arc::new(Semaphore::new(tasks.at_once.min(Semaphore::MAX_PERMITS))),
            running: Mutex::default(),
            resume: OnceLock::new(),
            works: OnceLock::new(),
            wake: Notify::new(),
            admission: Arc::clone(admission),
            hub: Arc::clone(hub),
            watched: Mutex::default(),
            waiters: Waiters::default(),
            sep_2322: tasks.sep_2322,
            extensions: tasks.extensions,
        })
    }

    /// Starts the workers, where there is a runtime; otherwise with the first task.
    pub(crate) fn start(self: &Arc<Self>, server: Weak<dyn Resume>) {
        // Set once: a server starts once.
        let _ = self.resume.set(server);
        self.ensure_works();
    }

    /// Starts the workers, unless they have been.
    pub(crate) fn ensure_works(self: &Arc<Self>) {
        if self.works.get().is_some() {
            return;
        }
        if let Ok(runtime) = Handle::try_current()
            && self.works.set(()).is_ok()
        {
            runtime.spawn(work(Arc::downgrade(self)));
            let service = Arc::downgrade(self);
            let store = move || {
                service.upgrade().filter(|service| service.has_server()).map(|service| service.store.clone())
            };
            runtime.spawn(sweeps(store));
        }
    }

    /// Returns whether the server is still there.
    fn has_server(&self) -> bool {
        self.resume.get().is_some_and(|server| server.strong_count() > 0)
    }

    /// Returns a place to work on a task, if one is free.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Creates a task durably. Where `held`, this process has it from the start. The call that becomes it is committed from when the
    /// store has the task, which may add it though no call waits for that any more.
    pub(super) async fn create(
        &self,
        (call, flow, journal): ((String, TaskCall), Option<FlowId>, Option<Vec<u8>>),
        (owner, account): (TaskOwner, Digest),
        (ttl, held): (Duration, bool),
        commitment: &Commitment,
    ) -> Result<(Record, StoredTask), ErrorObject> {
        let (id, now) = (TaskId::new(random()?), Millis::now());
        let flow = match flow {
            Some(flow) => flow,
            None => FlowId::new(random()?),
        };
        let mut record = Record::new(call, flow, now, Some(ttl));
        if let Some(journal) = journal {
            record.keep(journal, now);
        }
        let lease = if held { (1, now.plus(self.lease)) } else { (0, now) };
        let stored = record.stored(&id, (owner, account), lease).map_err(|error| unwritable(&error))?;
        commitment.set(true);
        let created = self.store.0.create(stored.clone(), self.per_caller).await;
        commitment.set(created.is_ok());
        match created {
            Ok(()) => Ok((record, stored)),
            Err(TaskStoreError::TooMany) => Err(too_many(self.per_caller)),
            Err(error) => Err(busy(&error)),
        }
    }

    /// Goes on with a task in this process. Its place, and the room for its message, are held until its run ends.
    pub(super) fn run(
        self: &Arc<Self>,
        (stored, record): (StoredTask, Record),
        (runner, status): (Runner, Arc<StatusSlot>),
        held: (OwnedSemaphorePermit, Weight),
    ) {
        let lease = self.lease_of(stored, record);
        tokio::spawn(
            Arc::clone(self).attended(Run { hub: Arc::clone(&self.hub), lease, runner, status }, held),
        );
    }

    fn lease_of(&self, stored: StoredTask, record: Record) -> Arc<Lease> {
        let lease = Lease::new(self.store.clone(), stored, record, self.lease, Arc::clone(&self.admission));
        let before = lock(&self.running).insert(lease.id().clone(), Arc::clone(&lease));
        // A clock that jumped has ended a lease of this very process.
        if let Some(before) = before {
            before.stop(Stop::Lost);
        }
        lease
    }

    async fn attended(self: Arc<Self>, run: Run, held: (OwnedSemaphorePermit, Weight)) {
        let lease = Arc::clone(&run.lease);
        // A process that stops waits for its workers, which give their tasks back.
        let claimed = self.admission.claimed();
        let span = tracing::info_span!("task", id = %lease.id());
        // A store that panics has failed for this run; the task is due again when its lease is over.
        let pause = caught(run.drive().instrument(span)).await.unwrap_or_default();
        self.left(&lease);
        drop((held, claimed));
        self.wake.notify_one();
        if !pause.is_zero() {
            sleep(pause).await;
            self.wake.notify_one();
        }
    }

    /// Forgets a task that this process does not work on any more, unless it has taken it up again under another lease.
    fn left(&self, lease: &Arc<Lease>) {
        let mut running = lock(&self.running);
        if running.get(lease.id()).is_some_and(|other| Arc::ptr_eq(other, lease)) {
            running.remove(lease.id());
        }
    }

    /// Goes on with a task that was taken. Where calls of this process have filled its places meanwhile, it is given back.
    async fn resume(self: &Arc<Self>, lease: Arc<Lease>, slot: Option<OwnedSemaphorePermit>) {
        let Some(server) = self.resume.get().and_then(Weak::upgrade) else { return self.left(&lease) };
        let Some(slot) = slot else {
            lease.give_back().await;
            return self.left(&lease);
        };
        let prepared = lease.with(|record| server.resume(record)).await;
        drop(server);
        lease.begin().await;
        match prepared {
            Ok((runner, status)) => {
                let run = Run { hub: Arc::clone(&self.hub), lease, runner, status };
                Arc::clone(self).attended(run, (slot, Weight::default())).await;
            }
            Err(error) => {
                lease.end(|| Ended::Failed(error.clone())).await;
                self.left(&lease);
            }
        }
    }

    /// Takes tasks that are due, as many as there are places. Returns whether there may be more.
    async fn take(self: &Arc<Self>) -> bool {
        let free = self.slots.available_permits().min(BATCH);
        if free == 0 || self.admission.is_draining() {
            return false;
        }
        let now = Millis::now();
        let taken = match self.store.0.take(now, now.plus(self.lease), free).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "no task can be taken");
                return false;
            }
        };
        let all = taken.len() == free;
        for stored in taken {
            let record = match Record::read(&stored) {
                Ok(record) => record,
                Err(error) => {
                    tracing::error!(%error, task = %stored.id, "a task cannot be read");
                    continue;
                }
            };
            // Known before the next change is heard of: it may be a cancellation of this task.
            let lease = self.lease_of(stored, record);
            let (service, slot) = (Arc::clone(self), self.slot());
            tokio::spawn(async move { service.resume(lease, slot).await });
        }
        all
    }
}

/// Works on tasks for as long as the server is there. A store is the author's code: one that panics costs one turn (Z1).
async fn work(service: Weak<TaskService>) {
    let mut changes = None;
    while let Some(service) = service.upgrade().filter(|service| service.has_server()) {
        if caught(service.turn(&mut changes)).await.is_none() {
            tracing::error!("the store of tasks panicked, and is asked again for tasks that are due");
            sleep(IDLE).await;
        }
    }
}

/// Removes tasks for as long as there is a store to sweep. One that panics is swept again after the usual pause (Z1).
async fn sweeps(store: impl Fn() -> Option<TaskStoreHandle>) {
    while caught(sweep(&store)).await.is_none() {
        tracing::error!("the store of tasks panicked, and is swept again");
    }
}

impl TaskService {
    /// Takes the tasks that are due, then waits for changes and hears of them.
    async fn turn(self: &Arc<Self>, changes: &mut Option<Box<dyn TaskChanges>>) {
        let changes = changes.get_or_insert_with(|| self.store.0.changes());
        while self.take().await {}
        tokio::select! {
            changed = changes.next() => self.heard(changed).await,
            () = self.wake.notified() => {}
            () = sleep(IDLE) => {}
        }
        self.hear(&mut **changes).await;
    }

    /// Hears of the changes that are known by now: one look for tasks that are due is enough for all of them.
    async fn hear(&self, changes: &mut dyn TaskChanges) {
        for _ in 0..TOGETHER {
            tokio::select! {
                biased;
                changed = changes.next() => self.heard(changed).await,
                () = std::future::ready(()) => return,
            }
        }
    }

    async fn heard(&self, change: Option<(TaskId, u64)>) {
        match change {
            Some((id, version)) => self.changed(&id, version).await,
            None => self.all_changed().await,
        }
    }

    /// Tells the worker of a task, if it is of this process, that the task has changed: a client may have cancelled it elsewhere.
    /// Tells its watchers too.
    async fn changed(&self, id: &TaskId, version: u64) {
        if let Some(lease) = lock(&self.running).get(id) {
            lease.changed(version);
        }
        self.waiters.wake(id);
        self.announce(id).await;
    }

    async fn all_changed(&self) {
        self.waiters.wake_all();
        lock(&self.running).values().for_each(|lease| lease.look());
        let watched: Vec<TaskId> = lock(&self.watched).keys().cloned().collect();
        for id in watched {
            self.announce(&id).await;
        }
    }

    /// Announces a task that is watched, as it is now.
    pub(super) async fn announce(&self, id: &TaskId) {
        let Some(owner) = self.owner_of_watched(id) else { return };
        match self.store.0.view(&owner, id).await {
            Ok(Some(view)) => {
                if let Ok(task) = read_view(&view) {
                    self.hub.announce(Change::Task(&Arc::new(task)));
                }
            }
            Ok(None) => drop(lock(&self.watched).remove(id)),
            Err(error) => drop(busy(&error)),
        }
    }

    /// Returns the owner of a task that is watched, and forgets one that is no longer.
    fn owner_of_watched(&self, id: &TaskId) -> Option<TaskOwner> {
        // Under one lock: a subscription that opens meanwhile is entered after this, and stays. The hub never waits for this lock.
        let mut watched = lock(&self.watched);
        let owner = watched.get(id).copied()?;
        if self.hub.watches_task(id.as_str()) {
            return Some(owner);
        }
        watched.remove(id);
        None
    }

    /// Remembers the owner of a task that is watched.
    pub(super) fn watch_one(&self, id: TaskId, owner: TaskOwner) {
        lock(&self.watched).insert(id, owner);
    }
}

impl fmt::Debug for TaskService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskService").field("running", &lock(&self.running).len()).finish_non_exhaustive()
    }
}
