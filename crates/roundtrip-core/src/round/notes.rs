//! The notes of a journal's entries as bytes: kind, pin, and the lengths of key and value.

use super::journal::{Kind, MalformedJournal};
use super::pin::Pin;

/// What the note of a short entry takes: one whose key and value are so short that a byte says how long they are.
const SHORT: usize = 1 + Pin::LEN + 2;

/// Notes an entry: its text follows elsewhere.
pub(super) fn note(out: &mut Vec<u8>, kind: Kind, pin: Pin, sizes: [usize; 2]) {
    // Nearly every entry is short, and is noted in one go; the bytes are the same.
    if let (true, [key @ ..0x80, value @ ..0x80]) = (kind.is_pinned(), sizes) {
        let [a, b, c, d, e, f, g, h] = *pin.as_bytes();
        let short: [u8; SHORT] = [kind as u8, a, b, c, d, e, f, g, h, key as u8, value as u8];
        return out.extend_from_slice(&short);
    }
    out.push(kind as u8);
    if kind.is_pinned() {
        out.extend_from_slice(pin.as_bytes());
    }
    for mut size in sizes {
        while size >= 0x80 {
            out.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        out.push(size as u8);
    }
}

/// Reads what is noted of entries, never past its end.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn chunk<const N: usize>(&mut self) -> Result<[u8; N], MalformedJournal> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(MalformedJournal)?;
        self.0 = rest;
        Ok(*chunk)
    }

    pub(super) fn byte(&mut self) -> Result<u8, MalformedJournal> {
        self.chunk().map(|[byte]| byte)
    }

    /// What is noted of a short entry, in one look: its kind, its pin, and how long its key and its value are. None where
    /// what comes next is none, and is to be read step by step.
    pub(super) fn short(&mut self) -> Option<(Kind, Pin, usize, usize)> {
        let ([tag, a, b, c, d, e, f, g, h, key, value], rest) = self.0.split_first_chunk::<SHORT>()?;
        let kind = Kind::from_tag(*tag).filter(|kind| kind.is_pinned())?;
        if (key | value) & 0x80 != 0 {
            return None;
        }
        self.0 = rest;
        let pin = Pin::from_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
        Some((kind, pin, usize::from(*key), usize::from(*value)))
    }

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
