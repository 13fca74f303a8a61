//! Errors of stores.

use std::error::Error;
use std::sync::Arc;

use roundtrip::seal::{KeyId, RecordError};

/// Error of a driver. It is shared by the requests that one failure has hit.
type Cause = Arc<dyn Error + Send + Sync>;

/// Failure of a store. No variant and no text of one holds an address, which may have a password in it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The address cannot be read.
    #[error(
        "this is not an address of {0}: write `{0}://user:password@host/database`, special characters as `%..`"
    )]
    Address(&'static str),
    /// The database cannot be reached, is restarting, or broke the connection.
    #[error("the database is not available")]
    Unavailable(#[source] Cause),
    /// The database did not answer in time.
    #[error("the database did not answer in time")]
    TimedOut,
    /// Another process holds the lock of the file.
    #[error("the database file is locked by another process: no transaction may hold it for seconds")]
    Locked,
    /// The file, its folder or the server takes no writes.
    #[error(
        "the database is read-only: the file and its folder must be writable, a server must not be a replica"
    )]
    ReadOnly,
    /// There is no room left for the database.
    #[error("the disk or the memory of the database is full: make room, nothing recorded is lost")]
    NoSpace,
    /// The file cannot be opened or created.
    #[error("the database file cannot be opened: its folder must exist and be writable")]
    CannotOpen(#[source] Cause),
    /// The file is not a database, or damaged.
    #[error("the file is not a SQLite database, or damaged: restore it or begin with a new one")]
    Damaged(#[source] Cause),
    /// A later release has changed the tables.
    #[error("the store has schema {found} and this release knows {known}: update this instance")]
    NewerSchema {
        /// The version that the database has.
        found: i64,
        /// The latest version that this release knows.
        known: i64,
    },
    /// The ring given to the store ends with the process.
    #[error(
        "the ring is random and ends with this process, and its records with it: read keys from a file or a variable"
    )]
    RandomKey,
    /// A record is sealed with a key that is not on the ring any more. It is still there.
    #[error(
        "a record is sealed with key {key}, which is not on the ring: put it back until its records are gone"
    )]
    KeyRetired {
        /// The id of the key.
        key: KeyId,
    },
    /// A record is sealed, and this store has no ring. It is still there.
    #[error("a record is sealed and this store has no ring: give it the ring of the other instances")]
    Sealed,
    /// A record is not sealed, and this store has a ring: it was written without one, or planted.
    #[error(
        "a record is not sealed and this store has a ring: give every instance the ring, and let older records expire"
    )]
    NotSealed,
    /// A record was changed or moved in the database, or is of a later version.
    #[error("a record cannot be read")]
    Record(#[source] RecordError),
    /// The claim has expired before the reply was recorded, and another request has run the round since.
    #[error("the lease of the claim has expired: the instance or the database was away for too long")]
    LeaseLost,
    /// The operating system has no randomness.
    #[error("the operating system has no randomness")]
    NoRandomness,
    /// The database cannot hold the record: it is too large, or breaks a constraint of its table.
    #[error("the database cannot hold this record")]
    Unstorable(#[source] Cause),
    /// The database refused.
    #[error("the database refused")]
    Refused(#[source] Cause),
}

impl StoreError {
    /// Returns whether the same may succeed in a moment.
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::TimedOut)
    }

    /// Returns whether a reply that was refused so may be recorded later: a lost claim and errors of the reply itself stay.
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
    pub(crate) fn may_pass_for_a_record(&self) -> bool {
        !matches!(self, Self::LeaseLost | Self::Unstorable(_) | Self::Record(_) | Self::NoRandomness)
    }
}

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::UnknownKey(key) => Self::KeyRetired { key },
            other => Self::Record(other),
        }
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl From<StoreError> for roundtrip::task::TaskStoreError {
    fn from(error: StoreError) -> Self {
        Self::Failed(Box::new(error))
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
impl From<StoreError> for roundtrip::server::ledger::LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Failed(Box::new(error))
    }
}
