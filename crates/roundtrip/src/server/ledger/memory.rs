//! [`MemoryLedger`]: a ledger in the memory of one process.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Timestamp};

use super::key::RoundKey;
use super::records::{Capacity, Found, Records};
use super::{Claim, ClaimGuard, Ledger, LedgerError};
use crate::lock::lock;
use crate::server::clock::now;

/// A ledger in the memory of one process. Clones share it, so several servers of one process can.
///
/// It holds up to 100,000 replies and 256 MiB of them, or what [`bounded`](Self::bounded) says. One principal has at most
/// half of what the others leave, so that no caller can fill it for all; callers without a principal share by their
/// address. If it is full, or full for a caller, rounds that would have to be recorded are refused (503, "try again
/// later") before they run, and live records stay: forgetting one would let its round run twice. Replies of rounds that
/// are running when the last byte is taken are still kept, so the bytes may go over by that much.
///
/// A record is dropped after its round can no longer be repeated, by the claims of later rounds, a few at a time. A claim
/// costs the same whether there are none or 100,000 live ones.
#[derive(Clone)]
pub struct MemoryLedger(Arc<Mutex<Records>>);

impl MemoryLedger {
    /// Creates an empty ledger.
    pub fn new() -> Self {
        Self::bounded(100_000, 256 * 1024 * 1024)
    }

    /// Creates an empty ledger for this many replies, and this many bytes of them. A single caller gets half of it.
    pub fn bounded(entries: usize, bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Records::new(Capacity { entries, bytes }))))
    }

    /// Returns the number of rounds it holds, running ones included.
    pub fn len(&self) -> usize {
        self.records().len()
    }

    /// Returns whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes of its replies.
    pub fn bytes(&self) -> usize {
        self.records().bytes()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        lock(&self.0)
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").field("len", &self.len()).field("bytes", &self.bytes()).finish()
    }
}

impl Ledger for MemoryLedger {
    fn claim<'a>(&'a self, key: &'a RoundKey, _: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        Box::pin(async move {
            loop {
                let found = self.records().claim(key, now());
                match found {
                    Found::Free => {
                        let held = MemoryClaim { ledger: self.clone(), key: Some(*key) };
                        return Ok(Claim::Run(Box::new(held)));
                    }
                    Found::Done(reply) => return Ok(Claim::Replay(reply)),
                    Found::OtherCall => return Ok(Claim::OtherCall),
                    Found::Full => return Err(LedgerError::Full),
                    Found::Running(mut waiting) => {
                        if let Ok(reply) = waiting.wait_for(Option::is_some).await
                            && let Some(reply) = &*reply
                        {
                            return Ok(Claim::Replay(reply.clone()));
                        }
                    }
                }
            }
        })
    }
}

struct MemoryClaim {
    ledger: MemoryLedger,
    /// `None` once the reply is recorded.
    key: Option<RoundKey>,
}

impl ClaimGuard for MemoryClaim {
    fn record(
        mut self: Box<Self>,
        reply: Bytes,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<(), LedgerError>> {
        if let Some(key) = self.key.take() {
            let waiting = self.ledger.records().record(&key, reply.clone(), until);
            if let Some(waiting) = waiting {
                waiting.send_replace(Some(reply));
            }
        }
        Box::pin(ready(Ok(())))
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            let waiting = self.ledger.records().release(key);
            drop(waiting);
        }
    }
}
