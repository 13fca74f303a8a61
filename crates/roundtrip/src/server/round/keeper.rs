//! [`Keeper`]: keeps the journal of a round that is run in a task.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use roundtrip_core::seal::BoxFuture;
use roundtrip_core::wire::InputRequest;

/// A task that a round is run in: it keeps the journal in its store, where other rounds keep it in `requestState`.
pub(crate) trait Keeper: fmt::Debug + Send + Sync {
    /// Stores the journal as it is. Returns whether the handler is to go on; the worker drops one that is not.
    fn keep(self: Arc<Self>, round: Arc<dyn Snapshot>) -> BoxFuture<'static, bool>;

    /// Takes the journal and the questions of a round that has ended without a result, to be stored.
    fn park(&self, parked: ParkedRound);
}

/// A round that has ended without a result, for the store of its task.
#[derive(Debug)]
pub(crate) struct ParkedRound {
    /// The journal, encoded.
    pub(crate) journal: Vec<u8>,
    /// Keys and questions, in the order they were asked.
    pub(crate) asked: Vec<(Cow<'static, str>, InputRequest)>,
    /// True if the handler asks nothing, and has not stopped at a checkpoint: it waits for something outside.
    pub(crate) waits: bool,
    /// True if the round has begun a step.
    pub(crate) stepped: bool,
}

/// A round whose journal can be read while it runs.
pub(crate) trait Snapshot: Send + Sync {
    /// Returns the journal as it is, encoded. Questions that wait are not part of it: the handler asks them again.
    fn snapshot(&self) -> Vec<u8>;
}

/// Whether a call can become a task, and is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detachment {
    /// It cannot, or it is one already.
    Impossible,
    /// It can.
    Possible,
    /// Its handler waits until it is one.
    Wanted,
}
