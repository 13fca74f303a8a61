//! Parts of a task's result, as they are stored.

use bytes::Bytes;
use roundtrip_core::wire::{Raw, json};

/// Joins parts to one piece: each as JSON behind its length. `None` if there are none.
pub(super) fn join(parts: &[Raw]) -> Option<Bytes> {
    let mut piece = Vec::new();
    for part in parts.iter().map(Raw::get) {
        piece.extend_from_slice(&u32::try_from(part.len()).ok()?.to_be_bytes());
        piece.extend_from_slice(part.as_bytes());
    }
    (!piece.is_empty()).then(|| piece.into())
}

/// Returns the parts of a piece from a number on.
pub(crate) fn split(first: u32, piece: &[u8], from: u32) -> impl Iterator<Item = Raw> {
    let known = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
    Parts(piece).skip(known).filter_map(|part| json::from_slice(part).ok())
}

/// Number of parts in a piece.
pub(super) fn count(piece: &[u8]) -> u32 {
    u32::try_from(Parts(piece).count()).unwrap_or(u32::MAX)
}

/// Parts of a piece, each behind its length.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G5: stored parts are read from a number on, and a piece that was cut off ends where it was.
    #[test]
    fn parts_are_read_from_a_number_on() {
        let piece = join(&["a", "b", "c"].map(|text| Raw::of(&text).expect("JSON"))).expect("a piece");
        let texts = |from| split(5, &piece, from).map(|part| part.get().to_owned()).collect::<Vec<_>>();
        assert_eq!((count(&piece), join(&[])), (3, None));
        assert_eq!(texts(0), [r#""a""#, r#""b""#, r#""c""#]);
        assert_eq!(texts(7), [r#""c""#]);
        assert!(texts(9).is_empty() && split(0, &[0, 0, 0, 9, 1], 0).next().is_none());
    }
}
