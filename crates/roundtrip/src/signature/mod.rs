//! Signatures of tokens, by aws-lc-rs, which TLS uses too.

#[cfg(feature = "authorize")]
mod verify;

#[cfg(feature = "authorize")]
pub(crate) use verify::verify;
