//! Keys of an issuer for tests.

use std::fmt;
use std::io;

use roundtrip_core::auth::{Algorithm, PublicKey, SignError, Signer};
use serde_json::{Value, json};

use crate::signature::KeyPair;

/// A private key, and the id it is published under.
pub(super) struct SigningKey {
    id: String,
    algorithm: Algorithm,
    pair: KeyPair,
    public: PublicKey,
}

impl SigningKey {
    /// Makes a key.
    pub(super) fn generate(algorithm: Algorithm, number: usize) -> io::Result<Self> {
        let made = KeyPair::generate(algorithm).ok().and_then(|pair| Some((pair.public()?, pair)));
        let (public, pair) = made.ok_or_else(|| io::Error::other("no key could be made"))?;
        Ok(Self { id: format!("key-{number}"), algorithm, pair, public })
    }

    /// Returns the public key as a key set has it.
    pub(super) fn published(&self) -> Value {
        let mut key = json!(self.public);
        key["kid"] = json!(self.id);
        key["alg"] = json!(self.algorithm.as_str());
        key["use"] = json!("sig");
        key
    }
}

impl Signer for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn key_id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn public_key(&self) -> PublicKey {
        self.public.clone()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.pair.sign(self.algorithm, message).map_err(|error| SignError(error.to_string()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}
