//! Tokens: their bytes, their one spelling, and the checks when one is opened.

use std::fmt;
use std::time::Duration;

use base64_simd::URL_SAFE_NO_PAD;

use super::suite::{NONCE_LEN, TAG_LEN};
use super::{
    Binding, Claims, KeyId, Keyring, Reason, Rejected, SealError, Suite, Timestamp, TokenLimits, claims,
};

/// First byte of a token sealed by a codec. The tokens of a key ring name their suite there.
pub(super) const BY_CODEC: u8 = 2;

/// Length of version and key id, which are readable and authenticated.
const PREFIX_LEN: usize = 1 + KeyId::LEN;

/// Content of an opened token.
#[derive(Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its claims, checked against the call.
    pub claims: Claims,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Opened {
    /// Hides the payload, as the seal does.
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
    /// Fails if the token would be longer than allowed.
    pub fn seal(
        &self,
        claims: &Claims,
        payload: &[u8],
        nonce: [u8; 24],
        limits: &TokenLimits,
    ) -> Result<String, SealError> {
        let (key, suite) = self.sealing();
        let room = PREFIX_LEN + NONCE_LEN + claims::MAX_LEN + payload.len() + TAG_LEN;
        let mut bytes = Vec::with_capacity(room);
        bytes.push(suite.version());
        bytes.extend_from_slice(key.id.as_bytes());
        bytes.extend_from_slice(&nonce);
        claims.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        let size = fits(bytes.len() + TAG_LEN, limits)?;

        let (prefix, rest) = bytes.split_at_mut(PREFIX_LEN);
        let (_, plain) = rest.split_at_mut(NONCE_LEN);
        let tag = key.ciphers.encrypt(suite, nonce, prefix, plain);
        let tag = tag.ok_or(SealError::TooLarge { size, limit: limits.max_token })?;
        bytes.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode_to_string(bytes))
    }

    /// Opens a `requestState` and checks its claims against the call described by `expected`.
    ///
    /// # Errors
    /// Fails if it does not open, belongs to another call, or is not valid now.
    pub fn open(
        &self,
        token: &str,
        expected: &Binding,
        now: Timestamp,
        limits: &TokenLimits,
    ) -> Result<Opened, Rejected> {
        let (bytes, start, id, _) = self.unseal(token, limits)?;
        let allowed = (limits.max_flow_age, self.clock_skew(limits));
        admit(bytes, start, expected, now, allowed).map_err(|reason| Rejected::by_key(reason, id))
    }

    /// Checks the seal of a token and decrypts it. Returns its bytes, the place where its claims begin, its key and its suite.
    pub(super) fn unseal(
        &self,
        token: &str,
        limits: &TokenLimits,
    ) -> Result<(Vec<u8>, usize, KeyId, Suite), Rejected> {
        let (mut bytes, suite) = decode(token, limits, Suite::of_version)?;
        let (prefix, rest) = bytes.split_first_chunk_mut::<PREFIX_LEN>().ok_or(Reason::Malformed)?;
        let (nonce, rest) = rest.split_first_chunk_mut::<NONCE_LEN>().ok_or(Reason::Malformed)?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(Reason::Malformed)?;

        let [_, id @ ..] = *prefix;
        let id = KeyId(id);
        let key = self.find(id).ok_or_else(|| Rejected::by_key(Reason::UnknownKey, id))?;
        let opened = key.ciphers.decrypt(suite, *nonce, prefix, sealed, *tag);
        opened.ok_or_else(|| Rejected::by_key(Reason::Forged, id))?;

        let end = bytes.len() - TAG_LEN;
        bytes.truncate(end);
        Ok((bytes, PREFIX_LEN + NONCE_LEN, id, suite))
    }
}

/// Decodes a token's base64url after checking its size, and checks its version. `known` maps the version byte.
pub(super) fn decode<V>(
    token: &str,
    limits: &TokenLimits,
    known: impl FnOnce(u8) -> Option<V>,
) -> Result<(Vec<u8>, V), Reason> {
    if token.len() > limits.max_token {
        return Err(Reason::TooLarge);
    }
    // This variant refuses blanks, padding, the other alphabet and left-over bits: one spelling only.
    let bytes = URL_SAFE_NO_PAD.decode_to_vec(token).map_err(|_| Reason::Malformed)?;
    let version = *bytes.first().ok_or(Reason::Malformed)?;
    let known = known(version).ok_or(Reason::Format(version))?;
    Ok((bytes, known))
}

/// Decodes opened bytes from `start` on, and checks that the claims are valid for this call, now, given the greatest age of a
/// flow and the difference of clocks.
pub(super) fn admit(
    bytes: Vec<u8>,
    start: usize,
    expected: &Binding,
    now: Timestamp,
    (max_flow_age, clock_skew): (Option<Duration>, Duration),
) -> Result<Opened, Reason> {
    let (claims, payload) = split(bytes, start)?;
    claims.check(expected, now, max_flow_age, clock_skew)?;
    // They are equal but for what an older version leaves out, which its flow has from here on.
    Ok(Opened { claims: Claims { binding: *expected, ..claims }, payload })
}

/// Splits opened bytes from `start` on into claims and payload.
pub(super) fn split(mut bytes: Vec<u8>, start: usize) -> Result<(Claims, Vec<u8>), Reason> {
    let mut rest = bytes.get(start..).ok_or(Reason::Malformed)?;
    let claims = Claims::decode(&mut rest)?;
    let payload_at = bytes.len() - rest.len();
    bytes.drain(..payload_at);
    Ok((claims, bytes))
}

/// Returns the length of a token in characters, if it is within the limit.
pub(super) fn fits(bytes: usize, limits: &TokenLimits) -> Result<usize, SealError> {
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
        match decode(text, &TokenLimits::default(), Suite::of_version) {
            Ok((bytes, _)) => Some(bytes),
            // Valid base64url, whatever the content.
            Err(Reason::Format(_)) => REFERENCE.decode(text).ok(),
            Err(_) => None,
        }
    }

    /// S3: short ones, and some that are long enough for the widest registers and what is left over beside them.
    #[test]
    fn every_character_in_every_place_is_read_as_the_reference_reads_it() {
        for length in [1_u8, 2, 3, 94, 95, 96] {
            let bytes: Vec<u8> =
                (0..length).map(|at| at.wrapping_mul(151) ^ Suite::Xaes256Gcm.version()).collect();
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
