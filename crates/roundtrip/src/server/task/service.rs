//! [`TaskService`]: the tasks of a started server.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use roundtrip_core::seal::{Digest, FlowId};
use roundtrip_core::wire::ErrorObject;
use tokio::sync::Notify;

use super::announcer::Announcer;
use super::config::Tasks;
use super::dialect::Sep2322;
use super::errors::{busy, too_many, unwritable};
use super::held::Held;
use super::kept_extension::KeptExtensions;
use super::lease::Lease;
use super::places::{Place, Places};
use super::renewal::Renewals;
use super::resting::Resting;
use super::resume::Resume;
use super::run::Run;
use super::validity::TwoClocks;
use super::waiting::Waiters;
use crate::server::clock::random;
use crate::server::limits::{Admission, Weight};
use crate::server::notify::status::StatusSlot;
use crate::server::notify::subscription::Hub;
use crate::server::run::commitment::Commitment;
use crate::server::run::runner::Runner;
use crate::task::{
    Millis, NewTask, Record, StoredView, TaskCall, TaskId, TaskKey, TaskOwner, TaskStoreError,
    TaskStoreHandle,
};

/// The tasks of a started server.
pub(crate) struct TaskService {
    pub(super) store: TaskStoreHandle,
    /// Digest of the server's audience.
    pub(super) service: Digest,
    pub(crate) ttl: Duration,
    per_caller: usize,
    pub(super) lease: Duration,
    pub(super) places: Arc<Places>,
    pub(super) renewals: Arc<Renewals>,
    pub(super) resting: Resting,
    /// The server, which is dropped before this ends.
    pub(super) resume: OnceLock<Weak<dyn Resume>>,
    pub(super) works: OnceLock<()>,
    pub(super) wake: Notify,
    pub(super) admission: Arc<Admission>,
    pub(super) hub: Arc<Hub>,
    pub(super) announcer: Announcer,
    /// True while tasks of an earlier release may be there.
    pub(super) adopts: AtomicBool,
    /// Requests that wait for a task to change.
    pub(super) waiters: Waiters,
    /// Requests that may speak SEP-2322's dialect.
    pub(crate) sep_2322: Sep2322,
    /// Extensions of a request that are stored with its task.
    pub(crate) extensions: KeptExtensions,
}

/// A task to be created.
pub(super) struct Creation<'a> {
    pub(super) tool: String,
    pub(super) kind: Digest,
    pub(super) call: &'a TaskCall,
    pub(super) flow: Option<FlowId>,
    /// First piece of its journal.
    pub(super) journal: Option<Vec<u8>>,
    pub(super) owner: TaskOwner,
    pub(super) account: Digest,
    pub(super) ttl: Duration,
    /// OAuth client that its answers have to come from.
    pub(super) client: Option<Digest>,
    /// True if this process runs it from the start.
    pub(super) is_held: bool,
}

/// A task that was created.
pub(super) struct Created {
    pub(super) key: TaskKey,
    pub(super) view: StoredView,
    held: Held,
    sent: TwoClocks,
}

impl TaskService {
    pub(crate) fn new(
        tasks: Tasks,
        service: Digest,
        admission: &Arc<Admission>,
        hub: &Arc<Hub>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: tasks.store,
            service,
            ttl: tasks.ttl,
            per_caller: tasks.per_caller,
            lease: tasks.lease,
            places: Places::new(tasks.at_once),
            renewals: Renewals::new(tasks.lease),
            resting: Resting::default(),
            resume: OnceLock::new(),
            works: OnceLock::new(),
            wake: Notify::new(),
            admission: Arc::clone(admission),
            hub: Arc::clone(hub),
            announcer: Announcer::new(hub),
            adopts: AtomicBool::new(true),
            waiters: Waiters::default(),
            sep_2322: tasks.sep_2322,
            extensions: tasks.extensions,
        })
    }

    /// Returns whether the server is still there.
    pub(super) fn has_server(&self) -> bool {
        self.resume.get().is_some_and(|server| server.strong_count() > 0)
    }

    /// Has the workers look for tasks that are due.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Returns a slot for a call that becomes a task, if one is free.
    pub(super) fn slot(&self, account: Digest) -> Option<Place> {
        self.places.take_new(account)
    }

    /// Returns the key of a task of this service.
    pub(super) fn key(&self, owner: TaskOwner, id: TaskId) -> TaskKey {
        TaskKey { service: self.service, owner, id }
    }

    /// Returns a task as a client reads it.
    pub(super) async fn view(
        &self,
        key: &TaskKey,
        with_result: bool,
    ) -> Result<Option<StoredView>, ErrorObject> {
        let read = async || self.store.0.view(key, with_result, Millis::now()).await;
        let adopts = self.adopts();
        let found = match read().await {
            Ok(None) if adopts && self.adopt_one(key).await.map_err(|error| busy(&error))? => read().await,
            found => found,
        };
        found.map_err(|error| busy(&error))
    }

    /// Creates a task durably. The call that becomes it is committed from when the store has the task, which may add it though no
    /// call waits for that any more.
    pub(super) async fn create(
        &self,
        new: Creation<'_>,
        commitment: &Commitment,
    ) -> Result<Created, ErrorObject> {
        let Creation { tool, kind, call, flow, journal, owner, account, ttl, client, is_held } = new;
        // The lease counts from before the time that is written.
        let (id, sent, now) = (TaskId::new(random()?), TwoClocks::now(), Millis::now());
        let flow = match flow {
            Some(flow) => flow,
            None => FlowId::new(random()?),
        };
        let record = Record::new(tool, flow, now, Some(ttl)).answered_by(client);
        let key = self.key(owner, id);
        let (view, work) = record.write(&key.id).map_err(|error| unwritable(&error))?;
        let call = serde_json::to_vec(call).map_err(|error| unwritable(&error))?;
        let task = NewTask {
            key: key.clone(),
            account,
            kind,
            lease: is_held.then_some(self.lease),
            expires: record.expires(),
            call: call.into(),
            view: view.clone(),
            work,
            journal: journal.map(Into::into),
        };
        let held = Held::new(0, record, task.journal.iter().map(bytes::Bytes::len));
        commitment.set(true);
        let created = self.store.0.create(task, self.per_caller, now).await;
        commitment.set(created.is_ok());
        match created {
            Ok(()) => {
                let view = StoredView { view, result: None, kind, is_waiting: false };
                Ok(Created { key, view, held, sent })
            }
            Err(TaskStoreError::TooMany) => Err(too_many(self.per_caller)),
            Err(error) => Err(busy(&error)),
        }
    }

    /// Continues with a task in this process that it has just created. Its slot, and the room for its message, are held until its
    /// run ends.
    pub(super) fn run(
        self: &Arc<Self>,
        created: Created,
        (runner, status): (Runner, Arc<StatusSlot>),
        held: (Place, Weight),
    ) {
        let lease = self.lease_of((created.key, 1), created.held, created.sent);
        // Renewed from here on: its task may have to wait for a thread.
        let renewed = self.renewals.add(&lease, &self.store);
        let run = Run { hub: Arc::clone(&self.hub), lease, runner, status, was_left: false };
        tokio::spawn(Arc::clone(self).attended(run, renewed, held));
    }

    pub(super) fn lease_of(&self, key: (TaskKey, u64), held: Held, sent: TwoClocks) -> Arc<Lease> {
        let own = (Arc::clone(&self.admission), self.renewals.poke());
        Lease::new(self.store.clone(), key, held, (sent, self.lease), own)
    }
}

impl fmt::Debug for TaskService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskService").field("running", &self.renewals.len()).finish_non_exhaustive()
    }
}
