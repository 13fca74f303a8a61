//! The ledger over any database: claims with leases, waiting, retries, upkeep. A database adds [`Records`], its statements.

mod backlog;
mod guard;
mod held;
mod renewal;
mod upkeep;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use roundtrip::seal::{BoxFuture, RecordLabel, Timestamp};
use roundtrip::server::ledger::{Claim, LedgerError, RoundKey};

use self::backlog::{Backlog, ClaimedReply};
use self::guard::Guard;
use self::held::Held;
use self::renewal::ThreadEnd;
use crate::moment::Moment;
use crate::opening::Settings;
use crate::retry::retry;
use crate::to_end::ToEnd;
use crate::vault::Vault;
use crate::{StoreError, Usage};

pub(crate) use self::renewal::ClaimRenewer;

/// Shortest and longest pause between two looks at a round that another instance runs.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// Most times that a round is claimed whose lease has passed before the answer is there.
const CLAIMS: u32 = 3;

/// Most records that one sweep removes.
pub(crate) const BATCH: u32 = 500;

/// Id of a record.
pub(crate) type Id = [u8; RoundKey::LEN];

/// Id of one claim. What is written under a claim is written only as long as the record names it.
pub(crate) type Holder = [u8; 16];

/// Result of an attempt to claim a round.
#[derive(Debug)]
pub(crate) enum Found {
    Claimed,
    Running,
    Done(Vec<u8>),
    OtherCall,
    Full,
}

/// Statements of a database. Each is atomic and one exchange, and may be repeated when its answer was lost.
///
/// A record has one end: of the lease while its round runs, of the reply afterwards. Past its end it counts as gone.
pub(crate) trait Records: Send + Sync + 'static {
    /// Claims a round that has no live record, or the record of this claim, whose lease is renewed. A round that has no record is not
    /// claimed if there is no room for another.
    fn claim(
        &self,
        key: &RoundKey,
        holder: &Holder,
        has_room: bool,
    ) -> impl Future<Output = Result<Found, StoreError>> + Send;

    /// Returns whether a claim on the round is live.
    fn is_running(&self, id: &Id) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Stores the reply of a claimed round. False if the claim is lost.
    fn record(
        &self,
        id: &Id,
        holder: &Holder,
        reply: &[u8],
        end: i64,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Replaces a stored reply with the same one, sealed anew.
    fn reseal(&self, id: &Id, old: &[u8], new: &[u8]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns a handle that renews the leases of claims.
    fn renewer(&self) -> Box<dyn ClaimRenewer>;

    /// Removes the record of a claim that has no reply.
    fn release(&self, id: &Id, holder: &Holder) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes up to [`BATCH`] records that are over, and returns their number.
    fn sweep(&self) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Returns the number of records and bytes.
    fn usage(&self) -> impl Future<Output = Result<Usage, StoreError>> + Send;
}

/// Handle to a ledger over a database. Clones share it.
pub(crate) struct SharedLedger<R>(Arc<Inner<R>>);

struct Inner<R> {
    records: R,
    vault: Vault,
    held: Held,
    backlog: Backlog,
    lease: Duration,
    /// The thread that renews claims, from the first one on.
    renewals: OnceLock<ThreadEnd>,
    /// Half of every claim's id; the other half is counted.
    instance: [u8; 8],
    claims: AtomicU64,
}

impl<R> Clone for SharedLedger<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> fmt::Debug for SharedLedger<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("vault", &self.0.vault).finish_non_exhaustive()
    }
}

impl<R: Records> SharedLedger<R> {
    /// Creates the ledger and starts its upkeep, which ends with the last handle.
    pub(crate) fn start(records: R, settings: &Settings) -> Result<Self, StoreError> {
        let mut instance = [0; 8];
        getrandom::fill(&mut instance).map_err(|_| StoreError::NoRandomness)?;
        let vault = Vault::new(settings.ring.clone());
        let (held, backlog, lease) = (Held::default(), Backlog::default(), settings.lease);
        let (renewals, claims) = (OnceLock::new(), AtomicU64::new(0));
        let inner = Arc::new(Inner { records, vault, held, backlog, lease, renewals, instance, claims });
        upkeep::start(&inner, lease / 3);
        Ok(Self(inner))
    }

    pub(crate) fn claim<'a>(&'a self, key: &'a RoundKey) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        Box::pin(async move {
            let mut swept = false;
            loop {
                match ToEnd::new(Arc::clone(&self.0).attempt(*key)).await? {
                    (Found::Claimed, guard) => return Ok(Claim::Run(Box::new(guard))),
                    (Found::Running, guard) => {
                        guard.dismiss();
                        self.0.wait(key.id()).await?;
                    }
                    (Found::Done(stored), guard) => {
                        guard.dismiss();
                        return Ok(Claim::Replay(self.0.replay(key.id(), stored)?));
                    }
                    (Found::OtherCall, guard) => {
                        guard.dismiss();
                        return Ok(Claim::OtherCall);
                    }
                    // What is over makes room; it is swept here if the upkeep has not come to it yet. For replies that wait it makes none.
                    (Found::Full, guard) => {
                        guard.dismiss();
                        let has_room = self.0.backlog.has_room(key.owner());
                        if swept || !has_room || retry(|| self.0.records.sweep()).await? == 0 {
                            return Err(LedgerError::Full);
                        }
                        swept = true;
                    }
                }
            }
        })
    }

    /// Waits until no reply waits to be recorded.
    pub(crate) fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.ensure_worker();
            self.0.backlog.emptied().await;
        })
    }

    pub(crate) async fn usage(&self) -> Result<Usage, StoreError> {
        retry(|| self.0.records.usage()).await
    }
}

