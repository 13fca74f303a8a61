//! Proofs of possession (RFC 9449): header and claims here, the signature by a [`Signer`].

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::jwt::{SignError, Signer, sign_jwt};
use super::secret::Secret;
use super::url::HttpUrl;
use crate::seal::Timestamp;

/// Longest nonce that is taken, in bytes.
const LONGEST_NONCE: usize = 1024;
/// Greatest number of origins whose nonce is kept.
const MOST_ORIGINS: usize = 64;

/// Name of the header that has the proof.
pub const DPOP: &str = "dpop";
/// Name of the header by which a server gives a nonce.
pub const DPOP_NONCE: &str = "dpop-nonce";

/// The request that a proof is for.
#[derive(Debug, Clone, Copy)]
pub struct Proof<'a> {
    /// Method of the request.
    pub method: &'a str,
    /// URL of the request; its query is left out of the proof.
    pub url: &'a HttpUrl,
    /// Token of the request, of which the proof has the digest. A token request has none.
    pub token: Option<&'a Secret>,
    /// Nonce that the server gave.
    pub nonce: Option<&'a str>,
    /// Time of the request.
    pub now: Timestamp,
    /// Random bytes that make the proof single.
    pub random: [u8; 32],
}

impl Proof<'_> {
    /// Signs the proof, for the header `DPoP`.
    ///
    /// # Errors
    /// Fails if the key cannot be used now.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, SignError> {
        let header = json!({ "typ": "dpop+jwt", "jwk": signer.public_key() });
        let mut claims = json!({
            "jti": URL_SAFE_NO_PAD.encode(self.random),
            "htm": self.method,
            "htu": self.url.without_query(),
            "iat": self.now.as_unix(),
        });
        if let Some(token) = self.token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(Sha256::digest(token.expose().as_bytes())).into();
        }
        if let Some(nonce) = self.nonce {
            claims["nonce"] = nonce.into();
        }
        // The key is in the proof itself, so it needs no id.
        sign_jwt(&Unnamed(signer), &header, &claims)
    }
}

/// A key without its id.
#[derive(Debug)]
struct Unnamed<'a>(&'a dyn Signer);

impl Signer for Unnamed<'_> {
    fn algorithm(&self) -> super::jwt::Algorithm {
        self.0.algorithm()
    }

    fn public_key(&self) -> super::jwk::PublicKey {
        self.0.public_key()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.0.sign(message)
    }
}

/// Reads the nonce of a response.
pub fn nonce_of(headers: &HeaderMap) -> Option<&str> {
    let nonce = headers.get(DPOP_NONCE)?.to_str().ok()?;
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (!nonce.is_empty() && nonce.len() <= LONGEST_NONCE && nonce.bytes().all(fits)).then_some(nonce)
}

/// Nonces by origin. A nonce is sent to the origin that asked for one, and to no other.
#[derive(Debug, Clone, Default)]
pub struct Nonces(BTreeMap<String, String>);

impl Nonces {
    /// Keeps the nonce of a response that demands one, or replaces the one that its origin gave before. Returns whether there
    /// was one to keep.
    pub fn take(&mut self, url: &HttpUrl, headers: &HeaderMap, demanded: bool) -> bool {
        let origin = url.origin();
        let Some(nonce) = nonce_of(headers) else {
            return false;
        };
        let known = self.0.contains_key(&origin);
        if !known && (!demanded || self.0.len() >= MOST_ORIGINS) {
            return false;
        }
        self.0.insert(origin, nonce.to_owned());
        true
    }

    /// Returns the nonce for a request.
    pub fn get(&self, url: &HttpUrl) -> Option<&str> {
        self.0.get(&url.origin()).map(String::as_str)
    }
}
