//! Keyring of the operating system: the Secret Service, the keychain of macOS, or the Credential Manager of Windows.

#[cfg(any(target_os = "macos", windows))]
mod native;
#[cfg(not(any(target_os = "macos", windows)))]
mod secret_service;

use std::time::Duration;

use roundtrip::oauth::store::{Record, StoreError};
use roundtrip::wire::json;
use zeroize::Zeroizing;

#[cfg(any(target_os = "macos", windows))]
use native as system;
#[cfg(not(any(target_os = "macos", windows)))]
use secret_service as system;

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
    reached(|| {
        system::set(PROBE, SERVICE.as_bytes())?;
        system::delete(PROBE)
    })
    .await
}

/// Loads the record of a server.
pub(super) async fn load(server: &str) -> Result<Option<Record>, StoreError> {
    let server = server.to_owned();
    let Some(secret) = reached(move || system::get(&server)).await.map_err(failed)? else { return Ok(None) };
    let record = json::from_slice(&secret);
    record.map(Some).map_err(|_| failed("its entry is not a whole record: sign out, and in again"))
}

/// Replaces the record of a server.
pub(super) async fn save(server: &str, record: &Record) -> Result<(), StoreError> {
    // A buffer that grows leaves copies behind; few records are longer.
    let mut secret = Zeroizing::new(Vec::with_capacity(16 * 1024));
    serde_json::to_writer(&mut *secret, record).map_err(|error| StoreError::Failed(error.into()))?;
    let server = server.to_owned();
    reached(move || system::set(&server, &secret)).await.map_err(failed)
}

/// Deletes the record of a server; none is no error.
pub(super) async fn delete(server: &str) -> Result<(), StoreError> {
    let server = server.to_owned();
    reached(move || system::delete(&server)).await.map_err(failed)
}

fn failed(why: impl Into<String>) -> StoreError {
    StoreError::Failed(format!("the keyring of the operating system: {}", why.into()).into())
}

/// Accesses the keyring, if it answers soon.
async fn reached<T: Send + 'static>(
    access: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    blocking(REACHED, system::connect).await?;
    blocking(UNLOCKED, access).await
}

/// Runs work in a thread of its own. It is left behind if it does not end in time.
async fn blocking<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(ended) => ended.map_err(|error| error.to_string())?,
        Err(_) => Err(format!("no answer within {limit:?}")),
    }
}
