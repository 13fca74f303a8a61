//! Workers: take tasks that are due, and run them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use roundtrip_core::seal::Digest;
use roundtrip_core::wire::json;
use tokio::time::sleep;
use tracing::Instrument as _;

use super::held::Held;
use super::places::Place;
use super::renewal::Renewed;
use super::resume::{NotResumed, Resumed};
use super::run::{Ran, Run};
use super::service::TaskService;
use super::validity::TwoClocks;
use crate::server::limits::Weight;
use crate::server::outcome::caught;
use crate::task::{
    ChangedTask, Due, Ended, Millis, Record, TakeRequest, TakenTask, TaskCall, TaskKey, TaskStoreError,
    TaskWork, Waiting,
};

/// Most accounts that are read at once.
const ACCOUNTS: usize = 64;
/// Most looks for accounts in one turn.
const MOST_LOOKS: usize = 64;
/// Time after which the store is polled, even if it has announced nothing.
const IDLE: Duration = Duration::from_secs(1);
/// Most times that the description of a task which cannot be run is written against changes of others.
const TRIES: usize = 10;

/// Takes tasks for as long as the server is there. A store is the author's code: one that panics costs one turn (Z1).
pub(super) async fn work(service: Weak<TaskService>) {
    let mut looks = Looks::default();
    while let Some(service) = service.upgrade().filter(|service| service.has_server()) {
        let turn = async {
            service.take(&mut looks).await;
            tokio::select! {
                () = service.wake.notified() => {}
                () = sleep(IDLE) => {}
            }
        };
        if caught(turn).await.is_none() {
            tracing::error!("the task store panicked, and is asked again for tasks that are due");
            sleep(IDLE).await;
        }
    }
}

/// Hears of changes for as long as the server is there. Nothing here waits for the store: its own changes come one after the other.
pub(super) async fn hear(service: Weak<TaskService>) {
    let mut changes = None;
    while let Some(own) = service.upgrade().filter(|service| service.has_server()) {
        let changes = changes.get_or_insert_with(|| own.store.0.changes());
        let heard = caught(async {
            tokio::select! {
                change = changes.next() => Some(change),
                () = sleep(IDLE) => None,
            }
        });
        match heard.await {
            Some(Some(Some(changed))) => own.changed(&changed),
            Some(Some(None)) => own.any_changed(),
            Some(None) => {}
            None => {
                tracing::error!("the task store panicked, and is asked again for changes");
                drop(own);
                sleep(IDLE).await;
            }
        }
    }
}

/// Place where the last look for tasks has ended, and what it has reported.
#[derive(Default)]
struct Looks {
    /// Beginning of the next look: no account is always the first.
    after: Option<Waiting>,
    /// Kinds that wait here and cannot be run.
    foreign: HashSet<Digest>,
}

impl Looks {
    /// Reports tasks that nobody here can run, once.
    fn report(&mut self, kind: Digest) {
        if self.foreign.insert(kind) {
            tracing::warn!(
                %kind,
                "tasks wait for a process that has their tool in their version: this one has not, and leaves them to others"
            );
        }
    }
}

impl TaskService {
    /// Notifies the worker of a task, if it is of this process, that the task has changed: a client may have cancelled it elsewhere.
    /// Notifies its watchers too.
    fn changed(&self, ChangedTask { id, version, is_due }: &ChangedTask) {
        if let Some(lease) = self.renewals.get(id) {
            lease.changed(*version);
        }
        self.waiters.wake(id);
        self.announcer.changed(id);
        if *is_due {
            self.wake();
        }
    }

    /// Has the workers search for due tasks, if some may wait for a slot.
    fn slot_freed(&self) {
        if self.places.is_wanted() {
            self.wake();
        }
    }

    fn any_changed(&self) {
        self.waiters.wake_all();
        self.renewals.all().iter().for_each(|lease| lease.poll());
        self.announcer.any_changed();
        self.wake();
    }

    /// Takes tasks that are due, as long as there are slots for them.
    async fn take(self: &Arc<Self>, looks: &mut Looks) {
        let Some(kinds) = self.server().map(|server| server.kinds()) else { return };
        self.places.begin_search();
        for _ in 0..MOST_LOOKS {
            if self.places.free() == 0 || self.admission.is_draining() {
                return;
            }
            let Some((waiting, are_all)) = self.look(looks, &kinds).await else { return };
            if self.take_from(waiting).await.is_none() {
                return;
            }
            if are_all {
                return self.places.end_search();
            }
        }
    }

