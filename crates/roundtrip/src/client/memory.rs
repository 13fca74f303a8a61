//! State that calls leave behind for later calls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use roundtrip_core::exchange::TaskDialect;
use roundtrip_core::wire::ProtocolVersion;

use super::cache::Cache;
use super::tools::Tools;

/// State that calls leave behind for later calls.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) cache: Cache,
    pub(super) tools: Tools,
    /// Credentials with which results and tools were seen.
    credentials: AtomicU64,
    /// Revision of the requests that the server answers.
    pub(super) answered_in: OnceLock<ProtocolVersion>,
    /// Dialect of tasks that the server has named.
    pub(super) dialect: OnceLock<TaskDialect>,
}

impl Memory {
    /// Returns the state for these credentials: results and tools that were seen with others are forgotten.
    pub(super) fn of(&self, credentials: u64) -> &Self {
        if self.credentials.load(Ordering::Acquire) != credentials {
            // Forgotten before the number is stored: a reader of the new number finds nothing of the old one.
            self.cache.clear();
            self.tools.clear();
            self.credentials.store(credentials, Ordering::Release);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roundtrip_core::wire::{ListTools, Method as _, Raw};
    use serde_json::json;

    use super::*;
    use crate::client::cache::{Capacity, Key};
    use crate::client::request::Request;

    const ROOMY: Capacity = Capacity { results: 9, bytes: 10_000 };

    /// N3: a result that was asked for with other credentials is neither kept nor returned.
    #[test]
    fn results_are_kept_for_their_own_credentials() {
        let memory = Memory::default();
        let key = Key::of(&Request::new(ListTools::NAME)).expect("a list");
        let result = Arc::new(Raw::from(json!({ "ttlMs": 60_000 })));
        let before = memory.of(1).cache.generation();
        memory.of(1).cache.keep(key.clone(), &result, before, ROOMY);
        assert!(memory.of(1).cache.get(&key).is_some());
        assert!(memory.of(2).cache.get(&key).is_none());
        memory.of(2).cache.keep(key.clone(), &result, before, ROOMY);
        assert!(memory.of(2).cache.get(&key).is_none(), "it was asked for before the change");
    }
}
