//! [`Ended`]: the end of a task, and its stored form.

use bytes::Bytes;
use roundtrip_core::wire::{ErrorObject, Raw, json};
use serde_json::value::RawValue;

/// First byte of a stored result.
const COMPLETED: u8 = 1;
/// First byte of a stored error.
const FAILED: u8 = 2;

/// End of a task.
#[derive(Debug)]
pub(crate) enum Ended {
    Completed(Raw),
    Failed(ErrorObject),
    Cancelled,
}

impl Ended {
    /// Returns the bytes of a result or an error, for the store: a byte for each of them, then JSON.
    pub(super) fn encoded(&self) -> Option<Bytes> {
        let (tag, json) = match self {
            Self::Completed(result) => (COMPLETED, result.get().as_bytes().to_vec()),
            Self::Failed(error) => (FAILED, serde_json::to_vec(error).unwrap_or_default()),
            Self::Cancelled => return None,
        };
        Some([&[tag], &json[..]].concat().into())
    }

    /// Reads the bytes of a result as its text. `None` if they are not a result.
    pub(super) fn result_of(bytes: &[u8]) -> Option<&RawValue> {
        let (&COMPLETED, result) = bytes.split_first()? else { return None };
        json::from_slice(result).ok()
    }

    /// Reads the bytes of a result or an error.
    ///
    /// # Errors
    /// Fails if the bytes are not those of either.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        match bytes.split_first() {
            Some((&COMPLETED, result)) => json::from_slice(result).map(Self::Completed),
            Some((_, error)) => json::from_slice(error).map(Self::Failed),
            None => Ok(Self::Cancelled),
        }
    }
}
