//! [`TaskCaller`]: the caller of a request about tasks.

use roundtrip_core::wire::ErrorObject;

use crate::server::access::Access;
use crate::server::offer::Catalog;
use crate::server::peer::{Peer, Principal};
use crate::task::{Record, TaskOwner};

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

    /// Refuses the caller of a stored task if it lacks the scopes that the task's tool needs now.
    pub(super) fn may_use(&self, view: &[u8]) -> Result<(), ErrorObject> {
        let tool = self.catalog.read().tools.get(Record::tool_of(view)).cloned();
        tool.map_or(Ok(()), |tool| tool.scope.permits(&self.access))
    }
}
