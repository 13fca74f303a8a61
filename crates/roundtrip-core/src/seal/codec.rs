//! Codecs: sealing with crypto other than the key ring's.

use std::error::Error;
use std::pin::Pin;

/// A boxed future, as methods of a trait object return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Error of a codec. It goes to the log as it is, so it must not quote what was to be sealed or opened.
pub type CodecError = Box<dyn Error + Send + Sync>;

/// Encrypts and authenticates bytes by other means than the key ring: a key management service, a hardware module, a
/// prescribed cipher.
///
/// Expiry and bindings are inside the bytes and are checked after opening, whatever the codec does. A codec that
/// fails, or returns something other than what it was given to seal, gets the token refused.
///
/// `associated` is public and short, and must be authenticated with the bytes: it keeps a token from being taken
/// for something else that was sealed with the same key.
pub trait Codec: Send + Sync {
    /// Encrypts and authenticates `plain`, with a fresh nonce of the codec's own.
    fn seal<'a>(
        &'a self,
        plain: &'a [u8],
        associated: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, CodecError>>;

    /// Decrypts sealed bytes and checks that they are unchanged.
    fn open<'a>(
        &'a self,
        sealed: &'a [u8],
        associated: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, CodecError>>;
}
