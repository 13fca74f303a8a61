//! Sealing keys, from text, files or the environment.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use roundtrip_core::error::debug_as_text;
use roundtrip_core::seal::{self, Key, KeyringError, Sealer, Suite};

/// Greatest size of a file of keys, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// Keys that seal `requestState`. The first one seals, every one opens: so keys are rotated by adding the new one at
/// the end, then moving it to the front, then removing the old one, each on all instances before the next.
///
/// Keys are text: base64 or hex of at least 32 random bytes, one a line or separated by commas. Lines that begin with
/// `#` are comments.
#[derive(Clone)]
pub struct Keyring(seal::Keyring);

/// Reason why keys could not be loaded.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The environment variable is not set.
    #[error("the environment variable {0} is not set: it holds the keys, one a line or separated by commas")]
    NotSet(String),
    /// The file cannot be read.
    #[error("the key file {path} cannot be read: {error}")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The text does not hold usable keys.
    #[error("{place}: {error}")]
    Unusable {
        /// The variable or the file they are in.
        place: String,
        /// The reason why they are not usable.
        error: KeyringError,
    },
    /// The operating system has no randomness.
    #[error("the operating system has no randomness: {0}")]
    NoRandomness(getrandom::Error),
}

impl fmt::Debug for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
}

impl Keyring {
    /// Creates a ring of one random key, known to this process alone. Its clock is the only one, so a state is refused as soon as
    /// the time for an answer is over.
    ///
    /// # Errors
    /// Fails if the operating system has no randomness.
    pub fn random() -> Result<Self, KeysError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(KeysError::NoRandomness)?;
        let ring = seal::Keyring::new([Key::generate(secret)]);
        ring.map(|ring| Self(ring.single_process()))
            .map_err(|error| KeysError::Unusable { place: "random key".into(), error })
    }

    /// Reads the keys in an environment variable.
    ///
    /// # Errors
    /// Fails if it is not set, or does not hold usable keys. The error never shows them.
    pub fn from_env(name: &str) -> Result<Self, KeysError> {
        let text = std::env::var(name).map_err(|_| KeysError::NotSet(name.to_owned()))?;
        Self::parse(&text, name)
    }

    /// Reads the keys in a file of 64 KiB at most, or behind a pipe, by which programs hand secrets over.
    ///
    /// # Errors
    /// Fails if it cannot be read, or does not hold usable keys. The error never shows them.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeysError> {
        let path = path.as_ref();
        let place = path.display().to_string();
        match read(path) {
            Ok(text) => Self::parse(&text, &place),
            Err(error) => Err(KeysError::Unreadable { path: place, error }),
        }
    }

    /// Chooses the cipher suite to seal with, in place of the one that is quickest on this processor. Tokens of every
    /// suite can be opened.
    #[must_use]
    pub fn suite(self, suite: Suite) -> Self {
        Self(self.0.suite(suite))
    }

    fn parse(text: &str, place: &str) -> Result<Self, KeysError> {
        let ring = seal::Keyring::parse(text);
        ring.map(Self).map_err(|error| KeysError::Unusable { place: place.to_owned(), error })
    }
}

/// Reads a text within bounds: a device may have no end.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// Parses keys from text.
impl std::str::FromStr for Keyring {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        Self::parse(text, "keys")
    }
}

impl From<Keyring> for Sealer {
    fn from(Keyring(ring): Keyring) -> Self {
        Self::new(ring)
    }
}

/// The ring by itself, as a store seals its records with it.
impl From<Keyring> for seal::Keyring {
    fn from(Keyring(ring): Keyring) -> Self {
        ring
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of the wrong name may be of any size, and a device without an end.
    #[test]
    fn a_file_of_keys_is_read_within_bounds() {
        let file = std::env::temp_dir().join(format!("roundtrip-keys-{}", std::process::id()));
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
        let comments = |size: u64| format!("{key}#{}", "x".repeat(size as usize - key.len() - 1));
        std::fs::write(&file, comments(MAX_FILE)).unwrap();
        assert!(Keyring::from_file(&file).is_ok());
        std::fs::write(&file, comments(MAX_FILE + 1)).unwrap();
        let refused = Keyring::from_file(&file).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(refused.contains("more than 65536 bytes"), "{refused}");
        #[cfg(unix)]
        assert!(Keyring::from_file("/dev/zero").unwrap_err().to_string().contains("more than 65536 bytes"));
    }
}
