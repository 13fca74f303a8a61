//! JSON Web Tokens in compact form (RFC 7515, RFC 7519): taken apart and put together. Signatures are made and checked elsewhere.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::claims::TokenRefusal;
use super::json;
use super::jwk::PublicKey;
use crate::wire::json::from_slice;

/// Longest token that is decoded, in bytes.
pub const LONGEST_TOKEN: usize = 16 * 1024;

/// Signature algorithms that are accepted: asymmetric ones alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "names of RFC 7518 and RFC 8037")]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl Algorithm {
    const ALL: [(Self, &str); 9] = [
        (Self::RS256, "RS256"),
        (Self::RS384, "RS384"),
        (Self::RS512, "RS512"),
        (Self::PS256, "PS256"),
        (Self::PS384, "PS384"),
        (Self::PS512, "PS512"),
        (Self::ES256, "ES256"),
        (Self::ES384, "ES384"),
        (Self::EdDSA, "EdDSA"),
    ];

    /// Reads the name of an algorithm. `none` and symmetric ones are not among them.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm)
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    pub(super) fn is_rsa(self) -> bool {
        self.as_str().starts_with(['R', 'P'])
    }
}

/// Header of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JwtHeader {
    /// `alg`.
    pub algorithm: Algorithm,
    /// `typ`, without the prefix `application/`, in lower case.
    pub kind: Option<String>,
    /// `kid`.
    pub key_id: Option<String>,
}

/// A token that was taken apart, and whose signature has not been looked at.
pub struct Jwt<'a> {
    header: JwtHeader,
    signed: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> Jwt<'a> {
    /// Returns whether a text has the form of a signed token, which may be one that is not accepted: three parts in base64url, of
    /// which the first is a JSON object. Opaque tokens may have dots too.
    pub fn has_form(token: &str) -> bool {
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let mut parts = token.split('.');
        let header = parts.next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok());
        let is_object = |header: Vec<u8>| from_slice::<Map<String, Value>>(&header).is_ok();
        token.len() <= LONGEST_TOKEN
            && token.split('.').count() == 3
            && parts.all(|part| part.bytes().all(is_base64))
            && header.is_some_and(is_object)
    }

    /// Takes a token apart.
    ///
    /// # Errors
    /// Fails if it is too long, not a signed token, of an algorithm that is not accepted, or has `crit`.
    pub fn parse(token: &'a str) -> Result<Self, TokenRefusal> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenRefusal::TooLarge);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefusal::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenRefusal::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefusal::Malformed);
        let header = read_header(&decode(header)?)?;
        Ok(Self { header, signed, payload: decode(payload)?, signature: decode(signature)? })
    }

    /// Returns the header.
    pub fn header(&self) -> &JwtHeader {
        &self.header
    }

    /// Returns the bytes that the signature is over.
    pub fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    /// Returns the signature.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// Reads the claims. They are worth nothing before the signature has been verified.
    ///
    /// # Errors
    /// Fails if they are not a JSON object, and if one is there twice.
    pub fn claims(&self) -> Result<Map<String, Value>, TokenRefusal> {
        json::object(&self.payload).map_err(|_| TokenRefusal::Malformed)
    }
}

fn read_header(bytes: &[u8]) -> Result<JwtHeader, TokenRefusal> {
    let header = json::object(bytes).map_err(|_| TokenRefusal::Malformed)?;
    let text = |name: &str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(TokenRefusal::Malformed),
    };
    if header.contains_key("crit") {
        return Err(TokenRefusal::Critical);
    }
    // RFC 7515, 4.1.9: the prefix may be left out.
    let kind = text("typ")?.map(str::to_ascii_lowercase);
    let kind = kind.map(|kind| kind.strip_prefix("application/").unwrap_or(&kind).to_owned());
    Ok(JwtHeader {
        algorithm: text("alg")?.and_then(Algorithm::parse).ok_or(TokenRefusal::Algorithm)?,
        kind,
        key_id: text("kid")?.map(str::to_owned),
    })
}

/// Shows the header alone.
impl fmt::Debug for Jwt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").field("header", &self.header).finish_non_exhaustive()
    }
}

/// A private key, wherever it is kept.
pub trait Signer: Send + Sync + fmt::Debug {
    /// Returns the algorithm of its signatures.
    fn algorithm(&self) -> Algorithm;

    /// Returns the id under which its public key is published, if it is.
    fn key_id(&self) -> Option<&str> {
        None
    }

    /// Returns the public key. A proof of possession contains it.
    fn public_key(&self) -> PublicKey;

    /// Signs bytes. A signature by elliptic curve is `R` and `S` side by side, as RFC 7518 has it.
    ///
    /// # Errors
    /// Fails if the key cannot be used now.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError>;
}

/// A key that cannot be used now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key did not sign: {0}")]
pub struct SignError(pub String);

/// Signs a token. `header` has what is beside `alg` and `kid`.
///
/// # Errors
/// Fails if the key cannot be used now.
pub fn sign_jwt(signer: &dyn Signer, header: &Value, claims: &Value) -> Result<String, SignError> {
    let mut whole = json!({ "alg": signer.algorithm().as_str() });
    if let Some(id) = signer.key_id() {
        whole["kid"] = json!(id);
    }
    for (name, value) in header.as_object().into_iter().flatten() {
        whole[name] = value.clone();
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&whole), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}
