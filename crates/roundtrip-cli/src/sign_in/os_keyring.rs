//! Keyring of the operating system: the Secret Service, the keychain of macOS, or the Credential Manager of Windows.

use std::time::Duration;

use keyring::v1::{Entry, Error};
use roundtrip::oauth::store::{Record, StoreError};
use zeroize::Zeroizing;

/// Service that all entries are of; the user of an entry is the URL of its server.
const SERVICE: &str = "roundtrip";
/// Entry that shows whether the keyring can be written to.
const PROBE: &str = "probe";
/// Longest time to reach the keyring.
const REACHED: Duration = Duration::from_secs(3);
/// Longest time of one access: a person may have to unlock the keyring.
const UNLOCKED: Duration = Duration::from_secs(60);

/// Finds out whether there is a keyring that can be written to, or why not. It is unlocked thereby.
pub(super) async fn check() -> Result<(), String> {
    reached().await?;
    let written = blocking(UNLOCKED, || {
        let probe = Entry::new(SERVICE, PROBE)?;
        probe.set_secret(b"roundtrip")?;
        probe.delete_credential()
    });
    written.await?.map_err(|error| error.to_string())
}

/// Loads the record of a server.
pub(super) async fn load(server: &str) -> Result<Option<Record>, StoreError> {
    let secret = match on_entry(server, |entry| entry.get_secret().map(Zeroizing::new)).await {
        Err(Failed::Keyring(Error::NoEntry)) => return Ok(None),
        secret => secret?,
    };
    let record = serde_json::from_slice(&secret);
    record.map(Some).map_err(|_| failed("its entry is not a whole record: sign out, and in again"))
}

/// Replaces the record of a server.
pub(super) async fn save(server: &str, record: &Record) -> Result<(), StoreError> {
    // A buffer that grows leaves copies behind; few records are longer.
    let mut secret = Zeroizing::new(Vec::with_capacity(16 * 1024));
    serde_json::to_writer(&mut *secret, record).map_err(|error| StoreError::Failed(error.into()))?;
    match on_entry(server, move |entry| entry.set_secret(&secret)).await {
        // 2560 bytes on Windows.
        Err(Failed::Keyring(Error::TooLong(..))) => {
            Err(failed("the tokens are too long for it: sign in with `--file`"))
        }
        saved => Ok(saved?),
    }
}

/// Deletes the record of a server; none is no error.
pub(super) async fn delete(server: &str) -> Result<(), StoreError> {
    match on_entry(server, |entry| entry.delete_credential()).await {
        Err(Failed::Keyring(Error::NoEntry)) => Ok(()),
        deleted => Ok(deleted?),
    }
}

/// Reason an entry could not be accessed.
enum Failed {
    Keyring(Error),
    /// It is out of reach, or does not answer.
    Unreachable(String),
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        self::failed(&match failed {
            Failed::Keyring(error) => error.to_string(),
            Failed::Unreachable(why) => why,
        })
    }
}

fn failed(why: &str) -> StoreError {
    StoreError::Failed(format!("the keyring of the operating system: {why}").into())
}

async fn on_entry<T: Send + 'static>(
    server: &str,
    access: impl FnOnce(&Entry) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failed> {
    reached().await.map_err(Failed::Unreachable)?;
    let server = server.to_owned();
    let accessed = blocking(UNLOCKED, move || access(&Entry::new(SERVICE, &server)?)).await;
    accessed.map_err(Failed::Unreachable)?.map_err(Failed::Keyring)
}

/// Connects to the keyring, once in a process.
async fn reached() -> Result<(), String> {
    let connected =
        blocking(REACHED, || Entry::store_status().as_ref().map(drop).map_err(ToString::to_string));
    connected.await?
}

/// Runs work of the keyring in a thread of its own. One that does not answer in time is left behind.
async fn blocking<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(ended) => ended.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {limit:?}")),
    }
}
