//! Tokens that were judged, remembered by their digest until they expire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use roundtrip_core::auth::{Claims, TokenRefusal};
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

/// Memory of tokens, bounded in entries and bytes: of verified ones with their claims, or of refused ones with the reason. They
/// are apart, so that refused ones, which anybody can send, push no verified one out.
pub(super) struct TokenMemory<V = Arc<Claims>> {
    shards: [Mutex<Shard<V>>; SHARDS],
    epoch: AtomicU64,
}

impl<V> Default for TokenMemory<V> {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()), epoch: AtomicU64::default() }
    }
}

/// Two generations of entries: the old one is dropped when the young one is full, and what was used meanwhile is in the young.
struct Shard<V> {
    young: HashMap<TokenDigest, Entry<V>>,
    old: HashMap<TokenDigest, Entry<V>>,
    /// Bytes of the young generation.
    bytes: usize,
}

impl<V> Default for Shard<V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0 }
    }
}

struct Entry<V> {
    value: V,
    until: Timestamp,
    size: usize,
}

/// Epoch of the memory in which a token was verified. [`TokenMemory::forget`] ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl<V: Clone> TokenMemory<V> {
    /// Returns the present epoch, for the verification that begins now.
    pub(super) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Returns what is remembered of a token.
    pub(super) fn recall(&self, digest: &TokenDigest, now: Timestamp) -> Option<V> {
        lock(&self.shards[digest.shard()]).recall(digest, now)
    }

    fn insert(&self, digest: TokenDigest, entry: Entry<V>, judged: Epoch) {
        let mut shard = lock(&self.shards[digest.shard()]);
        // Looked at under the lock: the epoch ends before the shards are emptied.
        if self.epoch() == judged {
            shard.insert(digest, entry);
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

impl TokenMemory {
    /// Remembers a token that was verified in an epoch, unless that has ended.
    pub(super) fn remember(
        &self,
        digest: TokenDigest,
        claims: &Arc<Claims>,
        until: Timestamp,
        verified: Epoch,
    ) {
        let size = claims.all.iter().map(|(name, value)| name.len() + weight(value)).sum();
        if size <= LARGEST {
            self.insert(digest, Entry { value: Arc::clone(claims), until, size }, verified);
        }
    }
}

impl TokenMemory<TokenRefusal> {
    /// Remembers a token that was refused.
    pub(super) fn remember_refusal(&self, digest: TokenDigest, refusal: TokenRefusal, until: Timestamp) {
        self.insert(digest, Entry { value: refusal, until, size: 0 }, self.epoch());
    }
}

impl<V: Clone> Shard<V> {
    fn recall(&mut self, digest: &TokenDigest, now: Timestamp) -> Option<V> {
        if let Some(entry) = self.young.get(digest) {
            return entry.value_at(now);
        }
        let entry = self.old.remove(digest)?;
        let value = entry.value_at(now)?;
        self.insert(*digest, entry);
        Some(value)
    }

    fn insert(&mut self, digest: TokenDigest, entry: Entry<V>) {
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

impl<V: Clone> Entry<V> {
    fn value_at(&self, now: Timestamp) -> Option<V> {
        (now < self.until).then(|| self.value.clone())
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
