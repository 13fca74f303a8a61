//! [`TaskCaller`]: the caller of a request about tasks.

use std::borrow::Cow;
use std::sync::Arc;

use roundtrip_core::wire::ErrorObject;
use serde_json::value::RawValue;

use crate::server::access::Access;
use crate::server::offer::Catalog;
use crate::server::offer::entry::ToolEntry;
use crate::server::peer::{Peer, Principal};
use crate::task::{Millis, Record, StoredView, TaskOwner, left_for};

/// The caller of a request about tasks: the owner of those it knows, and its rights to use them.
pub(crate) struct TaskCaller {
    pub(crate) owner: TaskOwner,
    access: Access,
    catalog: Catalog,
}

impl TaskCaller {
    pub(crate) fn new(peer: &Peer, catalog: &Catalog) -> Self {
        let owner = TaskOwner::new(peer.principal.as_ref().map(Principal::as_str));
        Self { owner, access: peer.access.clone(), catalog: catalog.clone() }
    }

    /// Returns the tool of a stored task, if this server has it.
    fn tool(&self, view: &[u8]) -> Option<Arc<ToolEntry>> {
        self.catalog.read().tools.get(Record::tool_of(view)).cloned()
    }

    /// Returns the description of a task that waits for a process which can run it, if this one cannot (T16).
    pub(super) fn waits_for(&self, stored: &StoredView) -> Option<String> {
        let name = Record::tool_of(&stored.view);
        let runs = || self.catalog.read().runs(name, &stored.kind).is_some();
        (stored.is_waiting && !runs())
            .then(|| left_for(&format!("it needs the tool `{name}` in the version that began it")))
    }

    /// Takes the caller's answers to a task's questions. Returns whether any counts.
    pub(super) fn answer(
        &self,
        record: &mut Record,
        answers: &[(Cow<'_, str>, &RawValue)],
        now: Millis,
    ) -> Result<bool, ErrorObject> {
        if !record.is_answered_by(self.access.client()) {
            tracing::warn!("answers to a task refused: they come from another OAuth client than its call");
            return Err(ErrorObject::invalid_params(
                "params.taskId: this task takes answers from the OAuth client that its call came from: answer there",
            ));
        }
        record.answer(answers, now)
    }

    /// Refuses the caller of a stored task if it lacks the scopes that the task's tool needs now.
    pub(super) fn may_use(&self, view: &[u8]) -> Result<(), ErrorObject> {
        self.tool(view).map_or(Ok(()), |tool| tool.scope.permits(&self.access))
    }
}