impl<R: Records> Inner<R> {
    /// Tries to claim a round. The guard is there before the claim: if the answer is lost or nobody waits for it, dropping
    /// the guard releases what may have been claimed.
    async fn attempt(self: Arc<Self>, key: RoundKey) -> Result<(Found, Guard<R>), StoreError> {
        let guard = Guard::new(Arc::clone(&self), key, self.next_holder());
        for _ in 0..CLAIMS {
            let mut sent = Moment::now();
            let claim = || {
                sent = Moment::now();
                // Looked at each time: replies may have begun to wait meanwhile. A round that was recorded is found all the same.
                self.records.claim(&key, guard.holder(), self.backlog.has_room(key.owner()))
            };
            let found = retry(claim).await?;
            // The lease counts from before the statement was sent. A machine that was suspended while the answer was on its way
            // claims again: another may have run the round meanwhile.
            if matches!(found, Found::Claimed) && sent.elapsed() >= self.lease {
                continue;
            }
            if matches!(found, Found::Claimed) {
                self.held.insert(*key.id(), *guard.holder());
                self.ensure_renewals();
            }
            return Ok((found, guard));
        }
        Err(StoreError::TimedOut)
    }

    /// Writes a reply under its claim. A claim that has ended with its lease is made again, if no other request has claimed the
    /// round since.
    async fn write(&self, reply: &ClaimedReply) -> Result<(), StoreError> {
        let (id, holder, end) = (reply.key.id(), &reply.holder, end_of(reply.until));
        if self.records.record(id, holder, &reply.sealed, end).await? {
            return Ok(());
        }
        match self.records.claim(&reply.key, holder, true).await? {
            Found::Claimed if self.records.record(id, holder, &reply.sealed, end).await? => Ok(()),
            Found::Full => Err(StoreError::NoSpace),
            _ => Err(StoreError::LeaseLost),
        }
    }

    fn next_holder(&self) -> Holder {
        let number = self.claims.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut holder = [0; 16];
        holder.iter_mut().zip(self.instance.iter().chain(&number)).for_each(|(to, from)| *to = *from);
        holder
    }

    /// Waits until a round is not running: for its end in this process, by looking again in others.
    async fn wait(&self, id: &Id) -> Result<(), StoreError> {
        if self.held.ended(id).await {
            return Ok(());
        }
        let (mut pause, longest) = PAUSES;
        loop {
            tokio::time::sleep(pause).await;
            if !retry(|| self.records.is_running(id)).await? {
                return Ok(());
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Opens a stored reply, and seals it anew if its key is not the first of the ring any more.
    fn replay(self: &Arc<Self>, id: &Id, stored: Vec<u8>) -> Result<Bytes, StoreError> {
        let opened = self.vault.open(label(id), &stored)?;
        if opened.stale {
            let (inner, id, content) = (Arc::clone(self), *id, opened.content.clone());
            tokio::spawn(async move {
                let Ok(new) = inner.vault.seal(label(&id), &content) else { return };
                if let Err(error) = retry(|| inner.records.reseal(&id, &stored, &new)).await {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "a reply is still sealed with an old key"
                    );
                }
            });
        }
        Ok(opened.content.into())
    }
}

fn label(id: &Id) -> RecordLabel<'_> {
    RecordLabel { kind: "ledger reply", id }
}

/// Latest end of a record, in milliseconds: the end of the year 9999. Every database can compute with it.
const LATEST: u64 = 253_402_300_799_999;

/// Returns the first millisecond at which a record is over: it is there until the last second of its time.
fn end_of(until: Timestamp) -> i64 {
    let end = until.as_unix().saturating_add(1).saturating_mul(1_000).min(LATEST);
    i64::try_from(end).unwrap_or(i64::MAX)
}

/// Implements `Ledger` and the calls of the ledger for a store that has one.
macro_rules! ledger_of {
    ($store:ident) => {
        impl roundtrip::server::Ledger for $store {
            fn claim<'a>(
                &'a self,
                key: &'a roundtrip::server::ledger::RoundKey,
                _: roundtrip::seal::Timestamp,
            ) -> roundtrip::seal::BoxFuture<
                'a,
                Result<roundtrip::server::ledger::Claim, roundtrip::server::ledger::LedgerError>,
            > {
                self.ledger.claim(key)
            }

            fn settled(&self) -> roundtrip::seal::BoxFuture<'_, ()> {
                self.ledger.settled()
            }
        }

        impl $store {
            /// Returns the number of records in the ledger, and the bytes of their replies.
            ///
            /// # Errors
            /// Fails if the database cannot be asked.
            pub async fn ledger_usage(&self) -> Result<crate::Usage, crate::StoreError> {
                self.ledger.usage().await
            }
        }
    };
}

pub(crate) use ledger_of;

#[cfg(test)]
mod tests;
