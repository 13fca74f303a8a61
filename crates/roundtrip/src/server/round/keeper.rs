//! [`Keeper`]: keeps the journal of a round that is run in a task.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use roundtrip_core::round::{LastPiece, Pin};
use roundtrip_core::seal::BoxFuture;
use roundtrip_core::wire::{InputRequest, Raw};

/// A task that a round is run in: it keeps the journal in its store, where other rounds keep it in `requestState`.
pub(crate) trait Keeper: fmt::Debug + Send + Sync {
    /// Stores what has changed in the journal, before a step begins or after it has ended. Returns whether the handler is to go on;
    /// the worker drops one that is not.
    fn keep(self: Arc<Self>, moment: Moment) -> BoxFuture<'static, bool>;

    /// Takes the journal and the questions of a round that has ended without a result, to be stored.
    fn park(&self, parked: ParkedRound);

    /// Takes questions that are to be shown while a step runs on, to be stored.
    fn show(&self, shown: ShownQuestions);

    /// Leaves the task to a process whose handler reads its journal. The worker drops this handler.
    fn leave(&self, why: String);
}

/// Moment at which the journal of a task is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A step is about to begin.
    Before,
    /// A step has ended.
    After,
}

/// A round that has ended without a result, for the store of its task.
#[derive(Debug)]
pub(crate) struct ParkedRound {
    /// Last piece of its journal.
    pub(crate) journal: LastPiece,
    /// Keys, pins and questions, in the order they were asked.
    pub(crate) asked: Vec<(Cow<'static, str>, Pin, InputRequest)>,
    /// True if the handler has set state.
    pub(crate) stateful: bool,
    /// True if the handler asks nothing, and has not stopped at a checkpoint: it waits for something outside.
    pub(crate) waits: bool,
    /// True if the round has begun a step.
    pub(crate) stepped: bool,
    /// Most times that the task may show questions (M21).
    pub(crate) max_rounds: u32,
}

/// Questions of a round that continues, for the store of its task.
#[derive(Debug)]
pub(crate) struct ShownQuestions {
    /// Keys, pins and questions that are new, in the order they were asked.
    pub(crate) asked: Vec<(Cow<'static, str>, Pin, InputRequest)>,
    /// Keys of questions that no future waits for any more.
    pub(crate) withdrawn: Vec<Cow<'static, str>>,
    /// Most times that the task may show questions (M21).
    pub(crate) max_rounds: u32,
}

/// A round whose journal is read in pieces while it runs.
pub(crate) trait Pieces: Send + Sync {
    /// Returns what has changed in the journal since the last piece. Questions that wait are not part of it: the handler asks
    /// them again.
    fn next_piece(&self) -> Option<Vec<u8>>;

    /// Returns the bytes of the journal as a whole, while the round is not over.
    fn size(&self) -> Option<usize>;

    /// Adds answers to the journal, each under the key of its question. The handler does not see them yet. Returns the keys of the
    /// questions that the handler waits for.
    fn give(&self, answers: &[(&str, &Raw)]) -> Vec<String>;

    /// Lets the handler see the answers to these questions: they are stored.
    fn settle(&self, keys: &[String]);
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
