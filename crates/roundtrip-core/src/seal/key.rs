//! Keys: secrets, and their text form.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{
    GeneralPurpose, STANDARD_PAD_INDIFFERENT, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT,
};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::digest::show_in_hex;
use super::keyring::Slot;
use super::suite::{Ciphers, expand};

/// Domain separator for what is derived from a secret.
const SALT: &[u8] = b"roundtrip/seal/1";

/// A secret of 32 bytes or more. It is wiped from memory when dropped, and never shown.
pub struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// Least length of a secret, in bytes.
    pub const MIN_LEN: usize = 32;

    /// Creates a key from random bytes, which the caller must draw from a cryptographic source.
    pub fn generate(random: [u8; Self::MIN_LEN]) -> Self {
        Self(Zeroizing::new(random.to_vec()))
    }

    /// Creates a key from bytes that are secret already.
    ///
    /// # Errors
    /// Fails if there are too few bytes.
    pub fn from_bytes(secret: &[u8]) -> Result<Self, KeyError> {
        Self::checked(Zeroizing::new(secret.to_vec()))
    }

    /// Reads a secret in base64 (either alphabet, padded or not) or in hex.
    ///
    /// # Errors
    /// Fails if it is neither, or too short.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        // Text in hex digits alone is hex: read as base64, too short a secret would pass for a longer one.
        if text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Self::checked(from_hex(text)?);
        }
        let engine: GeneralPurpose =
            if text.contains(['-', '_']) { URL_SAFE_PAD_INDIFFERENT } else { STANDARD_PAD_INDIFFERENT };
        Self::checked(Zeroizing::new(engine.decode(text).map_err(|_| KeyError::Malformed)?))
    }

    /// Writes the secret as text that [`from_text`](Self::from_text) reads: for the file or the variable it is kept
    /// in, and nowhere else.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(&*self.0)
    }

    fn checked(secret: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        if secret.len() < Self::MIN_LEN {
            return Err(KeyError::Short { bytes: secret.len() });
        }
        Ok(Self(secret))
    }

    /// Derives the key's id and ciphers, after which the secret is not needed any more.
    pub(super) fn derive(&self) -> Slot {
        let secret = Hkdf::<Sha256>::new(Some(SALT), &self.0);
        Slot {
            id: KeyId::derive(&secret),
            ciphers: Ciphers::derive(&secret),
            records: Ciphers::derive_for_records(&secret),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", KeyId::derive(&Hkdf::new(Some(SALT), &self.0)))
    }
}

fn from_hex(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return Err(KeyError::Malformed);
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(KeyError::Malformed);
    let mut secret = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for &[high, low] in pairs {
        secret.push((digit(high)? << 4 | digit(low)?) as u8);
    }
    Ok(secret)
}

/// Public id of a key, derived from the secret without revealing it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(pub(super) [u8; Self::LEN]);

impl KeyId {
    /// Its length in bytes.
    pub const LEN: usize = 4;

    fn derive(secret: &Hkdf<Sha256>) -> Self {
        Self(*expand(secret, b"key id"))
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

show_in_hex!(KeyId);

/// Reason a secret is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Too few bytes.
    #[error("a key needs {} bytes or more and this one has {bytes}", Key::MIN_LEN)]
    Short {
        /// Its length in bytes.
        bytes: usize,
    },
    /// Neither base64 nor hex.
    #[error("a key is written in base64 or in hex, and this is neither")]
    Malformed,
}
