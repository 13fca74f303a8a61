//! The Secret Service of freedesktop.org: GNOME Keyring, KWallet, KeePassXC.

use std::collections::HashMap;

use dbus_secret_service::{EncryptionType, Error, SecretService};
use zeroize::Zeroizing;

use super::{SERVICE, UNLOCKED};

/// Content type of an entry, which is JSON in UTF-8.
const CONTENT_TYPE: &str = "text/plain";

/// Connects to the service. Each of its calls takes two seconds at most, but for questions to the user.
pub(super) fn connect() -> Result<(), String> {
    connected().map(drop).map_err(text)
}

/// Returns the secret of an entry.
pub(super) fn get(user: &str) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    let service = connected().map_err(text)?;
    let found = service.search_items(attributes(user)).map_err(text)?;
    let Some(item) = found.unlocked.first().or(found.locked.first()) else { return Ok(None) };
    item.ensure_unlocked().map_err(text)?;
    item.get_secret().map(|secret| Some(Zeroizing::new(secret))).map_err(text)
}

/// Replaces the secret of an entry.
pub(super) fn set(user: &str, secret: &[u8]) -> Result<(), String> {
    let service = connected().map_err(text)?;
    let collection = service.get_default_collection().map_err(text)?;
    collection.ensure_unlocked().map_err(text)?;
    let label = format!("Roundtrip: {user}");
    collection.create_item(&label, attributes(user), secret, true, CONTENT_TYPE).map(drop).map_err(text)
}

/// Deletes an entry; none is no error.
pub(super) fn delete(user: &str) -> Result<(), String> {
    let service = connected().map_err(text)?;
    let found = service.search_items(attributes(user)).map_err(text)?;
    for item in found.unlocked.iter().chain(&found.locked) {
        item.ensure_unlocked().and_then(|()| item.delete()).map_err(text)?;
    }
    Ok(())
}

/// Opens a session without encryption: the bus is a socket of the user's own, and who reads it can ask the keyring as well.
fn connected() -> Result<SecretService, Error> {
    SecretService::connect_with_max_prompt_timeout(EncryptionType::Plain, UNLOCKED.as_secs())
}

/// Returns the attributes of an entry, by the names that other programs use.
fn attributes(user: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", user)])
}

/// Returns the text of an error, in words for users where libdbus has none.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn text(error: Error) -> String {
    match &error {
        Error::Dbus(bus) if bus.name() == Some("org.freedesktop.DBus.Error.NotSupported") => {
            "there is no D-Bus session".to_owned()
        }
        Error::NoResult => "the Secret Service has no default collection".to_owned(),
        _ => error.to_string(),
    }
}
