//! Digests of the parts a token is bound to.

use sha2::{Digest as _, Sha256};

/// Domain separator: sets these digests apart from all others, and this format from the next.
const DOMAIN: &[u8] = b"roundtrip/digest/1";

/// The first 16 bytes of a SHA-256 over labelled, length-prefixed parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; Self::LEN]);

impl Digest {
    /// Its length in bytes.
    pub const LEN: usize = 16;

    /// Digests parts. Another label, another order, or another place to split gives another digest.
    pub fn of(label: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(DOMAIN);
        for part in [label.as_bytes()].iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut digest = [0; Self::LEN];
        digest.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(digest)
    }

    /// Restores a digest from its bytes.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

/// Implements `Display` and `Debug` for a newtype of bytes, in lower-case hex.
macro_rules! show_in_hex {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(super) use show_in_hex;

show_in_hex!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    /// S4: no two ways to split the same bytes into fields are taken for each other.
    #[test]
    fn labels_and_splits_tell_digests_apart() {
        let digests = [
            Digest::of("a", &[b"bc"]),
            Digest::of("ab", &[b"c"]),
            Digest::of("a", &[b"b", b"c"]),
            Digest::of("a", &[b"c", b"b"]),
            Digest::of("a", &[b"bc", b""]),
            Digest::of("a", &[b"", b"bc"]),
            Digest::of("a", &[]),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest), "{index}");
        }
    }

    #[test]
    fn a_digest_is_the_same_in_every_release() {
        // Instances of two releases share flows: this value may change only with the format's version.
        assert_eq!(
            format!("{:?}", Digest::of("label", &[b"one", b"two"])),
            "5d16b915520ea7a6d23afe566ff23e0a"
        );
    }
}
