//! Proof Key for Code Exchange (RFC 7636), with S256 alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::secret::Secret;

/// Verifier of a code: sent with the code, and as a digest with the authorization request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verifier(Secret);

impl Verifier {
    /// Makes a verifier of 43 characters from random bytes, which the caller must draw from a cryptographic source.
    ///
    /// ```
    /// use roundtrip_core::auth::Verifier;
    ///
    /// assert_eq!(Verifier::from_random([0; 32]).secret().expose().len(), 43);
    /// ```
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random)))
    }

    /// Returns the verifier, for the token request.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// Returns the challenge for the authorization request: `BASE64URL(SHA256(verifier))`.
    pub fn challenge(&self) -> String {
        challenge_of(self.0.expose())
    }
}

/// Returns the S256 challenge of a verifier.
pub fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}
