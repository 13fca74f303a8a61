//! Sealing of records that a store keeps.
//!
//! A record is sealed by the same [`Keyring`] as tokens are, under keys derived for records alone: no token opens as a record,
//! and no record as a token. The bytes are those of a token (version, key id, nonce, sealed content, tag), without claims
//! and base64; the [`RecordLabel`] is authenticated with them.

use super::suite::{NONCE_LEN, TAG_LEN};
use super::{KeyId, Keyring, Suite};

/// Length of version and key id.
const PREFIX_LEN: usize = 1 + KeyId::LEN;

/// Place of a record in its store. A record moved to another place does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLabel<'a> {
    /// Kind of the record, such as `ledger reply`.
    pub kind: &'a str,
    /// Id of the record among those of its kind.
    pub id: &'a [u8],
}

/// Content of an opened record.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenedRecord {
    /// The content.
    pub content: Vec<u8>,
    /// Whether the key is not the one that the ring seals with: seal the record again.
    pub stale: bool,
}

impl std::fmt::Debug for OpenedRecord {
    /// Hides the content, as the seal does.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenedRecord({} bytes)", self.content.len())
    }
}

/// Reason a record does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Too short, or of an unknown format.
    #[error("the record is not a sealed one, or of a later version")]
    Malformed,
    /// Sealed with a key that is not on the ring.
    #[error(
        "the record is sealed with key {0}, which is not on the ring: put the key back until its records are gone"
    )]
    UnknownKey(KeyId),
    /// Changed, moved to another place, or never sealed by a holder of its key.
    #[error("the record was changed or moved: key {0} did not seal it as it is")]
    Forged(KeyId),
    /// Longer than the cipher takes.
    #[error("the record is too long to be sealed")]
    TooLong,
}

impl Keyring {
    /// Seals a record with the first key. No two calls may have the same nonce: draw it at random.
    ///
    /// # Errors
    /// Fails if the content is longer than 64 GiB.
    pub fn seal_record(
        &self,
        label: RecordLabel<'_>,
        content: &[u8],
        nonce: [u8; 24],
    ) -> Result<Vec<u8>, RecordError> {
        let (key, suite) = self.sealing();
        let mut bytes = Vec::with_capacity(PREFIX_LEN + NONCE_LEN + content.len() + TAG_LEN);
        bytes.push(suite.version());
        bytes.extend_from_slice(key.id.as_bytes());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(content);
        let (before, plain) = bytes.split_at_mut(PREFIX_LEN + NONCE_LEN);
        let encrypt = |associated: &[u8]| key.records.encrypt(suite, nonce, associated, plain);
        let tag = label.associated(&before[..PREFIX_LEN], encrypt).ok_or(RecordError::TooLong)?;
        bytes.extend_from_slice(&tag);
        Ok(bytes)
    }

    /// Opens a record that [`seal_record`](Self::seal_record) made with this label.
    ///
    /// # Errors
    /// Fails if its key is not on the ring, or it was changed or moved.
    pub fn open_record(&self, label: RecordLabel<'_>, sealed: &[u8]) -> Result<OpenedRecord, RecordError> {
        let (prefix, rest) = sealed.split_first_chunk::<PREFIX_LEN>().ok_or(RecordError::Malformed)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_LEN>().ok_or(RecordError::Malformed)?;
        let (content, tag) = rest.split_last_chunk::<TAG_LEN>().ok_or(RecordError::Malformed)?;
        let [version, id @ ..] = *prefix;
        let (suite, id) = (Suite::of_version(version).ok_or(RecordError::Malformed)?, KeyId(id));
        let key = self.find(id).ok_or(RecordError::UnknownKey(id))?;
        let mut content = content.to_vec();
        let decrypt = |associated: &[u8]| key.records.decrypt(suite, *nonce, associated, &mut content, *tag);
        label.associated(prefix, decrypt).ok_or(RecordError::Forged(id))?;
        Ok(OpenedRecord { content, stale: self.sealing().0.id != id })
    }
}

