//! Private keys, which authenticate a client and prove that it holds a token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roundtrip_core::auth::{Algorithm, PublicKey, Secret, SignError, Signer};
use roundtrip_core::error::{ApiMisuse, Error};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;

use super::key_pair::KeyPair;

/// A private key: EC on P-256 or P-384 (`ES256`, `ES384`), Ed25519 (`EdDSA`) or RSA (`RS256`).
///
/// It authenticates a client by `private_key_jwt`, or binds tokens to their holder (DPoP). It is wiped from memory when dropped,
/// and `Debug` does not show it. A key in a security module is a [`Signer`] of your own.
///
/// ```
/// use roundtrip::oauth::PrivateKey;
///
/// let key = PrivateKey::generate()?;
/// let same = PrivateKey::from_pem(key.to_pem()?.expose())?.key_id("2026-11");
/// # Ok::<(), roundtrip::oauth::KeyError>(())
/// ```
pub struct PrivateKey {
    pair: KeyPair,
    public: PublicKey,
    algorithm: Algorithm,
    id: Option<String>,
}

/// Reason a private key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No private key is in the text.
    #[error("it has no private key: pass the text of a PEM file that has `BEGIN PRIVATE KEY`")]
    NoKey,
    /// A public key or a certificate is in the place of the private key.
    #[error("it is a public key or a certificate: pass the private key that belongs to it")]
    Public,
    /// The key is locked by a password.
    #[error("it is locked by a password: unlock it first, as with `openssl pkcs8 -in key.pem -out open.pem`")]
    Encrypted,
    /// The key has the format of OpenSSH.
    #[error("it has the format of OpenSSH: convert it with `ssh-keygen -p -m PKCS8 -f key`")]
    OpenSsh,
    /// The base64 or its frame is broken.
    #[error("its text is damaged: pass the whole PEM file, line breaks included")]
    Damaged,
    /// The kind of the key is not known, or it is too short.
    #[error("it is none of EC on P-256 or P-384, Ed25519, and RSA of at least 2048 bits")]
    Unsupported,
    /// The key does not sign by the algorithm that was chosen.
    #[error(
        "it does not sign by the algorithm that was chosen: RSA keys sign by RS and PS, others by their own"
    )]
    Algorithm,
    /// The operating system gave no key.
    #[error("no key could be made: the operating system has no random numbers now")]
    NotMade,
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        ApiMisuse::Settings(format!("the key cannot be used: {error}")).into()
    }
}

impl PrivateKey {
    /// Reads a key: the text of a PEM file, in PKCS#8 (`PRIVATE KEY`), SEC1 (`EC PRIVATE KEY`) or PKCS#1 (`RSA PRIVATE KEY`).
    ///
    /// # Errors
    /// Fails if it has no private key that is known; the error says what it has.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        use rustls_pki_types::pem::Error as PemError;
        if let Some(error) = other_format(pem) {
            return Err(error);
        }
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| match error {
            PemError::NoItemsFound => no_key(pem),
            _ => KeyError::Damaged,
        })?;
        KeyPair::read(&key).and_then(Self::new).ok_or(KeyError::Unsupported)
    }

    /// Makes a key on the curve P-256, which every server that takes DPoP knows.
    ///
    /// # Errors
    /// Fails if the operating system has no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        KeyPair::generate(Algorithm::ES256).ok().and_then(Self::new).ok_or(KeyError::NotMade)
    }

    fn new(pair: KeyPair) -> Option<Self> {
        let (public, algorithm) = (pair.public()?, pair.algorithm());
        Some(Self { pair, public, algorithm, id: None })
    }

    /// Names the id under which the public key is published (`kid`).
    #[must_use]
    pub fn key_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Chooses another algorithm: an RSA key signs by `RS256` at first, and can sign by `PS256` for one.
    ///
    /// # Errors
    /// Fails if the key does not sign by it.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Result<Self, KeyError> {
        if !self.public.fits(algorithm) {
            return Err(KeyError::Algorithm);
        }
        self.algorithm = algorithm;
        Ok(self)
    }

    /// Writes the key as PEM (PKCS#8). Store it as safely as a password.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    pub fn to_pem(&self) -> Result<Secret, KeyError> {
        let der = self.pair.to_pkcs8().map_err(|_| KeyError::Unsupported)?;
        let text = Secret::new(STANDARD.encode(&*der));
        let lines = text.expose().as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok());
        let mut pem = String::with_capacity(4096);
        pem.push_str("-----BEGIN PRIVATE KEY-----\n");
        lines.for_each(|line| pem.extend([line, "\n"]));
        pem.push_str("-----END PRIVATE KEY-----\n");
        Ok(Secret::new(pem))
    }
}

/// Returns the error of a text whose private key is in a format that is not read.
fn other_format(pem: &str) -> Option<KeyError> {
    if pem.contains("BEGIN ENCRYPTED PRIVATE KEY") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Some(KeyError::Encrypted);
    }
    pem.contains("BEGIN OPENSSH PRIVATE KEY").then_some(KeyError::OpenSsh)
}

fn no_key(pem: &str) -> KeyError {
    let has_public = ["PUBLIC KEY-----", "BEGIN CERTIFICATE-----"].iter().any(|mark| pem.contains(mark));
    if has_public { KeyError::Public } else { KeyError::NoKey }
}

impl Signer for PrivateKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn key_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn public_key(&self) -> PublicKey {
        self.public.clone()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.pair.sign(self.algorithm, message).map_err(|error| SignError(error.to_string()))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("algorithm", &self.algorithm.as_str())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
