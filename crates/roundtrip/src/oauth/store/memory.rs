//! Store in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use roundtrip_core::seal::BoxFuture;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use super::{LONGEST_WAIT, Record, StoreError, StoreLock, TokenStore};
use crate::lock::lock;

/// Store in memory, the default. Clones share their records: clients of one account sign in once.
#[derive(Clone, Default)]
pub struct MemoryStore {
    entries: Arc<Mutex<HashMap<String, Entry>>>,
}

#[derive(Default)]
struct Entry {
    record: Option<Record>,
    turn: Arc<AsyncMutex<()>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn set(&self, server: &str, record: Option<Record>) {
        lock(&self.entries).entry(server.to_owned()).or_default().record = record;
    }
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let record = lock(&self.entries).get(server).and_then(|entry| entry.record.clone());
        Box::pin(async { Ok(record) })
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
        self.set(server, Some(record.clone()));
        Box::pin(async { Ok(()) })
    }

    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.set(server, None);
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        let turn = Arc::clone(&lock(&self.entries).entry(server.to_owned()).or_default().turn);
        Box::pin(async {
            match timeout(LONGEST_WAIT, turn.lock_owned()).await {
                Ok(held) => Ok(StoreLock::new(held)),
                Err(_) => Err(StoreError::Busy { waited: LONGEST_WAIT }),
            }
        })
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
