//! Parts of a task's result, as they are stored.

use roundtrip_core::wire::Raw;

/// Parts of a task's result, in order, each as JSON behind its length.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskParts {
    count: u32,
    bytes: Vec<u8>,
}

impl TaskParts {
    /// Reads stored parts.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let count = u32::try_from(Pieces(bytes).count()).unwrap_or(u32::MAX);
        Self { count, bytes: bytes.to_vec() }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns their number.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns their size, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds parts, the first of which has this number. Those that are there already are left out.
    pub(super) fn add(&mut self, first: u32, parts: &[Raw]) {
        let known = usize::try_from(self.count.saturating_sub(first)).unwrap_or(usize::MAX);
        for part in parts.iter().skip(known).map(Raw::get) {
            let Ok(length) = u32::try_from(part.len()) else { return };
            self.bytes.extend_from_slice(&length.to_be_bytes());
            self.bytes.extend_from_slice(part.as_bytes());
            self.count = self.count.saturating_add(1);
        }
    }

    /// Returns the parts from a number on, each as JSON.
    pub(super) fn from(bytes: &[u8], number: u32) -> impl Iterator<Item = Raw> {
        let skipped = Pieces(bytes).skip(usize::try_from(number).unwrap_or(usize::MAX));
        skipped.filter_map(|piece| serde_json::from_slice(piece).ok())
    }
}

/// Pieces of bytes, each behind its length.
struct Pieces<'a>(&'a [u8]);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (piece, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G5: stored parts are read from a number on, and a run that adds them again adds none twice.
    #[test]
    fn parts_are_added_once() {
        let texts =
            |parts: &[u8], from| TaskParts::from(parts, from).map(|part| part.get().to_owned()).collect();
        let raw = |text: &str| Raw::of(&text).expect("JSON");
        let mut parts = TaskParts::default();
        parts.add(0, &[raw("a"), raw("b")]);
        parts.add(1, &[raw("b"), raw("c")]);
        let parts = TaskParts::read(parts.as_bytes());
        assert_eq!(parts.count(), 3);
        let all: Vec<String> = texts(parts.as_bytes(), 0);
        assert_eq!(all, [r#""a""#, r#""b""#, r#""c""#]);
        let rest: Vec<String> = texts(parts.as_bytes(), 2);
        assert_eq!(rest, [r#""c""#]);
        let none: Vec<String> = texts(parts.as_bytes(), 9);
        assert!(none.is_empty() && TaskParts::from(&[0, 0, 0, 9, 1], 0).next().is_none());
    }
}
