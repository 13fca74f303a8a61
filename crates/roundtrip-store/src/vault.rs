//! [`Vault`]: seals records before they are stored, and opens them again (K6).

use roundtrip::seal::{Keyring, OpenedRecord, RecordLabel};

use crate::StoreError;

/// First byte of a record that is not sealed. Sealed ones begin with the number of their suite, which is never 0.
const PLAIN: u8 = 0;

/// Seals records with the ring of a store, if it has one.
#[derive(Debug)]
pub(crate) struct Vault(Option<Keyring>);

impl Vault {
    pub(crate) fn new(ring: Option<Keyring>) -> Self {
        Self(ring)
    }

    pub(crate) fn seal(&self, label: RecordLabel<'_>, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        let Some(ring) = &self.0 else {
            return Ok([&[PLAIN], content].concat());
        };
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce).map_err(|_| StoreError::NoRandomness)?;
        Ok(ring.seal_record(label, content, nonce)?)
    }

    /// Opens a record. With a ring, one that is not sealed is refused: who can write to the database could plant it.
    pub(crate) fn open(&self, label: RecordLabel<'_>, stored: &[u8]) -> Result<OpenedRecord, StoreError> {
        match (&self.0, stored) {
            (None, [PLAIN, content @ ..]) => Ok(OpenedRecord { content: content.to_vec(), stale: false }),
            (None, _) => Err(StoreError::Sealed),
            (Some(_), [PLAIN, ..]) => Err(StoreError::NotSealed),
            (Some(ring), sealed) => Ok(ring.open_record(label, sealed)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use roundtrip::seal::Key;

    use super::*;

    /// K6: a store with a ring takes nothing that is not sealed, and one without says that it needs the ring.
    #[test]
    fn stores_with_and_without_a_ring_do_not_take_each_others_records() {
        let label = RecordLabel { kind: "test", id: b"1" };
        let ring = Keyring::new([Key::generate([1; 32])]).unwrap();
        let (plain, sealed) = (Vault::new(None), Vault::new(Some(ring)));
        for vault in [&plain, &sealed] {
            let stored = vault.seal(label, b"content").unwrap();
            assert_eq!(vault.open(label, &stored).unwrap().content, b"content");
        }
        let stored = plain.seal(label, b"content").unwrap();
        assert!(matches!(sealed.open(label, &stored), Err(StoreError::NotSealed)));
        let stored = sealed.seal(label, b"content").unwrap();
        assert!(matches!(plain.open(label, &stored), Err(StoreError::Sealed)));
        assert!(matches!(plain.open(label, b""), Err(StoreError::Sealed)));
        assert!(matches!(sealed.open(label, b""), Err(StoreError::Record(_))));
    }
}
