//! Keys of an issuer for tests.

use std::fmt;
use std::io;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::auth::{Algorithm, PublicKey, SignError, Signer};
use serde_json::{Value, json};

/// A private key, and the id it is published under.
pub(super) struct SigningKey {
    id: String,
    algorithm: Algorithm,
    pair: Pair,
    public: PublicKey,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    /// Makes a key; RSA keys have 2048 bits.
    pub(super) fn generate(algorithm: Algorithm, number: usize) -> io::Result<Self> {
        let made = Pair::generate(algorithm).ok().and_then(|pair| Some((pair.public()?, pair)));
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

impl Pair {
    fn generate(algorithm: Algorithm) -> Result<Self, Unspecified> {
        Ok(match algorithm {
            Algorithm::ES256 => {
                Self::Ec(EcdsaKeyPair::generate(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)?)
            }
            Algorithm::ES384 => {
                Self::Ec(EcdsaKeyPair::generate(&signature::ECDSA_P384_SHA384_FIXED_SIGNING)?)
            }
            Algorithm::EdDSA => Self::Ed(Ed25519KeyPair::generate()?),
            _ => Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048)?),
        })
    }

    fn public(&self) -> Option<PublicKey> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        Some(match self {
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref().get(1..)?;
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if x.len() == 32 { "P-256" } else { "P-384" };
                PublicKey::Ec { crv: crv.to_owned(), x: text(x), y: text(y) }
            }
            Self::Ed(pair) => {
                PublicKey::Okp { crv: "Ed25519".to_owned(), x: text(pair.public_key().as_ref()) }
            }
            Self::Rsa(pair) => {
                let (numbers, _) = element(pair.public_key().as_ref())?;
                let (n, rest) = element(numbers)?;
                let (e, _) = element(rest)?;
                PublicKey::Rsa { n: text(n.strip_prefix(&[0]).unwrap_or(n)), e: text(e) }
            }
        })
    }

    fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        Ok(match self {
            Self::Ec(pair) => pair.sign(&random, message)?.as_ref().to_vec(),
            Self::Ed(pair) => pair.try_sign(message)?.as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(rsa(algorithm), &random, message, &mut signature)?;
                signature
            }
        })
    }
}

fn rsa(algorithm: Algorithm) -> &'static dyn RsaEncoding {
    match algorithm {
        Algorithm::RS384 => &signature::RSA_PKCS1_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_SHA512,
        _ => &signature::RSA_PKCS1_SHA256,
    }
}

/// Takes an element of DER apart: its content, and what follows it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    rest.split_at_checked(length)
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
