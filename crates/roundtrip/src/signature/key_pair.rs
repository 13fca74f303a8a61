//! Key pairs of every kind that signs tokens.

#[cfg(feature = "oauth")]
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::auth::{Algorithm, PublicKey};
#[cfg(feature = "oauth")]
use rustls_pki_types::PrivateKeyDer;
#[cfg(feature = "oauth")]
use zeroize::Zeroizing;

/// Signature kinds by elliptic curve: `R` and `S` side by side, as RFC 7518 has it.
static P256: &EcdsaSigningAlgorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
static P384: &EcdsaSigningAlgorithm = &signature::ECDSA_P384_SHA384_FIXED_SIGNING;

/// A key pair.
pub(crate) enum KeyPair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl KeyPair {
    /// Makes a key for an algorithm; RSA keys have 2048 bits.
    pub(crate) fn generate(algorithm: Algorithm) -> Result<Self, Unspecified> {
        Ok(match algorithm {
            Algorithm::ES256 => Self::Ec(EcdsaKeyPair::generate(P256)?),
            Algorithm::ES384 => Self::Ec(EcdsaKeyPair::generate(P384)?),
            Algorithm::EdDSA => Self::Ed(Ed25519KeyPair::generate()?),
            _ => Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048)?),
        })
    }

    /// Reads a key of any kind that is known.
    #[cfg(feature = "oauth")]
    pub(super) fn read(key: &PrivateKeyDer<'_>) -> Option<Self> {
        let ec = |der: &[u8]| {
            let pair = EcdsaKeyPair::from_private_key_der(P256, der);
            pair.or_else(|_| EcdsaKeyPair::from_private_key_der(P384, der)).ok().map(Self::Ec)
        };
        match key {
            PrivateKeyDer::Sec1(key) => ec(key.secret_sec1_der()),
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(Self::Rsa),
            PrivateKeyDer::Pkcs8(key) => {
                let der = key.secret_pkcs8_der();
                let ed = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Self::Ed);
                let rsa = || RsaKeyPair::from_pkcs8(der).ok().map(Self::Rsa);
                ec(der).or_else(ed).or_else(rsa)
            }
            _ => None,
        }
    }

    /// Returns the algorithm that is used where none is chosen.
    #[cfg(feature = "oauth")]
    pub(super) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Ec(pair) if pair.algorithm() == P256 => Algorithm::ES256,
            Self::Ec(_) => Algorithm::ES384,
            Self::Ed(_) => Algorithm::EdDSA,
            Self::Rsa(_) => Algorithm::RS256,
        }
    }

    /// Returns the public key, or `None` for an RSA key of less than 2048 bits, which signs nothing.
    pub(crate) fn public(&self) -> Option<PublicKey> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        Some(match self {
            Self::Ec(pair) => {
                // A point that is not compressed: a mark, and two coordinates of one length.
                let point = pair.public_key().as_ref().get(1..)?;
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if x.len() == 32 { "P-256" } else { "P-384" };
                PublicKey::Ec { crv: crv.to_owned(), x: text(x), y: text(y) }
            }
            Self::Ed(pair) => {
                PublicKey::Okp { crv: "Ed25519".to_owned(), x: text(pair.public_key().as_ref()) }
            }
            Self::Rsa(pair) if pair.public_modulus_len() < 256 => return None,
            Self::Rsa(pair) => {
                let (numbers, _) = element(pair.public_key().as_ref())?;
                let (n, rest) = element(numbers)?;
                let (e, _) = element(rest)?;
                PublicKey::Rsa { n: text(n.strip_prefix(&[0]).unwrap_or(n)), e: text(e) }
            }
        })
    }

    /// Signs bytes.
    pub(crate) fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
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

    /// Writes the key as PKCS#8.
    #[cfg(feature = "oauth")]
    pub(super) fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, Unspecified> {
        let bytes = match self {
            Self::Ec(pair) => pair.to_pkcs8v1()?.as_ref().to_vec(),
            Self::Ed(pair) => pair.to_pkcs8v1()?.as_ref().to_vec(),
            Self::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der()?;
                der.as_ref().to_vec()
            }
        };
        Ok(Zeroizing::new(bytes))
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
