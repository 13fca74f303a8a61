//! Cipher suites of tokens. Each token names its own, and every instance opens all of them.

use aead::{AeadInOut, KeyInit, Nonce, Tag};
use chacha20poly1305::XChaCha20Poly1305;
use hkdf::Hkdf;
use sha2::Sha256;
use xaes_256_gcm::Xaes256Gcm;
use zeroize::Zeroizing;

/// Length of a nonce in bytes: long enough to draw at random, for a whole fleet that shares a key.
pub(super) const NONCE_LEN: usize = 24;
/// Length of an authentication tag in bytes.
pub(super) const TAG_LEN: usize = 16;

/// An authenticated cipher. All of them have nonces of 192 bits, which are drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Suite {
    /// XChaCha20-Poly1305, for processors without AES instructions.
    XChaCha20Poly1305 = 1,
    /// XAES-256-GCM: quick on short messages where the processor has AES instructions, slow where it has not.
    Xaes256Gcm = 3,
}

impl Suite {
    /// Returns the quickest suite on this processor.
    pub fn fastest() -> Self {
        if has_aes() { Self::Xaes256Gcm } else { Self::XChaCha20Poly1305 }
    }

    /// Returns the first byte of its tokens.
    pub(super) const fn version(self) -> u8 {
        self as u8
    }

    pub(super) const fn of_version(version: u8) -> Option<Self> {
        match version {
            1 => Some(Self::XChaCha20Poly1305),
            3 => Some(Self::Xaes256Gcm),
            _ => None,
        }
    }
}

/// Returns whether the processor has instructions for AES and for the multiplication of GCM.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The ciphers of one key. Boxed, so that moving them about leaves no copies that are never wiped.
pub(super) struct Ciphers {
    xaes: Box<Xaes256Gcm>,
    xchacha: Box<XChaCha20Poly1305>,
}

impl Ciphers {
    /// Derives a key of its own for each suite, for tokens.
    pub(super) fn derive(secret: &Hkdf<Sha256>) -> Self {
        Self::labelled(secret, b"xaes256gcm", b"xchacha20poly1305")
    }

    /// Derives a key of its own for each suite, for records of a store.
    pub(super) fn derive_for_records(secret: &Hkdf<Sha256>) -> Self {
        Self::labelled(secret, b"record xaes256gcm", b"record xchacha20poly1305")
    }

    fn labelled(secret: &Hkdf<Sha256>, xaes: &[u8], xchacha: &[u8]) -> Self {
        Self {
            xaes: Box::new(Xaes256Gcm::new((&*expand::<32>(secret, xaes)).into())),
            xchacha: Box::new(XChaCha20Poly1305::new((&*expand::<32>(secret, xchacha)).into())),
        }
    }

    /// Encrypts in place and returns the tag. `None` if the input is longer than the cipher takes, which is 64 GiB.
    pub(super) fn encrypt(
        &self,
        suite: Suite,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        plain: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        let tag = match suite {
            Suite::XChaCha20Poly1305 => self.xchacha.encrypt_inout_detached(
                &Nonce::<XChaCha20Poly1305>::from(nonce),
                associated,
                plain.into(),
            ),
            Suite::Xaes256Gcm => {
                self.xaes.encrypt_inout_detached(&Nonce::<Xaes256Gcm>::from(nonce), associated, plain.into())
            }
        };
        tag.ok().map(Into::into)
    }

    /// Decrypts in place. `None` if the bytes were changed, or sealed with another key.
    pub(super) fn decrypt(
        &self,
        suite: Suite,
        nonce: [u8; NONCE_LEN],
        associated: &[u8],
        sealed: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()> {
        let opened = match suite {
            Suite::XChaCha20Poly1305 => self.xchacha.decrypt_inout_detached(
                &Nonce::<XChaCha20Poly1305>::from(nonce),
                associated,
                sealed.into(),
                &Tag::<XChaCha20Poly1305>::from(tag),
            ),
            Suite::Xaes256Gcm => self.xaes.decrypt_inout_detached(
                &Nonce::<Xaes256Gcm>::from(nonce),
                associated,
                sealed.into(),
                &Tag::<Xaes256Gcm>::from(tag),
            ),
        };
        opened.ok()
    }
}

/// Derives bytes from a secret, other ones for each label.
#[expect(clippy::expect_used, reason = "hkdf fails only when asked for more than 8,160 bytes")]
pub(super) fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> Zeroizing<[u8; N]> {
    let mut derived = Zeroizing::new([0; N]);
    secret.expand(label, &mut *derived).expect("a short output");
    derived
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1: the behaviour of the cipher is the published one, whatever a release of its library does: the two test vectors of
    /// the XAES-256-GCM specification (C2SP).
    #[test]
    fn xaes_256_gcm_gives_the_published_vectors() {
        let vectors: [(u8, &[u8], &str); 2] = [
            (1, b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
            (3, b"c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
        ];
        for (key, associated, published) in vectors {
            let cipher = Xaes256Gcm::new(&[key; 32].into());
            let nonce = Nonce::<Xaes256Gcm>::from(*b"ABCDEFGHIJKLMNOPQRSTUVWX");
            let mut text = *b"XAES-256-GCM";
            let tag = cipher.encrypt_inout_detached(&nonce, associated, text.as_mut_slice().into()).unwrap();
            let hex: String = text.iter().chain(&tag).map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, published);
            cipher.decrypt_inout_detached(&nonce, associated, text.as_mut_slice().into(), &tag).unwrap();
            assert_eq!(&text, b"XAES-256-GCM");
        }
    }
}
