//! [`Vault`]: seals records before they are stored, and opens them again (K6).

use roundtrip::seal::{Keyring, OpenedRecord, RecordLabel};

use crate::StoreError;

/// First byte of a record that is not sealed. Sealed ones begin with the number of their suite, which is never 0.
const PLAIN: u8 = 0;

/// Most nonces that are drawn at once.
const AT_ONCE: usize = 4;

/// Nonces of records that are sealed together. They are drawn together: asking the system costs as much as to seal a short record.
pub(crate) struct Nonces {
    drawn: [[u8; 24]; AT_ONCE],
    /// Number of those drawn that are left.
    left: usize,
    /// Number to draw at once.
    wanted: usize,
}

impl Nonces {
    /// Returns the nonce of a record that is sealed by itself.
    fn for_one() -> Self {
        Self { drawn: [[0; 24]; AT_ONCE], left: 0, wanted: 1 }
    }

    /// Returns nonces for several records. None is drawn before the first is needed.
    #[cfg(any(test, feature = "postgres", feature = "sqlite"))]
    pub(crate) fn for_several() -> Self {
        Self { wanted: AT_ONCE, ..Self::for_one() }
    }

    fn next(&mut self) -> Result<[u8; 24], StoreError> {
        if self.left == 0 {
            getrandom::fill(self.drawn[..self.wanted].as_flattened_mut())
                .map_err(|_| StoreError::NoRandomness)?;
            self.left = self.wanted;
        }
        self.left -= 1;
        Ok(self.drawn[self.left])
    }
}

/// Seals records with the ring of a store, if it has one.
#[derive(Debug)]
pub(crate) struct Vault(Option<Keyring>);

impl Vault {
    pub(crate) fn new(ring: Option<Keyring>) -> Self {
        Self(ring)
    }

    pub(crate) fn seal(&self, label: RecordLabel<'_>, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.seal_with(&mut Nonces::for_one(), label, content)
    }

    /// Seals a record with the next of these nonces.
    pub(crate) fn seal_with(
        &self,
        nonces: &mut Nonces,
        label: RecordLabel<'_>,
        content: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        match &self.0 {
            Some(ring) => Ok(ring.seal_record(label, content, nonces.next()?)?),
            None => Ok([&[PLAIN], content].concat()),
        }
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

    /// K6: no nonce is used twice, however many are drawn at once.
    #[test]
    fn no_nonce_is_used_twice() {
        let mut seen = std::collections::HashSet::new();
        for mut nonces in [Nonces::for_one(), Nonces::for_several()] {
            for _ in 0..3 * AT_ONCE {
                let nonce = nonces.next().unwrap();
                assert!(nonce != [0; 24] && seen.insert(nonce));
            }
        }
    }

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
