//! Tokens that were verified, remembered by their digest until they expire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use roundtrip_core::auth::Claims;
use roundtrip_core::seal::Timestamp;
use serde_json::Value;

use crate::lock::lock;

/// Number of locks.
const SHARDS: usize = 16;
/// Entries of one generation of one shard: 16,384 in all.
const MOST_ENTRIES: usize = 512;
/// Bytes of one generation of one shard: 16 MiB in all.
const MOST_BYTES: usize = 512 * 1024;
/// Bytes of the largest claims that are remembered.
const LARGEST: usize = 64 * 1024;

/// SHA-256 of a token: the token itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Computes the digest of a token.
    pub(super) fn of(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    fn shard(&self) -> usize {
        usize::from(self.0[0]) % SHARDS
    }
}

/// Memory of verified tokens, bounded in entries and bytes. Refused tokens are not in it.
#[derive(Default)]
pub(super) struct TokenMemory {
    shards: [Mutex<Shard>; SHARDS],
    epoch: AtomicU64,
}

/// Two generations of entries: the old one is dropped when the young one is full, and what was used meanwhile is in the young.
#[derive(Default)]
struct Shard {
    young: HashMap<TokenDigest, Entry>,
    old: HashMap<TokenDigest, Entry>,
    /// Bytes of the young generation.
    bytes: usize,
}

struct Entry {
    claims: Arc<Claims>,
    until: Timestamp,
    size: usize,
}

/// Epoch of the memory in which a token was verified. [`TokenMemory::forget`] ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl TokenMemory {
    /// Returns the present epoch, for the verification that begins now.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Returns the claims of a token that is remembered.
    pub(super) fn recall(&self, digest: &TokenDigest, now: Timestamp) -> Option<Arc<Claims>> {
        lock(&self.shards[digest.shard()]).recall(digest, now)
    }

    /// Remembers a token that was verified in an epoch, unless that has ended.
    pub(super) fn remember(
        &self,
        digest: TokenDigest,
        claims: &Arc<Claims>,
        until: Timestamp,
        verified: Epoch,
    ) {
        let size = claims.all.iter().map(|(name, value)| name.len() + weight(value)).sum();
        if size > LARGEST {
            return;
        }
        let mut shard = lock(&self.shards[digest.shard()]);
        // Looked at under the lock: the epoch ends before the shards are emptied.
        if self.epoch() == verified {
            shard.insert(digest, Entry { claims: Arc::clone(claims), until, size });
        }
    }

    /// Forgets all tokens: a key they were verified with may be gone.
    pub(super) fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        for shard in &self.shards {
            *lock(shard) = Shard::default();
        }
    }
}

impl Shard {
    fn recall(&mut self, digest: &TokenDigest, now: Timestamp) -> Option<Arc<Claims>> {
        if let Some(entry) = self.young.get(digest) {
            return entry.claims_at(now);
        }
        let entry = self.old.remove(digest)?;
        let claims = entry.claims_at(now)?;
        self.insert(*digest, entry);
        Some(claims)
    }

    fn insert(&mut self, digest: TokenDigest, entry: Entry) {
        if self.young.len() >= MOST_ENTRIES || self.bytes + entry.size > MOST_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += entry.size;
        if let Some(replaced) = self.young.insert(digest, entry) {
            self.bytes -= replaced.size;
        }
    }
}

impl Entry {
    fn claims_at(&self, now: Timestamp) -> Option<Arc<Claims>> {
        (now < self.until).then(|| Arc::clone(&self.claims))
    }
}

/// Estimates the bytes of a value. Its depth is bounded by the parser.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(all) => all.iter().map(weight).sum(),
            Value::Object(all) => all.iter().map(|(name, value)| 64 + name.len() + weight(value)).sum(),
            _ => 0,
        }
}
