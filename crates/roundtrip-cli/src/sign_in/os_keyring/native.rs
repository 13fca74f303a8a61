//! The keychain of macOS, and the Credential Manager of Windows.

use keyring::v1::{Entry, Error};
use zeroize::Zeroizing;

use super::SERVICE;

/// Opens the keyring, once in a process.
pub(super) fn connect() -> Result<(), String> {
    Entry::store_status().as_ref().map(drop).map_err(ToString::to_string)
}

/// Returns the secret of an entry.
pub(super) fn get(user: &str) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    match entry(user)?.get_secret() {
        Ok(secret) => Ok(Some(Zeroizing::new(secret))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces the secret of an entry.
pub(super) fn set(user: &str, secret: &[u8]) -> Result<(), String> {
    entry(user)?.set_secret(secret).map_err(|error| match error {
        // 2560 bytes on Windows.
        Error::TooLong(..) => "the tokens are too long for it: sign in with `--file`".to_owned(),
        error => error.to_string(),
    })
}

/// Deletes an entry; none is no error.
pub(super) fn delete(user: &str) -> Result<(), String> {
    match entry(user)?.delete_credential() {
        Err(error) if !matches!(error, Error::NoEntry) => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn entry(user: &str) -> Result<Entry, String> {
    Entry::new(SERVICE, user).map_err(|error| error.to_string())
}