impl RecordLabel<'_> {
    /// Calls a function with the bytes that are authenticated with the content. The length tells the kind from the id. They are on
    /// the stack unless they are long.
    fn associated<T>(self, prefix: &[u8], with: impl FnOnce(&[u8]) -> T) -> T {
        let kind = self.kind.as_bytes();
        let parts = [prefix, &(kind.len() as u64).to_le_bytes(), kind, self.id];
        let mut short = [0; 128];
        let mut length = 0;
        for part in parts {
            let Some(place) = short.get_mut(length..length + part.len()) else {
                return with(&parts.concat());
            };
            place.copy_from_slice(part);
            length += part.len();
        }
        with(&short[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Key;

    const LABEL: RecordLabel<'_> = RecordLabel { kind: "reply", id: b"1" };

    fn ring(keys: &[u8]) -> Keyring {
        Keyring::new(keys.iter().map(|byte| Key::generate([*byte; 32]))).unwrap()
    }

    /// K6: a record opens in its own place alone, whole, and with a key of the ring; the content cannot be read from it.
    #[test]
    fn a_record_opens_as_it_was_sealed_and_nowhere_else() {
        for suite in [Suite::XChaCha20Poly1305, Suite::Xaes256Gcm] {
            let ring = ring(&[1]).suite(suite);
            let sealed = ring.seal_record(LABEL, b"the content", [7; 24]).unwrap();
            assert!(!sealed.windows(7).any(|part| part == b"content"));
            let opened = ring.open_record(LABEL, &sealed).unwrap();
            assert_eq!((opened.content.as_slice(), opened.stale), (b"the content".as_slice(), false));
            for other in [
                RecordLabel { kind: "reply", id: b"2" },
                RecordLabel { kind: "repl", id: b"y1" },
                RecordLabel { kind: "task", id: b"1" },
            ] {
                assert!(matches!(ring.open_record(other, &sealed), Err(RecordError::Forged(_))));
            }
            for place in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[place] ^= 0x40;
                assert!(ring.open_record(LABEL, &changed).is_err(), "{place}");
                assert!(ring.open_record(LABEL, &sealed[..place]).is_err(), "{place}");
            }
        }
    }

    /// K6: a key that is not the first opens, and says that the record is to be sealed again; one that is gone is named.
    #[test]
    fn a_rotated_key_is_stale_and_a_retired_one_is_named() {
        let old = ring(&[1]).seal_record(LABEL, b"x", [7; 24]).unwrap();
        assert!(ring(&[2, 1]).open_record(LABEL, &old).unwrap().stale);
        let error = ring(&[2]).open_record(LABEL, &old).unwrap_err();
        let id = ring(&[1]).key_ids().next().unwrap();
        assert_eq!(error, RecordError::UnknownKey(id));
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }

    /// K6, S1: records and tokens have keys of their own.
    #[test]
    fn a_record_is_not_sealed_with_the_key_of_tokens() {
        let ring = ring(&[1]);
        let (slot, suite) = ring.sealing();
        let (mut one, mut other) = (*b"same", *b"same");
        slot.ciphers.encrypt(suite, [7; 24], b"", &mut one);
        slot.records.encrypt(suite, [7; 24], b"", &mut other);
        assert_ne!(one, other);
    }

    /// K6: labels of any length are authenticated whole.
    #[test]
    fn a_record_opens_under_its_whole_label() {
        let ring = ring(&[1]);
        for length in [0, 1, 108, 109, 110, 111, 112, 500] {
            let mut id = vec![b'i'; length];
            let sealed = ring.seal_record(RecordLabel { kind: "reply", id: &id }, b"x", [7; 24]).unwrap();
            assert!(ring.open_record(RecordLabel { kind: "reply", id: &id }, &sealed).is_ok(), "{length}");
            id.push(b'i');
            assert!(ring.open_record(RecordLabel { kind: "reply", id: &id }, &sealed).is_err(), "{length}");
        }
    }

    #[test]
    fn a_record_is_the_same_in_every_release() {
        // Stores outlive releases: these bytes may change only with the version of the format.
        let ring = ring(&[1]).suite(Suite::Xaes256Gcm);
        let sealed = ring.seal_record(LABEL, b"x", [7; 24]).unwrap();
        let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "03e897a19c07070707070707070707070707070707070707070707070793f3bf51f88aa2da394be2343e896e9114"
        );
    }
}
