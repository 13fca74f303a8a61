//! Signatures of tokens, by aws-lc-rs, which TLS uses too.

mod key_pair;
#[cfg(feature = "oauth")]
mod sign;
#[cfg(feature = "authorize")]
mod verify;

#[cfg(feature = "authorize")]
pub(crate) use key_pair::KeyPair;
#[cfg(feature = "oauth")]
pub use sign::{KeyError, PrivateKey};
#[cfg(feature = "authorize")]
pub(crate) use verify::verify;
