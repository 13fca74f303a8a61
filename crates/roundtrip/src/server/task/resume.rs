//! [`Resume`]: prepares the handlers of stored tasks.

use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::Digest;
use roundtrip_core::wire::ErrorObject;

use crate::server::notify::status::StatusSlot;
use crate::server::run::runner::Runner;
use crate::task::{Record, TaskCall};

/// Prepares the handlers of stored tasks.
pub(crate) trait Resume: Send + Sync {
    /// Returns the handler of a task, ready to run.
    fn resume(&self, task: &Resumed<'_>) -> Result<(Runner, Arc<StatusSlot>), NotResumed>;

    /// Returns the kinds of tasks that the server's tools run, sorted.
    fn kinds(&self) -> Arc<[Digest]>;

    /// Returns whether the server has a tool.
    fn has_tool(&self, name: &str) -> bool;
}

/// A stored task whose handler is to run.
pub(crate) struct Resumed<'a> {
    pub(crate) kind: Digest,
    pub(crate) record: &'a Record,
    pub(crate) call: &'a TaskCall,
    /// Pieces of its journal.
    pub(crate) journal: &'a [Bytes],
}

/// Reason why the handler of a task does not run.
pub(crate) enum NotResumed {
    /// This process cannot run it: another version may.
    Misfit(String),
    /// The task ends with this error.
    Failed(ErrorObject),
}
