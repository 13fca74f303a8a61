//! Rows of a task store, and changes to them. Their bytes mean nothing to the store.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::seal::Digest;

use super::{Millis, TaskId, TaskOwner};

/// Key of a task: the service that it belongs to, its owner, and its identifier. A request finds a task only with all three.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskKey {
    /// Digest of the audience of the server that created it.
    pub service: Digest,
    /// Owner.
    pub owner: TaskOwner,
    /// Identifier, which no other task of any service has.
    pub id: TaskId,
}

/// Numbered piece of a task's journal, or of its result. A piece is added once and never changes.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Number. Pieces of a journal are counted from 0; a piece of a result has the number of its first part.
    pub number: u32,
    /// Bytes.
    pub bytes: Bytes,
}

/// New task.
#[derive(Clone)]
pub struct NewTask {
    /// Key.
    pub key: TaskKey,
    /// Account that it counts against as long as it is live.
    pub account: Digest,
    /// Kind: the digest of what can run it.
    pub kind: Digest,
    /// Length of the lease of the process that creates it. Without one, any worker may take it at once.
    pub lease: Option<Duration>,
    /// Time from which it is listed by [`TaskStore::expired`](super::TaskStore::expired).
    pub expires: Option<Millis>,
    /// The call. It never changes, and is removed when the task ends.
    pub call: Bytes,
    /// The task as clients see it, without its result.
    pub view: Bytes,
    /// Questions and answers.
    pub work: Bytes,
    /// First piece of the journal.
    pub journal: Option<Bytes>,
}

/// Part of a task that clients and workers change.
#[derive(Clone)]
pub struct StoredTask {
    /// Key.
    pub key: TaskKey,
    /// Number of the last change.
    pub version: u64,
    /// Number of times that a worker has taken it.
    pub fence: u64,
    /// True while a worker has a lease on it that has not expired.
    pub is_held: bool,
    /// The task as clients see it, without its result.
    pub view: Bytes,
    /// Questions and answers.
    pub work: Bytes,
}

/// Time at which a task is due for a worker, once it has been changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The time it had: a worker that has it keeps it.
    AsBefore,
    /// Never: nothing is left to do. No worker has it.
    Never,
    /// After this time. No worker has it.
    After(Duration),
}

/// Change of a task.
#[derive(Clone)]
pub struct TaskChange {
    /// Key.
    pub key: TaskKey,
    /// Version that it replaces.
    pub version: u64,
    /// Time at which it is due.
    pub due: Due,
    /// False if it has ended: its call and its journal are removed.
    pub is_live: bool,
    /// Time from which it is listed by [`TaskStore::expired`](super::TaskStore::expired).
    pub expires: Option<Millis>,
    /// The task as clients see it, without its result.
    pub view: Bytes,
    /// Questions and answers.
    pub work: Bytes,
    /// Its result, or its error, if this change ends it.
    pub result: Option<Bytes>,
    /// New pieces of its journal. One that is there already is left as it is.
    pub journal: Vec<Chunk>,
    /// True if these take the place of all pieces of its journal.
    pub replaces_journal: bool,
    /// New pieces of its result. One that is there already is left as it is.
    pub parts: Vec<Chunk>,
}

/// Task that was created, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTask {
    /// Identifier.
    pub id: TaskId,
    /// Number of the change.
    pub version: u64,
    /// False if the change leaves nothing for a worker to take: the task is held, waits for an answer, has ended, or is gone. Workers
    /// search the store for due tasks only after the other changes.
    pub is_due: bool,
}

impl TaskChange {
    /// Returns whether a worker can take the task once this change is stored.
    pub fn makes_due(&self) -> bool {
        self.is_live && matches!(self.due, Due::After(_))
    }
}

/// Task as a client reads it.
#[derive(Clone)]
pub struct StoredView {
    /// The task as clients see it, without its result.
    pub view: Bytes,
    /// Its result or its error, if it was asked for and there is one.
    pub result: Option<Bytes>,
    /// Kind: the digest of what can run it.
    pub kind: Digest,
    /// True if it is due, and no worker has it.
    pub is_waiting: bool,
}

