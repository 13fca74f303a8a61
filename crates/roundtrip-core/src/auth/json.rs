//! JSON documents of peers, in bounded work.

use serde::de::{DeserializeOwned, Deserializer};
use serde_json::{Map, Value};

use crate::wire::{clip_error, json, members};

/// Longest document that is read, in bytes.
pub const LONGEST_DOCUMENT: usize = 64 * 1024;

/// Reason a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Longer than 64 KiB; not decoded.
    #[error("it is longer than {LONGEST_DOCUMENT} bytes")]
    TooLarge,
    /// Not a JSON object.
    #[error("it is not a JSON object")]
    NotJson,
    /// A member is missing, there twice, or of another type.
    #[error("it does not have the members that it should: {0}")]
    Malformed(String),
}

/// Reads a document whose known members are there once and of their type; others are ignored.
pub(super) fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    check_object(bytes)?;
    json::from_slice(bytes).map_err(|error| malformed(&error))
}

/// Reads an object none of whose members is there twice.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    check_object(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = Members(&mut deserializer).read().and_then(|members| deserializer.end().map(|()| members));
    Ok(read.map_err(|error| malformed(&error))?.into_iter().collect())
}

/// Names the type of a deserialiser that is borrowed.
struct Members<D>(D);

impl<'de, D: Deserializer<'de>> Members<D> {
    fn read(self) -> Result<Vec<(String, Value)>, D::Error> {
        members::read_distinct(self.0, "an object", "members")
    }
}

/// Refuses what is too long, and what is not an object.
fn check_object(bytes: &[u8]) -> Result<(), DocumentError> {
    if bytes.len() > LONGEST_DOCUMENT {
        return Err(DocumentError::TooLarge);
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => Ok(()),
        _ => Err(DocumentError::NotJson),
    }
}

fn malformed(error: &serde_json::Error) -> DocumentError {
    if error.is_syntax() || error.is_eof() {
        return DocumentError::NotJson;
    }
    DocumentError::Malformed(clip_error(error))
}
