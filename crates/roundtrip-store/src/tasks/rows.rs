//! [`Rows`]: the statements of a database that keeps tasks.

use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::Digest;
use roundtrip::task::{
    AdoptedTask, ChangedTask, Chunk, ExpiredTask, LeaseRenewer, Millis, NewTask, OrphanTask, StoredTask,
    StoredView, TakenTask, TaskChange, TaskId, TaskKey, TaskOwner, TaskWork, Waiting,
};

use super::seal::Reseal;
use crate::StoreError;

/// Milliseconds after its end for which a task without a service that has not ended may still be adopted.
pub(crate) const ORPHAN_GRACE: i64 = 60_000;

/// Answer of a database.
pub(crate) type Answer<T> = Result<T, StoreError>;

/// Statements of a database. Each is atomic and one exchange, and may be repeated when its answer was lost. The bytes of tasks are
/// sealed. A database that machines share has a clock, and ignores `now`.
pub(crate) trait Rows: Send + Sync + 'static {
    /// Adds a task, unless it is there. False if its account has `most` live tasks.
    fn create(&self, task: &NewTask, most: usize, now: Millis) -> impl Future<Output = Answer<bool>> + Send;

    /// Returns the view of a task, with its result if that is asked for.
    fn view(
        &self,
        key: &TaskKey,
        with_result: bool,
        now: Millis,
    ) -> impl Future<Output = Answer<Option<StoredView>>> + Send;

    /// Returns what clients and workers change of a task.
    fn read(&self, key: &TaskKey, now: Millis) -> impl Future<Output = Answer<Option<StoredTask>>> + Send;

    /// Returns a live task as its worker needs it, and apart from it the pieces of its journal in order.
    fn load(&self, key: &TaskKey) -> impl Future<Output = Answer<Option<(TaskWork, Vec<Chunk>)>>> + Send;

    /// Returns pieces of a task's result, from the one that holds this part on.
    fn parts(&self, key: &TaskKey, from: u32, most: usize)
    -> impl Future<Output = Answer<Vec<Chunk>>> + Send;

    /// Changes a task of this version, and gives it the next.
    fn write(&self, change: &TaskChange, now: Millis) -> impl Future<Output = Answer<bool>> + Send;

    /// Adds pieces to the journal of a task that is held under this fence, and returns whether it is.
    fn append(
        &self,
        key: &TaskKey,
        fence: u64,
        pieces: &[Chunk],
    ) -> impl Future<Output = Answer<bool>> + Send;

    /// Returns the next kinds and accounts that have tasks, of free tasks and of those that a worker has.
    fn pairs(&self, search: &PairSearch, now: Millis) -> impl Future<Output = Answer<Vec<Pair>>> + Send;

    /// Takes tasks that are due. If its answer was lost, they are due again when the lease ends.
    fn take(&self, wish: &Wish, now: Millis) -> impl Future<Output = Answer<Vec<TakenTask>>> + Send;

    /// Makes a task that is held under this fence due at once, and returns its version.
    fn give_back(
        &self,
        key: &TaskKey,
        fence: u64,
        now: Millis,
    ) -> impl Future<Output = Answer<Option<u64>>> + Send;

    /// Returns a handle with a connection that is opened where it is used.
    fn renewer(&self) -> Box<dyn LeaseRenewer>;

    /// Returns tasks that have expired.
    fn expired(
        &self,
        service: &Digest,
        now: Millis,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<ExpiredTask>>> + Send;

    /// Removes tasks of these versions.
    fn remove(&self, service: &Digest, tasks: &[(TaskId, u64)]) -> impl Future<Output = Answer<()>> + Send;

    /// Returns views of an owner's tasks, in the order of their identifiers.
    fn list(
        &self,
        service: &Digest,
        owner: &TaskOwner,
        after: Option<&TaskId>,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<(TaskId, Bytes)>>> + Send;

    /// Returns tasks without a service, in the order of their identifiers, without their bytes.
    fn orphans(
        &self,
        after: Option<&TaskId>,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<OrphanTask>>> + Send;

    /// Returns an owner's task without a service.
    fn orphan(
        &self,
        owner: &TaskOwner,
        id: &TaskId,
    ) -> impl Future<Output = Answer<Option<OrphanTask>>> + Send;

    /// Removes tasks without a service that have ended and expired, or have not ended and expired [`ORPHAN_GRACE`] ago. Returns how
    /// many.
    fn remove_orphans(&self, now: Millis, most: usize) -> impl Future<Output = Answer<usize>> + Send;

    /// Gives an orphan of this version to a service, and the next version.
    fn adopt(&self, task: &AdoptedTask) -> impl Future<Output = Answer<bool>> + Send;

    /// Replaces stored bytes with the same ones, sealed anew.
    fn reseal(&self, stale: &[Reseal]) -> impl Future<Output = Answer<()>> + Send;

    /// Tells other instances of a change, where they do not find it by themselves.
    fn tell(&self, task: &ChangedTask);
}

/// Search for kinds and accounts that have tasks.
#[derive(Debug, Clone)]
pub(crate) struct PairSearch {
    pub(crate) service: Digest,
    /// Kinds of interest, sorted. Of any other, the first pair is enough, due or not.
    pub(crate) kinds: Vec<Digest>,
    /// Pair behind which to begin.
    pub(crate) after: Option<Waiting>,
    /// Most pairs that are looked at, of free tasks and of held ones each.
    pub(crate) steps: usize,
    /// Most pairs that are due, of free tasks and of held ones each.
    pub(crate) due: usize,
}

/// Kind and account of tasks that are free, or of tasks that a worker has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) held: bool,
    pub(crate) waiting: Waiting,
    /// True if the first of the tasks is due.
    pub(crate) is_due: bool,
}

/// Tasks that a worker asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) service: Digest,
    pub(crate) wanted: Vec<(Waiting, usize)>,
    pub(crate) except: Vec<TaskId>,
    pub(crate) lease: Duration,
}