    /// Returns accounts whose tasks this process can run, from where the last look has ended on: all there are, or enough that every
    /// free slot can go to one with no task running here. Returns whether these are all.
    async fn look(&self, looks: &mut Looks, kinds: &[Digest]) -> Option<(Vec<Waiting>, bool)> {
        let (start, mut own) = (looks.after.take(), Vec::new());
        let (mut after, mut is_behind) = (start, start.is_some());
        loop {
            let found = self.store.0.waiting(&self.service, kinds, after, ACCOUNTS, Millis::now()).await;
            let page = self.answered(found)?;
            let (is_end, last) = (page.len() < ACCOUNTS, page.last().copied());
            for waiting in page {
                // All in front of the start come last.
                if !is_behind && start.is_some_and(|start| waiting > start) {
                    return Some((own, true));
                }
                if kinds.binary_search(&waiting.kind).is_ok() {
                    own.push(waiting);
                } else {
                    looks.report(waiting.kind);
                }
            }
            match (is_end, is_behind) {
                (true, true) => (after, is_behind) = (None, false),
                (true, false) => return Some((own, true)),
                (false, _) => after = last,
            }
            if !is_end && self.places.idle(&own) >= self.places.free() {
                looks.after = last;
                return Some((own, false));
            }
        }
    }

    /// Takes tasks of these accounts for as long as there are slots, and returns how many.
    async fn take_from(self: &Arc<Self>, mut waiting: Vec<Waiting>) -> Option<usize> {
        let mut number = 0;
        loop {
            self.resting.retain(&mut waiting);
            let wanted = self.places.plan(&waiting);
            if wanted.is_empty() {
                // All slots are taken, or nothing here is due.
                self.places.set_waiting(waiting.iter().map(|waiting| waiting.account));
                return Some(number);
            }
            let mut missing: HashMap<Waiting, usize> = wanted.iter().copied().collect();
            for waiting in self.take_once(&wanted).await? {
                number += 1;
                missing.entry(waiting).and_modify(|missing| *missing = missing.saturating_sub(1));
            }
            // What else of these is due rests here: their slots are for others.
            waiting.retain(|waiting| missing.get(waiting).is_none_or(|missing| *missing == 0));
        }
    }

    /// Takes tasks, and returns the kind and the account of each.
    async fn take_once(self: &Arc<Self>, wanted: &[(Waiting, usize)]) -> Option<Vec<Waiting>> {
        let (service, except, lease) = (&self.service, &self.resting.now()[..], self.lease);
        // Held from here on: a call that becomes a task meanwhile must not have a slot that a taken task needs.
        let (wanted, mut slots) = self.places.reserve(wanted);
        let taking = self.renewals.poke().taking();
        let sent = TwoClocks::now();
        let request = TakeRequest { service, wanted: &wanted, except, lease };
        let taken = self.answered(self.store.0.take(request, Millis::now()).await)?;
        let of = |task: &TakenTask| Waiting { kind: task.kind, account: task.account };
        let all = taken.iter().map(of).collect();
        for task in taken {
            // A process that finds its own task due continues: it was not renewed in time, and nobody else has had it.
            // A task that it has just given back was taken from nobody: that run is over, though it may not have heard so yet.
            let running = self.renewals.get(&task.key.id).filter(|_| task.lease_expired);
            if running.is_some_and(|running| running.retake(task.fence, sent)) {
                tracing::warn!(task = %task.key.id, "the lease on a task had expired, and is this process's again");
                continue;
            }
            let slot = slots.get_mut(&task.account).and_then(Vec::pop);
            tokio::spawn(Arc::clone(self).resumed(task, sent, slot));
        }
        drop(taking);
        Some(all)
    }

    fn answered<T>(&self, answer: Result<T, TaskStoreError>) -> Option<T> {
        answer
            .inspect_err(|error| {
                tracing::error!(error = error as &dyn std::error::Error, "no task can be taken");
            })
            .ok()
    }

    /// Runs a task that was taken, if there is a slot and room for it.
    async fn resumed(self: Arc<Self>, task: TakenTask, sent: TwoClocks, slot: Option<Place>) {
        if !self.admission.could_weigh(task.size) {
            let why = format!("it needs a process with room for {} bytes (`Limits::call_bytes`)", task.size);
            return self.leave(&task.key, task.fence, &why).await;
        }
        let weight = self.admission.weigh_task(task.account, task.size);
        let (Some(slot), Some(weight)) = (slot, weight) else {
            return self.wait_for_room(&task).await;
        };
        match caught(self.prepared(&task, sent)).await {
            Some(Ok((run, renewed))) => Arc::clone(&self).attended(run, renewed, (slot, weight)).await,
            Some(Err(NotRun::Gone)) => {}
            Some(Err(NotRun::Misfit(why))) => self.leave(&task.key, task.fence, &why).await,
            // The task is due again when its lease has expired.
            None => tracing::error!(task = %task.key.id, "the task store panicked"),
        }
        self.slot_freed();
    }

