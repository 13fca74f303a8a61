//! Pins: keyed digests that tie an answer to its question.
//!
//! A pin is a keyed digest: SipHash-2-4 under a secret that each flow draws for itself and keeps inside the seal. An
//! attacker who writes a part of a question, such as a name or a price in it, must not be able to prepare two
//! wordings that have the same pin, so that consent to the one is taken for consent to the other. Without the secret,
//! eight bytes leave them one chance in 2⁶⁴ for each attempt at a whole flow, and nothing to work on at home.

use std::fmt;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

/// The secret key of a flow's pins. It never leaves the seal and is not shown.
#[derive(Clone)]
pub struct PinKey([u8; Self::LEN]);

impl PinKey {
    /// Its length in bytes.
    pub const LEN: usize = 16;

    /// Creates a key from random bytes, which the caller must draw from a cryptographic source.
    pub const fn new(random: [u8; Self::LEN]) -> Self {
        Self(random)
    }

    /// Returns its bytes, to be sealed.
    pub(super) const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Returns the pin of a question: its kind, a part of fixed length, and a part of any length.
    pub(super) fn pin(&self, kind: u8, head: [u8; 15], tail: &[u8]) -> Pin {
        // Two whole words first, as two words, then the rest in one go: that is what the hash is quick with.
        let [h1, h2, h3, h4, h5, h6, h7, rest @ ..] = head;
        let mut hash = SipHasher24::new_with_key(&self.0);
        // Little-endian everywhere: a flow may go on at an instance of another architecture.
        hash.write_u64(u64::from_le_bytes([kind, h1, h2, h3, h4, h5, h6, h7]));
        hash.write_u64(u64::from_le_bytes(rest));
        Pin(hash.hash(tail).to_le_bytes())
    }
}

impl fmt::Debug for PinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinKey")
    }
}

/// A keyed digest of a question. Only pins of one flow can be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin([u8; Self::LEN]);

impl Pin {
    /// Its length in bytes.
    pub const LEN: usize = 8;

    /// Restores a pin from its bytes.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow's pins are the same on every instance, whatever its byte order.
    #[test]
    fn pins_do_not_depend_on_the_architecture() {
        let key = PinKey::new([7; PinKey::LEN]);
        let head = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(format!("{:?}", key.pin(3, head, b"Which day?")), "2316bcc54a489069");
    }
}
