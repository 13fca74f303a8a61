//! Clock and randomness, passed in by the caller: this crate has neither.

use crate::seal::Timestamp;

/// Clock and randomness of the caller.
pub trait Surroundings {
    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Draws bytes from a cryptographic source.
    fn random(&mut self) -> [u8; 32];
}
