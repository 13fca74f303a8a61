//! The ledger: every round's reply, kept so that a repeated round gets it again and runs nothing (M6).
//!
//! Between two rounds the client holds the state, so nothing on the server knows that a round has been run already.
//! A reply that is lost on the way makes the client send the round again; a token that was kept can be presented again.
//! Without a ledger both run the handler once more. With one ([`Server::ledger`](super::Server::ledger)):
//!
//! - A round that began with a token is known by its flow and its number: **the first answers win**. A later
//!   request with the same token gets the recorded reply, even if its `inputResponses` differ.
//! - A round that only asked again or handed off is not recorded: it settled no answer, began no step and kept no new state
//!   of its author's. Its token stays good for the answers that do count. The token it ended with stands for the same round,
//!   so that an answer counts with one of them.
//! - The first round has no token. A caller that wants to be able to repeat it sends a key of its own in `_meta`, under
//!   [`IDEMPOTENCY_KEY`]: 1 to 128 characters, hard to guess, new for every call. It is the caller's own: no
//!   other principal can find a reply with it. The same key with another method, target or other arguments is refused
//!   (-32602). Without a key the first round is not recorded. Keys are remembered as long as an answer may take
//!   ([`answer_within`](super::Server::answer_within)). In later rounds the token counts, and the key is not looked up.
//! - Duplicates that arrive while the first one runs wait for its reply, and share it.
//! - Recorded are results, questions, tasks, tool errors, and errors such as a refusal by the user. Not recorded, so that the
//!   client can try again: panics and internal errors, a missing client capability and a busy server. The effects
//!   of such a run may be repeated: that is what [`Step::idempotency_key`](super::Step::idempotency_key) is for.
//! - A client that hangs up cancels its round as long as the handler has begun no step of [`once`](super::Ask::once).
//!   From the first step on, while the call becomes a task, and while the reply is being recorded, the round goes on without the
//!   client and is recorded ([`Limits::finish_within`](super::Limits::finish_within) bounds it).
//!
//! Hooks run around all this, for repeats too. A call that a hook refuses, or whose parameters do not fit, claims nothing:
//! its token or key is good for another try.

mod key;
mod memory;
mod recorded;
mod recorder;
mod records;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use roundtrip_core::seal::{BoxFuture, Timestamp};

pub use key::{IDEMPOTENCY_KEY, RoundKey};
pub use memory::MemoryLedger;

pub(crate) use recorder::{LedgerConfig, Recorder};

/// Store of replies. [`MemoryLedger`] is one for a single process; instances that serve each other's flows need one
/// that they share. The crate `roundtrip-store` has them for SQLite, PostgreSQL and Redis;
/// [`testing::stores`](crate::testing::stores) checks one of your own.
///
/// With a database, a claim is a row: its primary key is [`RoundKey::id`], and it has columns for [`RoundKey::call`], for
/// the reply (empty while the round runs) and for `until`. To claim is to insert it unless it is there:
///
/// | the row | the claim |
/// |---|---|
/// | was not there | [`Claim::Run`] |
/// | is of another call | [`Claim::OtherCall`] |
/// | has a reply | [`Claim::Replay`] |
/// | has none yet | look again, until one of the above |
///
/// A process can die while it holds a claim. So a shared ledger gives a claim a short lease, renews it for as long as
/// its [`ClaimGuard`] lives, and treats a claim whose lease has expired as abandoned.
///
/// A lease counts from before the statement was sent. If it has passed by the time the answer is there, because the machine was
/// suspended, the ledger claims again before it returns [`Claim::Run`]: another instance may have run the round.
pub trait Ledger: Send + Sync {
    /// Claims a round, and waits while another request runs it. Two requests must never both be told to run one.
    ///
    /// Nothing has to be kept beyond `until`: by then the round cannot be repeated. A live record must not make room for
    /// another, because its round would run again: a ledger without room fails. It should also fail for a caller that
    /// has taken its share: [`RoundKey::owner`] tells callers apart.
    ///
    /// The future is dropped when the caller goes away; a claim made by then must be released.
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>>;

    /// Waits until every reply is recorded that was [deferred](LedgerError::Deferred): a process that stops waits for it. The default
    /// is a ledger that defers none.
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Claim on a round that is being run, and that no other request may run meanwhile.
///
/// Dropping it without a reply releases the claim, so that the next caller runs the round: the run was abandoned, or
/// failed in a way that may be tried again. Dropping must not block; a ledger that has to tell a database starts a task.
pub trait ClaimGuard: Send {
    /// Records the reply, for requests that wait and for those that come until `until`. It is sent after this is done.
    ///
    /// If it fails, the claim should stay until it expires: the round has had its effects, so running it again is worse
    /// than refusing it. A ledger that can should keep the reply, continue to try, and return [`LedgerError::Deferred`].
    fn record(self: Box<Self>, reply: Bytes, until: Timestamp)
    -> BoxFuture<'static, Result<(), LedgerError>>;
}

/// Result of a claim.
pub enum Claim {
    /// The caller runs the round: no request has run it before.
    Run(Box<dyn ClaimGuard>),
    /// The round has been run, and this is its reply, as it was recorded.
    Replay(Bytes),
    /// The key was used for a call of another method, with another target, or with other arguments: one whose
    /// [`RoundKey::call`] is different.
    OtherCall,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(_) => f.write_str("Run"),
            Self::Replay(reply) => write!(f, "Replay({} bytes)", reply.len()),
            Self::OtherCall => f.write_str("OtherCall"),
        }
    }
}

/// Failure of a ledger. The round is not run: the client is told to try again later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The ledger holds as much as it may, or as much as it may for one caller, and all of it is still needed.
    #[error("the ledger is full")]
    Full,
    /// The reply is not recorded yet. The ledger keeps it and its claim, continues to try, and logs the outage itself: only
    /// [`ClaimGuard::record`] may return this.
    #[error("the reply will be recorded later")]
    Deferred(#[source] Box<dyn Error + Send + Sync>),
    /// The ledger cannot be reached, or failed. The error is logged.
    #[error("the ledger failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl<L: Ledger + ?Sized> Ledger for Arc<L> {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        (**self).claim(key, until)
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        (**self).settled()
    }
}

/// Handle to a server's ledger.
#[derive(Clone)]
pub(crate) struct LedgerHandle(Arc<dyn Ledger>);

impl LedgerHandle {
    pub(crate) fn new(ledger: impl Ledger + 'static) -> Self {
        Self(Arc::new(ledger))
    }

    /// Waits until every reply is recorded that was deferred.
    pub(crate) async fn settled(&self) {
        self.0.settled().await;
    }
}

impl fmt::Debug for LedgerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ledger")
    }
}