    /// Reads a task that was taken, and prepares its run.
    async fn prepared(&self, task: &TakenTask, sent: TwoClocks) -> Result<(Run, Renewed), NotRun> {
        let stored = self.store.0.load(&task.key).await?.ok_or(NotRun::Gone)?;
        if stored.fence != task.fence {
            return Err(NotRun::Gone);
        }
        let TaskWork { version, work, call, journal, .. } = stored;
        let held = Held::new(version, Record::read(&work)?, journal.iter().map(bytes::Bytes::len));
        let lease = self.lease_of((task.key.clone(), task.fence), held, sent);
        // Known before the handler runs: a change may be a cancellation of this task.
        let renewed = self.renewals.add(&lease, &self.store);
        let call: TaskCall = json::from_slice(&call)?;
        let server = self.server().ok_or(NotRun::Gone)?;
        let resumed = lease
            .with(|record| {
                server.resume(&Resumed { kind: task.kind, record, call: &call, journal: &journal })
            })
            .await;
        drop(server);
        match resumed {
            Ok((runner, status)) => {
                let was_left = lease.begin().await;
                Ok((Run { hub: Arc::clone(&self.hub), lease, runner, status, was_left }, renewed))
            }
            Err(NotResumed::Misfit(why)) => Err(NotRun::Misfit(why)),
            Err(NotResumed::Failed(error)) => {
                lease.end(|| Ended::Failed(error.clone())).await;
                Err(NotRun::Gone)
            }
        }
    }

    /// Runs a task to its end, or to its next question.
    pub(super) async fn attended(self: Arc<Self>, run: Run, renewed: Renewed, held: (Place, Weight)) {
        let lease = Arc::clone(&run.lease);
        // A process that stops waits for its workers, which give their tasks back.
        let claimed = self.admission.claimed();
        let span = tracing::info_span!("task", id = %lease.id());
        // A store that panics has failed for this run; the task is due again when its lease has expired.
        let ran = caught(run.drive().instrument(span)).await.unwrap_or(Ran::Ended);
        drop(renewed);
        match &ran {
            Ran::Misfit(why) => self.leave(lease.key(), lease.fence(), why).await,
            Ran::Ended | Ran::Waits(_) => self.resting.forget(lease.id()),
        }
        drop((held, claimed));
        self.slot_freed();
        if let Ran::Waits(pause) = ran
            && !pause.is_zero()
        {
            sleep(pause).await;
            self.wake();
        }
    }

    /// Gives a task back that there is no room for now.
    async fn wait_for_room(&self, task: &TakenTask) {
        if self.resting.wait(&task.key.id, task.account) {
            self.give_back(&task.key, task.fence).await;
        }
    }

    async fn give_back(&self, key: &TaskKey, fence: u64) {
        let given = self.store.0.give_back(key, fence, Millis::now()).await;
        // Otherwise it is due again when the lease has expired.
        drop(given.inspect_err(|error| {
            tracing::error!(error = error as &dyn std::error::Error, task = %key.id, "a task cannot be given back");
        }));
    }

    /// Leaves a task to other processes: this one cannot run it (T16). What it waits for is in its description, and in the log.
    async fn leave(&self, key: &TaskKey, fence: u64, why: &str) {
        let is_resting = self.resting.leave(&key.id);
        let due = if is_resting { Due::After(Duration::ZERO) } else { Due::AsBefore };
        for _ in 0..TRIES {
            let stored = match self.store.0.read(key, Millis::now()).await {
                Ok(Some(stored)) if stored.fence == fence => stored,
                _ => break,
            };
            let Ok(mut record) = Record::read(&stored.work) else { break };
            let now = Millis::now();
            if record.is_cancelled() {
                // No handler has to hear of it.
                record.end(&Ended::Cancelled, now);
            } else if record.has_ended() || !record.leave(why, now) {
                break;
            } else {
                tracing::warn!(task = %key.id, tool = record.tool(), why, "a task is left to other processes");
            }
            let Ok(change) = record.change(key, stored.version, due) else { break };
            match self.store.0.write(change, now).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => break,
            }
        }
        if is_resting {
            self.give_back(key, fence).await;
        }
    }
}

/// Reason why a task that was taken is not run.
enum NotRun {
    /// It has ended, or another worker has it; or the store fails, and it is due again when its lease has expired.
    Gone,
    /// This process cannot run it.
    Misfit(String),
}

impl From<TaskStoreError> for NotRun {
    fn from(error: TaskStoreError) -> Self {
        match error {
            // The store has logged it.
            TaskStoreError::Unreadable(_) => Self::Misfit("what is stored cannot be opened".to_owned()),
            error => {
                tracing::error!(error = &error as &dyn std::error::Error, "a task cannot be read");
                Self::Gone
            }
        }
    }
}

impl From<serde_json::Error> for NotRun {
    fn from(error: serde_json::Error) -> Self {
        tracing::error!(%error, "a task cannot be read");
        Self::Misfit("what is stored is of another version".to_owned())
    }
}