/// A task as its worker needs it.
#[derive(Clone)]
pub struct TaskWork {
    /// Version of the task.
    pub version: u64,
    /// Number of its leases so far.
    pub fence: u64,
    /// Its state.
    pub work: Bytes,
    /// The call.
    pub call: Bytes,
    /// All pieces of the journal, in order.
    pub journal: Vec<Bytes>,
}

/// Account with tasks of one kind that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiting {
    /// Kind of the tasks.
    pub kind: Digest,
    /// Account.
    pub account: Digest,
}

impl Waiting {
    /// The pair that sorts before all others.
    pub(super) const FIRST: Self =
        Self { kind: Digest::from_bytes([0; Digest::LEN]), account: Digest::from_bytes([0; Digest::LEN]) };

    /// Returns the pair behind which a search for these kinds continues: of a kind that is not among them, one pair is enough.
    pub(super) fn or_last_of_other(self, kinds: &[Digest]) -> Self {
        match kinds.binary_search(&self.kind) {
            Ok(_) => self,
            Err(_) => Self { account: Digest::from_bytes([u8::MAX; Digest::LEN]), ..self },
        }
    }
}

/// Tasks that a worker asks for.
#[derive(Debug, Clone, Copy)]
pub struct TakeRequest<'a> {
    /// Service of the worker.
    pub service: &'a Digest,
    /// Kinds and accounts, each with the most tasks that are wanted.
    pub wanted: &'a [(Waiting, usize)],
    /// Tasks that are left alone.
    pub except: &'a [TaskId],
    /// Length of the leases.
    pub lease: Duration,
}

/// Task that a worker has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenTask {
    /// Key.
    pub key: TaskKey,
    /// Account that it counts against.
    pub account: Digest,
    /// Kind: the digest of what can run it.
    pub kind: Digest,
    /// Number of times that a worker has taken it, this one included: the worker's right to append and to renew.
    pub fence: u64,
    /// True if a worker had it, and its lease has expired.
    pub lease_expired: bool,
    /// Bytes of its call, its journal, its questions and its answers, as they are stored.
    pub size: usize,
}

/// Task whose time to live has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTask {
    /// Key.
    pub key: TaskKey,
    /// Number of the last change.
    pub version: u64,
    /// False if the task has ended.
    pub is_live: bool,
}

/// Task that an earlier release has stored, which knew no services.
#[derive(Clone)]
pub struct OrphanTask {
    /// Identifier.
    pub id: TaskId,
    /// Owner.
    pub owner: TaskOwner,
    /// Number of the last change.
    pub version: u64,
    /// The task as clients saw it, with its result; empty in a list.
    pub view: Bytes,
    /// The call, the journal and the answers; empty in a list.
    pub work: Bytes,
}

/// Orphan in today's form. Its account, its lease and its times stay as they are.
#[derive(Clone)]
pub struct AdoptedTask {
    /// Key, with the service that adopts it.
    pub key: TaskKey,
    /// Version of the orphan.
    pub version: u64,
    /// Kind: the digest of what can run it.
    pub kind: Digest,
    /// The call; empty if it has ended.
    pub call: Bytes,
    /// The task as clients see it, without its result.
    pub view: Bytes,
    /// Questions and answers.
    pub work: Bytes,
    /// Its result or its error.
    pub result: Option<Bytes>,
    /// The journal, as its first piece.
    pub journal: Option<Bytes>,
    /// The parts of its result, as their first piece.
    pub parts: Option<Bytes>,
}

/// Implements `Debug` without the bytes: they do not belong into a log.
macro_rules! without_bytes {
    ($($row:ident { $($field:ident),* })*) => {$(
        impl fmt::Debug for $row {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($row))$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }
    )*};
}

without_bytes! {
    Chunk { number }
    NewTask { key, kind, lease, expires }
    StoredTask { key, version, fence, is_held }
    TaskChange { key, version, due, is_live, expires }
    StoredView { kind, is_waiting }
    TaskWork {}
    OrphanTask { id, version }
    AdoptedTask { key, version, kind }
}
