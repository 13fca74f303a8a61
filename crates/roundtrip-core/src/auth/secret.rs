//! Secrets: wiped when dropped, never shown.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// A token, password or verifier. It is wiped from memory when dropped, and `Debug` does not show it.
///
/// It serialises as its text: store what contains one as safely as a password.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text, for the request that needs it and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares with a text in a time that does not tell how much of it is right.
    pub fn matches(&self, text: &str) -> bool {
        // Digests of two different texts share no prefix that a sender could steer.
        Sha256::digest(self.0.as_bytes()) == Sha256::digest(text.as_bytes())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Secret {}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Writes the text itself: a copy of it would not be wiped.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
