//! Verification of signatures by public keys in the form of JSON (RFC 7515, RFC 7518, RFC 8037).

use aws_lc_rs::signature::{self, EcdsaVerificationAlgorithm, RsaParameters, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::auth::{Algorithm, PublicKey};

/// Returns whether a signature is by a key, over these bytes. RSA keys of less than 2048 bits sign nothing.
pub(crate) fn verify(key: &PublicKey, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
    key.fits(algorithm)
        && match key {
            PublicKey::Rsa { n, e } => verify_rsa(n, e, algorithm, signed, signature),
            PublicKey::Ec { x, y, .. } => verify_ec(x, y, algorithm, signed, signature),
            PublicKey::Okp { x, .. } => verify_ed25519(x, signed, signature),
            _ => None,
        }
        .unwrap_or(false)
}

fn verify_rsa(n: &str, e: &str, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> Option<bool> {
    let key = signature::RsaPublicKeyComponents { n: number(n)?, e: number(e)? };
    Some(key.verify(rsa(algorithm)?, signed, signature).is_ok())
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Decodes a number. Some issuers put a zero in front, as ASN.1 does.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = decode(text)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Some(bytes[zeros..].to_vec())
}

fn verify_ec(x: &str, y: &str, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> Option<bool> {
    // RFC 7518, 3.4: the signature is `R` and `S` side by side, which are the `FIXED` kinds.
    let (kind, size): (&'static EcdsaVerificationAlgorithm, _) = match algorithm {
        Algorithm::ES256 => (&signature::ECDSA_P256_SHA256_FIXED, 32),
        Algorithm::ES384 => (&signature::ECDSA_P384_SHA384_FIXED, 48),
        _ => return None,
    };
    let (x, y) = (decode(x)?, decode(y)?);
    if x.len() != size || y.len() != size {
        return None;
    }
    // An uncompressed point (SEC 1, 2.3.3).
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    Some(UnparsedPublicKey::new(kind, point).verify(signed, signature).is_ok())
}

fn verify_ed25519(x: &str, signed: &[u8], signature: &[u8]) -> Option<bool> {
    Some(UnparsedPublicKey::new(&signature::ED25519, decode(x)?).verify(signed, signature).is_ok())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
