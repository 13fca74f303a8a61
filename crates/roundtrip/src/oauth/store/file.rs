//! Store in a directory.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use roundtrip_core::seal::{BoxFuture, Digest};
use roundtrip_core::wire::json;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::{LONGEST_WAIT, Record, StoreError, StoreLock, TokenStore, files};

/// Pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(20);
/// Version of the file format.
const VERSION: u32 = 1;

/// Store in a directory, one file for each server and account. Processes that share the directory renew a grant once.
///
/// Files are readable by their owner alone (`0600`) and replaced atomically: written beside, flushed to disk, renamed. Links, pipes
/// and files of other users are refused. A lock
/// file beside each is locked while the record is renewed; the system releases the lock if the process ends. On
/// Windows files have the permissions of their directory: choose one below the user's profile. Network file systems
/// without working locks do not protect processes on different machines from each other.
///
/// ```
/// use roundtrip::oauth::store::FileStore;
///
/// # let config = std::env::temp_dir().join(format!("roundtrip-doc-{}", std::process::id()));
/// let store = FileStore::open(config.join("tokens"))?.account("alice");
/// # std::fs::remove_dir_all(config).ok();
/// # Ok::<(), roundtrip::oauth::store::StoreError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: PathBuf,
    account: String,
    wait: Duration,
}

/// Content of a file.
#[derive(Serialize, Deserialize)]
struct Content<R> {
    version: u32,
    server: String,
    account: String,
    record: R,
}

impl FileStore {
    /// Opens a directory, which is made if it is not there.
    ///
    /// # Errors
    /// Fails if it cannot be made. On Unix it also fails if the directory belongs to another user, if its group or others can write to
    /// it, if a directory above it belongs to a user who is neither this one nor root, and if others can write to one above it that
    /// is not sticky. A group that can write to a directory above it is not looked at: trust its members, or choose another place.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        files::make_directory(&directory)?;
        files::sweep(&directory);
        Ok(Self { directory, account: String::new(), wait: LONGEST_WAIT })
    }

    /// Chooses an account: records of different accounts are apart.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    /// Sets the longest wait for another process that renews the same grant. It is 30 seconds at first.
    #[must_use]
    pub fn longest_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Returns the path of a server's file with another ending. Names are digests: a URL has characters that paths do not.
    fn path(&self, server: &str, ending: &str) -> PathBuf {
        let name = Digest::of("token store", &[self.account.as_bytes(), server.as_bytes()]);
        self.directory.join(format!("{name}.{ending}"))
    }

    fn decode(&self, path: &Path, server: &str, bytes: &[u8]) -> Result<Record, StoreError> {
        let corrupt = |why| StoreError::Corrupt { path: path.to_owned(), why };
        let broken = |_| corrupt("it is not a whole record");
        let head: Content<IgnoredAny> = json::from_slice(bytes).map_err(broken)?;
        if head.version != VERSION {
            return Err(corrupt("another version of this program wrote it"));
        }
        if head.server != server || head.account != self.account {
            return Err(corrupt("it is of another server or account"));
        }
        let content: Content<Record> = json::from_slice(bytes).map_err(broken)?;
        Ok(content.record)
    }

    fn encode(&self, server: &str, record: &Record) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let (server, account) = (server.to_owned(), self.account.clone());
        let content = Content { version: VERSION, server, account, record };
        // A buffer that grows leaves copies behind; few records are longer.
        let mut bytes = Zeroizing::new(Vec::with_capacity(16 * 1024));
        serde_json::to_writer_pretty(&mut *bytes, &content)
            .map_err(|error| StoreError::Failed(error.into()))?;
        Ok(bytes)
    }
}

impl TokenStore for FileStore {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let path = self.path(server, "json");
        Box::pin(async move {
            let read = path.clone();
            let bytes = off_runtime(move || files::read(&read)).await?;
            bytes.map(|bytes| self.decode(&path, server, &bytes)).transpose()
        })
    }

    fn save<'a>(&'a self, server: &'a str, record: &'a Record) -> BoxFuture<'a, Result<(), StoreError>> {
        let path = self.path(server, "json");
        Box::pin(async move {
            let bytes = self.encode(server, record)?;
            off_runtime(move || files::replace(&path, &bytes)).await
        })
    }

    fn delete<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let path = self.path(server, "json");
        Box::pin(off_runtime(move || files::delete(&path)))
    }

    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        let path = self.path(server, "lock");
        Box::pin(async move {
            let begun = Instant::now();
            loop {
                let path = path.clone();
                if let Some(held) = off_runtime(move || try_lock(&path)).await? {
                    return Ok(StoreLock::new(held));
                }
                if begun.elapsed() >= self.wait {
                    return Err(StoreError::Busy { waited: self.wait });
                }
                sleep(PAUSE).await;
            }
        })
    }
}

/// Takes a lock that is free. It is released when the file is closed, by the system too.
///
/// The lock file is never deleted: a process that waits for it would hold the lock of a file that is gone, and another
/// that of its successor.
fn try_lock(path: &Path) -> Result<Option<File>, StoreError> {
    let file = files::open_lock(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(StoreError::io(path, error)),
    }
}

/// Runs work on files outside the threads of the runtime. It ends even if nothing waits for it any more.
async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|error| StoreError::Failed(error.into()))?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::listed::assert_read_by_name;

    const SERVER: &str = "https://tools.example/mcp";

    fn record() -> Value {
        let (issuer, endpoint) = ("https://login.example", "https://login.example/token");
        let client = json!({
            "issuer": issuer, "client_id": "id", "source": "dynamic", "secret": "s", "secret_expires_at": 7,
            "method": "client_secret_post", "redirect_uri": "http://127.0.0.1:7777/callback",
        });
        let terms = json!({
            "server": SERVER, "resource": SERVER, "issuer": issuer, "resource_metadata": null,
            "token_endpoint": endpoint, "client": client, "method": "client_secret_post", "requested": "a",
            "dpop": null, "requires_dpop": false, "assumed_endpoints": false, "sign_in": "x",
        });
        let grant = json!({
            "terms": terms, "access_token": "a", "scheme": "Bearer", "expires_at": 1, "refresh_token": "r",
            "granted": "a",
        });
        json!({ "grant": grant, "registrations": [client], "proof_key": "k" })
    }

    #[test]
    fn a_list_is_not_taken_for_a_stored_record() {
        let store = FileStore { directory: PathBuf::new(), account: "ada".into(), wait: LONGEST_WAIT };
        let content = json!({ "version": VERSION, "server": SERVER, "account": "ada", "record": record() });
        assert_read_by_name(&content, |stored| {
            store.decode(Path::new("file"), SERVER, stored.to_string().as_bytes()).is_ok()
        });
        // Other stores may read it without `wire::json`.
        assert_read_by_name(&record(), |stored| serde_json::from_value::<Record>(stored.clone()).is_ok());
    }
}
