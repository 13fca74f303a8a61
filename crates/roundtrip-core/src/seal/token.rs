//! The token itself: its bytes, its one spelling, and what must be true before its content is believed.

use std::fmt;

use base64_simd::URL_SAFE_NO_PAD;
use chacha20poly1305::{AeadInOut, Tag, XNonce};

use super::{Binding, Claims, KeyId, Keyring, Limits, Reason, Rejected, SealError, Timestamp, claims};

/// The first byte of a token that a key ring sealed.
pub(super) const BY_KEYRING: u8 = 1;
/// The first byte of a token that a codec sealed.
pub(super) const BY_CODEC: u8 = 2;

const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;
/// Version and key id: readable, and authenticated.
const PREFIX_LEN: usize = 1 + KeyId::LEN;

/// What a token held.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    /// What it said about itself; true, and good for the call it came with.
    pub claims: Claims,
    /// What it carried.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Opened {
    /// Does not show the payload, which is what the seal is there to hide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("claims", &self.claims)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish()
    }
}

impl Keyring {
    /// Seals a flow's state with the first key. No two calls may have the same nonce: draw it at random.
    ///
    /// # Errors
    /// When the token would be longer than allowed.
    pub fn seal(
        &self,
        claims: &Claims,
        payload: &[u8],
        nonce: [u8; 24],
        limits: &Limits,
    ) -> Result<String, SealError> {
        let key = self.sealing();
        let room = PREFIX_LEN + NONCE_LEN + claims::MAX_LEN + payload.len() + TAG_LEN;
        let mut bytes = Vec::with_capacity(room);
        bytes.push(BY_KEYRING);
        bytes.extend_from_slice(key.id.as_bytes());
        bytes.extend_from_slice(&nonce);
        claims.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        let size = fits(bytes.len() + TAG_LEN, limits)?;

        let (prefix, rest) = bytes.split_at_mut(PREFIX_LEN);
        let (_, plain) = rest.split_at_mut(NONCE_LEN);
        let tag = key
            .cipher
            .encrypt_inout_detached(&XNonce::from(nonce), prefix, plain.into())
            // The cipher's own limit is 256 GiB.
            .map_err(|_| SealError::TooLarge { size, limit: limits.max_token })?;
        bytes.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode_to_string(bytes))
    }

    /// Opens a token that came with the call described by `expected`.
    ///
    /// # Errors
    /// When it does not open, is not of that call, or is not good now.
    pub fn open(
        &self,
        token: &str,
        expected: &Binding,
        now: Timestamp,
        limits: &Limits,
    ) -> Result<Opened, Rejected> {
        let mut bytes = decode(token, BY_KEYRING, limits)?;
        let (prefix, rest) = bytes.split_first_chunk_mut::<PREFIX_LEN>().ok_or(Reason::Malformed)?;
        let (nonce, rest) = rest.split_first_chunk_mut::<NONCE_LEN>().ok_or(Reason::Malformed)?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(Reason::Malformed)?;

        let [_, id @ ..] = *prefix;
        let id = KeyId(id);
        let key = self.find(id).ok_or_else(|| Rejected::by_key(Reason::UnknownKey, id))?;
        key.cipher
            .decrypt_inout_detached(&XNonce::from(*nonce), prefix, sealed.into(), &Tag::from(*tag))
            .map_err(|_| Rejected::by_key(Reason::Forged, id))?;

        let end = bytes.len() - TAG_LEN;
        bytes.truncate(end);
        admit(bytes, PREFIX_LEN + NONCE_LEN, expected, now, limits)
            .map_err(|reason| Rejected::by_key(reason, id))
    }
}

/// The bytes of a token that has the size, the spelling and the version that tokens have.
pub(super) fn decode(token: &str, version: u8, limits: &Limits) -> Result<Vec<u8>, Reason> {
    if token.len() > limits.max_token {
        return Err(Reason::TooLarge);
    }
    // This variant refuses blanks, padding, the other alphabet and left-over bits: one spelling only.
    let bytes = URL_SAFE_NO_PAD.decode_to_vec(token).map_err(|_| Reason::Malformed)?;
    match bytes.first() {
        Some(found) if *found == version => Ok(bytes),
        Some(found) => Err(Reason::Format(*found)),
        None => Err(Reason::Malformed),
    }
}

/// Reads opened bytes from `start` on, and believes them only if the claims are good for this call, now.
pub(super) fn admit(
    mut bytes: Vec<u8>,
    start: usize,
    expected: &Binding,
    now: Timestamp,
    limits: &Limits,
) -> Result<Opened, Reason> {
    let mut rest = bytes.get(start..).ok_or(Reason::Malformed)?;
    let claims = Claims::decode(&mut rest)?;
    claims.check(expected, now, limits)?;
    let payload_at = bytes.len() - rest.len();
    bytes.drain(..payload_at);
    Ok(Opened { claims, payload: bytes })
}

/// The characters that so many bytes become, if that many are allowed.
pub(super) fn fits(bytes: usize, limits: &Limits) -> Result<usize, SealError> {
    let size = base64::encoded_len(bytes, false).unwrap_or(usize::MAX);
    if size > limits.max_token {
        return Err(SealError::TooLarge { size, limit: limits.max_token });
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as REFERENCE;

    use super::*;

    fn read(text: &str) -> Option<Vec<u8>> {
        match decode(text, BY_KEYRING, &Limits::default()) {
            Ok(bytes) => Some(bytes),
            // Spelled well, whatever it holds.
            Err(Reason::Format(_)) => REFERENCE.decode(text).ok(),
            Err(_) => None,
        }
    }

    /// S3: short ones, and some that are long enough for the widest registers and what is left over beside them.
    #[test]
    fn every_character_in_every_place_is_read_as_the_reference_reads_it() {
        for length in [1_u8, 2, 3, 94, 95, 96] {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(151) ^ BY_KEYRING).collect();
            let text = REFERENCE.encode(&bytes);
            assert_eq!(text, URL_SAFE_NO_PAD.encode_to_string(&bytes));
            for place in 0..text.len() {
                for other in ('\0'..='\u{ff}').chain(['\u{ff0d}', '\u{ff3f}']) {
                    let changed = format!("{}{other}{}", &text[..place], &text[place + 1..]);
                    assert_eq!(read(&changed), REFERENCE.decode(&changed).ok(), "{changed:?}");
                }
            }
        }
    }
}
