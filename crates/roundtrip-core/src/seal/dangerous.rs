//! Codecs that give up what the seal is for, and so must be named explicitly.

use super::{BoxFuture, Codec, CodecError};

/// No sealing at all: everyone on the way can read a token, and write one.
///
/// Expiry and bindings are still checked, but an attacker can rewrite them. Allowed only where
/// tampering can cause nothing worse than a failed request (mrtr, server 4), and handy for looking into tokens
/// while debugging.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plaintext;

impl Codec for Plaintext {
    fn seal<'a>(&'a self, plain: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(async { Ok(plain.to_vec()) })
    }

    fn open<'a>(&'a self, sealed: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(async { Ok(sealed.to_vec()) })
    }
}
