//! Public keys as JSON (RFC 7517): which algorithm they fit, and their thumbprint.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::json::{self, DocumentError};
use super::jwt::{Algorithm, JwtHeader};
use crate::wire::json::from_value;

/// Greatest number of keys in a set that is read.
const MOST_KEYS: usize = 128;

/// A public key. Its numbers are base64url as they came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kty")]
#[non_exhaustive]
pub enum PublicKey {
    /// RSA.
    #[serde(rename = "RSA")]
    Rsa {
        /// Modulus.
        n: String,
        /// Exponent.
        e: String,
    },
    /// A point on an elliptic curve: `P-256` or `P-384`.
    #[serde(rename = "EC")]
    Ec {
        /// Name of the curve.
        crv: String,
        /// First coordinate.
        x: String,
        /// Second coordinate.
        y: String,
    },
    /// Edwards curve: `Ed25519`.
    #[serde(rename = "OKP")]
    Okp {
        /// Name of the curve.
        crv: String,
        /// The key.
        x: String,
    },
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Any {
            kty: String,
            n: Option<String>,
            e: Option<String>,
            crv: Option<String>,
            x: Option<String>,
            y: Option<String>,
        }
        let Any { kty, n, e, crv, x, y } = Any::deserialize(deserializer)?;
        let needs = |member: Option<String>, name| member.ok_or_else(|| D::Error::missing_field(name));
        match &*kty {
            "RSA" => Ok(Self::Rsa { n: needs(n, "n")?, e: needs(e, "e")? }),
            "EC" => Ok(Self::Ec { crv: needs(crv, "crv")?, x: needs(x, "x")?, y: needs(y, "y")? }),
            "OKP" => Ok(Self::Okp { crv: needs(crv, "crv")?, x: needs(x, "x")? }),
            other => Err(D::Error::unknown_variant(other, &["RSA", "EC", "OKP"])),
        }
    }
}

impl PublicKey {
    /// Returns whether signatures of an algorithm can be by this key.
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        match (self, algorithm) {
            (Self::Ec { crv, .. }, Algorithm::ES256) => crv == "P-256",
            (Self::Ec { crv, .. }, Algorithm::ES384) => crv == "P-384",
            (Self::Okp { crv, .. }, Algorithm::EdDSA) => crv == "Ed25519",
            (Self::Rsa { .. }, algorithm) => algorithm.is_rsa(),
            _ => false,
        }
    }

    /// Returns the thumbprint (RFC 7638), by which a token is bound to a key.
    pub fn thumbprint(&self) -> String {
        // The required members alone, in the order of their names.
        let text = match self {
            Self::Rsa { n, e } => format!(r#"{{"e":{},"kty":"RSA","n":{}}}"#, json!(e), json!(n)),
            Self::Ec { crv, x, y } => {
                format!(r#"{{"crv":{},"kty":"EC","x":{},"y":{}}}"#, json!(crv), json!(x), json!(y))
            }
            Self::Okp { crv, x } => format!(r#"{{"crv":{},"kty":"OKP","x":{}}}"#, json!(crv), json!(x)),
        };
        URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
    }
}

/// The keys of an issuer that can verify signatures.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<Entry>);

#[derive(Debug, Clone)]
struct Entry {
    id: Option<String>,
    algorithm: Option<String>,
    key: PublicKey,
}

impl KeySet {
    /// Reads a set. Keys of other kinds, for encryption, and symmetric ones are left out.
    ///
    /// # Errors
    /// Fails if it is not a JSON object with `keys`.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = json::document(bytes)?;
        Ok(Self(document.keys.iter().filter_map(Entry::read).take(MOST_KEYS).collect()))
    }

    /// Iterates over the keys that a token may be signed with: of the algorithm it names, and of its `kid` if it names one.
    pub fn candidates<'a>(&'a self, header: &'a JwtHeader) -> impl Iterator<Item = &'a PublicKey> {
        let fits = |entry: &&Entry| {
            let algorithm = entry.algorithm.as_deref().is_none_or(|name| name == header.algorithm.as_str());
            let id = header.key_id.is_none() || entry.id == header.key_id;
            id && algorithm && entry.key.fits(header.algorithm)
        };
        self.0.iter().filter(fits).map(|entry| &entry.key)
    }

    /// Returns whether the set has no key that verifies signatures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a key of this id is in the set, whatever it is for.
    pub fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|entry| entry.id.as_deref() == Some(id))
    }
}

impl Entry {
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let signs = text("use").is_none_or(|usage| usage == "sig");
        let operations = value.get("key_ops").and_then(Value::as_array);
        let verifies = operations.is_none_or(|all| all.iter().any(|operation| operation == "verify"));
        if !signs || !verifies {
            return None;
        }
        let key = from_value(value).ok()?;
        Some(Self { id: text("kid").map(str::to_owned), algorithm: text("alg").map(str::to_owned), key })
    }
}
