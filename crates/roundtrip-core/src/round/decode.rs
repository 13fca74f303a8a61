//! Bounds-checked reading of an encoded journal.

/// Bytes that are not a journal of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a journal that this release reads")]
pub struct MalformedJournal;

/// Reader of an encoded journal, up to the text of its entries.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    /// Reads the next `N` bytes.
    pub(super) fn chunk<const N: usize>(&mut self) -> Result<[u8; N], MalformedJournal> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(MalformedJournal)?;
        self.0 = rest;
        Ok(*chunk)
    }

    pub(super) fn byte(&mut self) -> Result<u8, MalformedJournal> {
        self.chunk().map(|[byte]| byte)
    }

    /// Reads a length: seven bits a byte, the lowest first, in at most four bytes.
    pub(super) fn size(&mut self) -> Result<usize, MalformedJournal> {
        let mut size = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            size |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
        }
        Err(MalformedJournal)
    }
}
