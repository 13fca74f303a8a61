//! Tables of tasks in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::Digest;

use crate::budget::{Budget, Reservation};
use crate::task::rows::{Chunk, Due, NewTask, TakenTask, TaskChange, TaskKey, Waiting};
use crate::task::{Millis, TaskId, TaskOwner, TaskStoreError};

/// Bytes that a task takes besides its own.
const OVERHEAD: usize = 512;
/// Bytes that a piece takes besides its own.
const PIECE: usize = 64;

/// A task.
pub(super) struct Row {
    pub(super) key: TaskKey,
    pub(super) account: Digest,
    pub(super) kind: Digest,
    pub(super) version: u64,
    pub(super) fence: u64,
    pub(super) held: bool,
    pub(super) is_live: bool,
    pub(super) due: Option<Millis>,
    pub(super) expires: Option<Millis>,
    pub(super) view: Bytes,
    pub(super) work: Bytes,
    pub(super) call: Bytes,
    pub(super) result: Option<Bytes>,
    pub(super) journal: BTreeMap<u32, Bytes>,
    pub(super) parts: BTreeMap<u32, Bytes>,
    bytes: Reservation<Digest>,
}

impl Row {
    fn size(&self) -> usize {
        let pieces = self.journal.values().chain(self.parts.values()).map(|piece| PIECE + piece.len());
        let result = self.result.as_ref().map_or(0, Bytes::len);
        OVERHEAD + self.view.len() + self.work.len() + self.call.len() + result + pieces.sum::<usize>()
    }

    fn waits_as(&self) -> Waiting {
        Waiting { kind: self.kind, account: self.account }
    }

    /// Returns whether a worker has a lease on it that has not expired.
    pub(super) fn is_held(&self, now: Millis) -> bool {
        self.held && self.due.is_some_and(|due| due > now)
    }

    /// Returns whether it is due, and no worker has it.
    pub(super) fn is_waiting(&self, now: Millis) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// All tasks, and the orders in which they are looked for.
pub(super) struct Tables {
    tasks: HashMap<TaskId, Row>,
    /// Identifiers of each owner's tasks. Only owners that have some.
    pub(super) owned: HashMap<(Digest, TaskOwner), BTreeSet<TaskId>>,
    /// Tasks that are due at some time, and that no worker has.
    free: BTreeSet<(Digest, Waiting, Millis, TaskId)>,
    /// Tasks that a worker has, by the ends of their leases.
    held: BTreeSet<(Digest, Millis, TaskId)>,
    pub(super) expires: BTreeSet<(Digest, Millis, TaskId)>,
    /// Number of live tasks of each account.
    live: HashMap<(Digest, Digest), usize>,
    /// Bytes of all tasks, by account.
    bytes: Arc<Budget<Digest>>,
}

impl Tables {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            tasks: HashMap::new(),
            owned: HashMap::new(),
            free: BTreeSet::new(),
            held: BTreeSet::new(),
            expires: BTreeSet::new(),
            live: HashMap::new(),
            bytes: Budget::new(most_bytes),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.held()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let indexes = self.free.is_empty() && self.held.is_empty() && self.expires.is_empty();
        self.tasks.is_empty() && self.owned.is_empty() && self.live.is_empty() && indexes
    }

    pub(super) fn get(&self, service: &Digest, id: &TaskId) -> Option<&Row> {
        self.tasks.get(id).filter(|row| row.key.service == *service)
    }

    pub(super) fn of(&self, key: &TaskKey) -> Option<&Row> {
        self.get(&key.service, &key.id).filter(|row| row.key.owner == key.owner)
    }

    fn enter(&mut self, mut row: Row) {
        let (service, id) = (row.key.service, row.key.id.clone());
        if let Some(due) = row.due {
            if row.held {
                self.held.insert((service, due, id.clone()));
            } else {
                self.free.insert((service, row.waits_as(), due, id.clone()));
            }
        }
        if let Some(expires) = row.expires {
            self.expires.insert((service, expires, id.clone()));
        }
        if row.is_live {
            *self.live.entry((service, row.account)).or_default() += 1;
        }
        self.owned.entry((service, row.key.owner)).or_default().insert(id.clone());
        // Room is taken before what is there is given back, so that another caller cannot have it in between.
        row.bytes = self.bytes.charge(&row.account, row.size());
        self.tasks.insert(id, row);
    }

