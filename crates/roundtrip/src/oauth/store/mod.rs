//! Stores of grants and registrations.
//!
//! A store belongs to one account and holds one [`Record`] for each server. [`MemoryStore`] forgets at the end of the process,
//! [`FileStore`] does not, and processes that share its directory renew a grant once among them; a [`TokenStore`] of your own
//! keeps records wherever you do.
//!
//! A refresh token is often good for one use. The client therefore holds [`TokenStore::lock`] from reading a record over the
//! exchange to writing it, reads the record again once it has the lock, and takes what another process has stored meanwhile.
//! No lock is held during any other request.
//!
//! | event | consequence |
//! |---|---|
//! | a process ends between the exchange and the write | the refresh token before it is tried; where the server has retired that one, a sign-in is needed |
//! | a record cannot be written | the call that got the tokens fails; they stay in use, and writing is tried again every 30 seconds |
//! | a record cannot be read, or its lock is not to be had | an access token that is still good stays in use; else the call fails |
//! | the issuer does not answer a refresh token, and the server's metadata names another issuer or token endpoint | a sign-in is needed; the record stays until then |
//! | the server refuses a refresh token | it is dropped if the store still has that one; an access token that is still good stays in use |

mod error;
mod file;
mod files;
mod memory;
mod record;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::seal::BoxFuture;

pub use error::StoreError;
pub use file::FileStore;
pub use memory::MemoryStore;
pub use record::Record;

/// Store of the records of one account, by server.
///
/// A record is written as a whole. It serialises as JSON and contains tokens and client secrets: keep it as safely as
/// passwords. [`testing::stores::tokens`](crate::testing::stores::tokens) checks a store of your own.
pub trait TokenStore: Send + Sync + 'static {
    /// Loads the record of a server: the URL as the client was given it.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// Replaces the record of a server. Once it is confirmed, it survives a crash as far as the store does. The client holds
    /// the lock of the server.
    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes the record of a server; none is no error. The client holds the lock of the server.
    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Waits for the lock of a server, against every other client that uses the same records, in this process and in others.
    /// It is held for the time of a token request, about ten seconds at most, and must end with its process.
    ///
    /// # Errors
    /// Fails after a bounded wait.
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>>;
}

/// Longest wait for the lock of a record: longer than the two token requests that one renewal can make.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Lock of one record, released when dropped.
pub struct StoreLock {
    _held: Box<dyn Any + Send>,
}

impl StoreLock {
    /// Wraps a guard: a value that releases the lock when it is dropped.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self { _held: Box::new(guard) }
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}

/// Handle to a store.
#[derive(Clone)]
pub(crate) struct StoreHandle(pub(crate) Arc<dyn TokenStore>);

impl Default for StoreHandle {
    fn default() -> Self {
        Self(Arc::new(MemoryStore::new()))
    }
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenStore")
    }
}
