//! [`TaskCall`]: the call that a task was made of.

use std::collections::BTreeMap;
use std::fmt;

use roundtrip_core::auth::ScopeSet;
use roundtrip_core::wire::{JsonObject, Raw};
use serde::{Deserialize, Serialize};

/// The call of a task: what a worker needs to make it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskCall {
    /// `params` of the request, without `requestState` and `inputResponses`.
    pub(crate) params: Raw,
    pub(crate) principal: Option<String>,
    /// Rights of the caller's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rights: Option<TaskRights>,
    /// Extensions of the request that the author has it keep, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extensions: BTreeMap<String, Raw>,
}

/// Rights that the access token of a task's call granted. The token itself is not kept: a task outlives it. Without
/// claims, its caller came from a network where nothing checks tokens.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct TaskRights {
    /// Scopes, with those that they imply.
    pub(crate) scopes: ScopeSet,
    pub(crate) claims: JsonObject,
}

/// Shows no claims: they may be personal.
impl fmt::Debug for TaskRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskRights").field(&self.scopes).finish()
    }
}