    fn take_out(&mut self, id: &TaskId) -> Option<Row> {
        let row = self.tasks.remove(id)?;
        let (service, id) = (row.key.service, row.key.id.clone());
        if let Some(due) = row.due {
            self.held.remove(&(service, due, id.clone()));
            self.free.remove(&(service, row.waits_as(), due, id.clone()));
        }
        if let Some(expires) = row.expires {
            self.expires.remove(&(service, expires, id.clone()));
        }
        let account = (service, row.account);
        if let Some(live) = self.live.get_mut(&account).filter(|_| row.is_live) {
            *live -= 1;
            if *live == 0 {
                self.live.remove(&account);
            }
        }
        let owner = (service, row.key.owner);
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.remove(&id);
            if owned.is_empty() {
                self.owned.remove(&owner);
            }
        }
        Some(row)
    }

    /// Changes a task.
    fn change<T>(&mut self, id: &TaskId, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        let mut row = self.take_out(id)?;
        let changed = change(&mut row);
        self.enter(row);
        Some(changed)
    }

    /// Adds a task, unless it is there. Returns whether it was not.
    pub(super) fn create(&mut self, task: NewTask, most: usize, now: Millis) -> Result<bool, TaskStoreError> {
        if self.tasks.contains_key(&task.key.id) {
            return Ok(false);
        }
        let live = self.live.get(&(task.key.service, task.account));
        if live.copied().unwrap_or_default() >= most {
            return Err(TaskStoreError::TooMany);
        }
        let row = Row {
            account: task.account,
            kind: task.kind,
            version: 0,
            fence: u64::from(task.lease.is_some()),
            held: task.lease.is_some(),
            is_live: true,
            due: Some(now.plus(task.lease.unwrap_or_default())),
            expires: task.expires,
            view: task.view,
            work: task.work,
            call: task.call,
            result: None,
            journal: task.journal.map(|piece| (0, piece)).into_iter().collect(),
            parts: BTreeMap::new(),
            bytes: self.bytes.charge(&task.account, 0),
            key: task.key,
        };
        if !self.bytes.has_room(&row.account, row.size()) {
            return Err(TaskStoreError::Full);
        }
        self.enter(row);
        Ok(true)
    }

    /// Changes a task of this version. Returns its next version.
    pub(super) fn write(&mut self, change: TaskChange, now: Millis) -> Result<Option<u64>, TaskStoreError> {
        let Some(row) = self.of(&change.key).filter(|row| row.version == change.version) else {
            return Ok(None);
        };
        // A worker would try again until its lease ends, the next one after it, and what was not stored would be done each time.
        let is_answer = !row.held && change.is_live;
        let growth = (change.view.len() + change.work.len()).saturating_sub(row.view.len() + row.work.len());
        if is_answer && growth > 0 && !self.bytes.has_room(&row.account, growth) {
            return Err(TaskStoreError::Full);
        }
        let id = change.key.id.clone();
        Ok(self.change(&id, |row| {
            row.version += 1;
            (row.due, row.held) = match change.due {
                Due::AsBefore => (row.due, row.held),
                Due::Never => (None, false),
                Due::After(pause) => (Some(now.plus(pause)), false),
            };
            row.is_live = change.is_live;
            (row.expires, row.view, row.work) = (change.expires, change.view, change.work);
            row.result = change.result.or_else(|| row.result.take());
            if change.replaces_journal {
                row.journal.clear();
            }
            add(&mut row.journal, &change.journal);
            add(&mut row.parts, &change.parts);
            if !row.is_live {
                (row.due, row.held) = (None, false);
                (row.call, row.journal) = (Bytes::new(), BTreeMap::new());
            }
            row.version
        }))
    }

    /// Adds pieces to the journal of a task that is held under this fence.
    pub(super) fn append(&mut self, key: &TaskKey, fence: u64, pieces: &[Chunk]) -> bool {
        if self.of(key).is_none_or(|row| !row.held || row.fence != fence) {
            return false;
        }
        // Only bytes change: the row stays where it is in every order.
        if let Some(row) = self.tasks.get_mut(&key.id) {
            let growth = add(&mut row.journal, pieces);
            row.bytes.charge(growth);
        }
        true
    }

    /// Changes the lease on a task that is held under this fence. Returns its version.
    pub(super) fn lease(&mut self, id: &TaskId, fence: u64, due: Millis, held: bool) -> Option<u64> {
        self.tasks.get(id).filter(|row| row.held && row.fence == fence)?;
        self.change(id, |row| {
            // A renewal shortens no lease.
            let due = if held { row.due.map_or(due, |before| before.max(due)) } else { due };
            (row.due, row.held) = (Some(due), held);
            row.version
        })
    }

    /// Returns the next account with a task that is due, from behind a pair on. Of a kind that is not among these, the first account
    /// is looked at only.
    pub(super) fn next_waiting(
        &self,
        (service, kinds): (&Digest, &[Digest]),
        after: Option<Waiting>,
        now: Millis,
    ) -> Option<Waiting> {
        let mut behind = after;
        let free = loop {
            let from = behind.map_or((*service, Waiting::FIRST, Millis(0), TaskId::first()), |behind| {
                (*service, behind, Millis(u64::MAX), TaskId::last())
            });
            let next = self.free.range(from..).next().filter(|(own, ..)| own == service);
            match next {
                Some((_, waiting, due, _)) if *due > now => behind = Some(waiting.or_last_of_other(kinds)),
                Some((_, waiting, ..)) => break Some(*waiting),
                None => break None,
            }
        };
        let expired = self.expired_leases(service, now);
        let expired = expired.filter(|waiting| after.is_none_or(|after| *waiting > after)).min();
        free.into_iter().chain(expired).min()
    }

    /// Returns the accounts of tasks whose leases have expired.
    fn expired_leases(&self, service: &Digest, now: Millis) -> impl Iterator<Item = Waiting> {
        self.expired(service, now).filter_map(|(_, id)| Some(self.tasks.get(id)?.waits_as()))
    }

    /// Returns the tasks whose leases have expired.
    fn expired(&self, service: &Digest, now: Millis) -> impl Iterator<Item = (Millis, &TaskId)> {
        let range = (*service, Millis(0), TaskId::first())..=(*service, now, TaskId::last());
        self.held.range(range).map(|(_, due, id)| (*due, id))
    }

    /// Takes tasks of one kind and account that are due, those due longest first.
    pub(super) fn take(
        &mut self,
        (service, waiting, most): (&Digest, Waiting, usize),
        except: &HashSet<&TaskId>,
        (now, until): (Millis, Millis),
    ) -> Vec<TakenTask> {
        let range =
            (*service, waiting, Millis(0), TaskId::first())..=(*service, waiting, now, TaskId::last());
        let free = self.free.range(range).map(|(_, _, due, id)| (*due, id));
        let free = free.filter(|(_, id)| !except.contains(id)).take(most);
        let is_of = |id: &TaskId| self.tasks.get(id).is_some_and(|row| row.waits_as() == waiting);
        let expired = self.expired(service, now).filter(|(_, id)| is_of(id) && !except.contains(id));
        let mut due: Vec<(Millis, TaskId)> =
            free.chain(expired.take(most)).map(|(due, id)| (due, id.clone())).collect();
        due.sort_unstable();
        due.truncate(most);
        let take = |row: &mut Row| {
            let lease_expired = row.held;
            (row.due, row.held) = (Some(until), true);
            row.version += 1;
            row.fence += 1;
            let (key, account, kind, fence) = (row.key.clone(), row.account, row.kind, row.fence);
            let journal: usize = row.journal.values().map(Bytes::len).sum();
            let size = row.call.len() + row.work.len() + journal;
            TakenTask { key, account, kind, fence, lease_expired, size }
        };
        due.iter().filter_map(|(_, id)| self.change(id, take)).collect()
    }

    /// Removes a task of this version. Returns whether it was there.
    pub(super) fn remove(&mut self, service: &Digest, id: &TaskId, version: u64) -> bool {
        let is_there = self.get(service, id).is_some_and(|row| row.version == version);
        is_there && self.take_out(id).is_some()
    }
}

/// Adds pieces that are not there, and returns the bytes that they take.
fn add(pieces: &mut BTreeMap<u32, Bytes>, new: &[Chunk]) -> usize {
    let mut growth = 0;
    for Chunk { number, bytes } in new {
        if let Entry::Vacant(place) = pieces.entry(*number) {
            growth += PIECE + bytes.len();
            place.insert(bytes.clone());
        }
    }
    growth
}
