//! Encoding and decoding of the journal inside the seal.

use std::time::Duration;

use super::entry::{Slot, UNPINNED};
use super::{Journal, Kind, Stalled};
use crate::round::decode::{MalformedJournal, Reader};
use crate::round::sent::SentNotifications;
use crate::round::{Pin, PinKey};

/// Version of the encoding. The rounds and the pin key follow, then the stalled rounds, the notifications sent and the trace
/// context, each only if there are any, behind its tag; then for each entry its kind, its pin if it has one, and the lengths of
/// its key and its value; then a zero, and the text of all keys and values in order.
pub(super) const FORMAT: u8 = 2;

/// Tag of the stalled rounds, apart from the kinds of entries.
const STALLED: u8 = 0x40;

/// Tag of the record of notifications.
const SENT: u8 = 0x41;

/// Tag of the trace context.
const TRACE: u8 = 0x42;

/// Byte after the last entry.
const END: u8 = 0;

/// Spare capacity for what one round usually adds.
const SPARE: usize = 192;

/// Usual size of an entry, or less.
const USUAL_ENTRY: usize = 32;

/// Usual size of an entry's header.
const USUAL_HEADER: usize = 1 + Pin::LEN + 3;

/// Size of a short entry's header: one whose key and value have lengths of one byte each.
const SHORT_HEADER: usize = 1 + Pin::LEN + 2;

impl Journal {
    /// Decodes a journal from an opened `requestState`.
    ///
    /// # Errors
    /// Fails if the bytes are not a journal of this format.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedJournal> {
        let mut reader = Reader(bytes);
        if reader.byte()? != FORMAT {
            return Err(MalformedJournal);
        }
        let rounds = reader.byte()?;
        let pins = PinKey::new(reader.chunk()?);
        let mut slots = Vec::with_capacity(bytes.len() / USUAL_ENTRY + 1);
        let (mut at, mut answers): (usize, usize) = (0, 0);
        let (mut stalled, mut sent, mut trace) = (Stalled::NONE, None, None);
        loop {
            let (kind, pin, key, value) = match short_header(&mut reader) {
                Some(short) => short,
                None => {
                    let tag = reader.byte()?;
                    match tag {
                        END => break,
                        STALLED => {
                            stalled.rounds = u32::from_le_bytes(reader.chunk()?);
                            stalled.longest = Duration::from_secs(u64::from_le_bytes(reader.chunk()?));
                            continue;
                        }
                        SENT => {
                            sent = Some(Box::new(SentNotifications::decode(&mut reader)?));
                            continue;
                        }
                        TRACE => {
                            trace = Some(Box::new(reader.chunk()?));
                            continue;
                        }
                        _ => {}
                    }
                    let kind = Kind::from_tag(tag).ok_or(MalformedJournal)?;
                    let pin = if kind.is_pinned() { Pin::from_bytes(reader.chunk()?) } else { UNPINNED };
                    (kind, pin, reader.size()?, reader.size()?)
                }
            };
            let middle = at.checked_add(key).ok_or(MalformedJournal)?;
            let end = middle.checked_add(value).ok_or(MalformedJournal)?;
            slots.push(Slot {
                kind,
                key: at..middle,
                pin,
                value: middle..end,
                dead: false,
                used: false,
                fresh: false,
            });
            if kind.is_pinned() {
                answers = slots.len();
            }
            at = end;
        }
        let read = std::str::from_utf8(reader.0).map_err(|_| MalformedJournal)?;
        let whole =
            |slot: &Slot| read.is_char_boundary(slot.key.end) && read.is_char_boundary(slot.value.end);
        if at != read.len() || !(read.is_ascii() || slots.iter().all(whole)) {
            return Err(MalformedJournal);
        }
        // New answers are appended.
        let mut text = String::with_capacity(read.len() + SPARE);
        text.push_str(read);
        Ok(Self {
            text,
            slots,
            next: 0,
            answers,
            index: None,
            rounds,
            pins,
            stalled,
            sent,
            trace,
            changes: None,
        })
    }

    /// Encodes the journal for sealing, with the questions that are open now.
    pub fn encode<'a, O>(&self, open: O) -> Vec<u8>
    where
        O: IntoIterator<Item = (&'a str, Pin), IntoIter: Clone>,
    {
        let mut out = Vec::with_capacity(self.text.len() + (self.slots.len() + 1) * USUAL_HEADER + SPARE);
        self.encode_entries(self.slots.iter().filter(|slot| !slot.dead), open.into_iter(), &mut out);
        out
    }

    /// Encodes a journal of some of the entries.
    pub(super) fn encode_entries<'a, 'b>(
        &'b self,
        entries: impl Iterator<Item = &'b Slot> + Clone,
        open: impl Iterator<Item = (&'a str, Pin)> + Clone,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&[FORMAT, self.rounds]);
        out.extend_from_slice(self.pins.as_bytes());
        if self.stalled.rounds > 0 {
            out.push(STALLED);
            out.extend_from_slice(&self.stalled.rounds.to_le_bytes());
            out.extend_from_slice(&self.stalled.longest.as_secs().to_le_bytes());
        }
        if let Some(sent) = &self.sent {
            out.push(SENT);
            sent.encode(out);
        }
        if let Some(trace) = &self.trace {
            out.push(TRACE);
            out.extend_from_slice(&**trace);
        }
        for slot in entries.clone() {
            write_header(out, slot.kind, slot.pin, [slot.key.len(), slot.value.len()]);
        }
        for (key, pin) in open.clone() {
            write_header(out, Kind::Open, pin, [key.len(), 0]);
        }
        out.push(END);
        // Adjacent pieces are copied as one.
        let mut piece = 0..0;
        for range in entries.flat_map(|slot| [&slot.key, &slot.value]) {
            if range.start != piece.end {
                out.extend_from_slice(self.text(&piece).as_bytes());
                piece.start = range.start;
            }
            piece.end = range.end;
        }
        out.extend_from_slice(self.text(&piece).as_bytes());
        open.for_each(|(key, _)| out.extend_from_slice(key.as_bytes()));
    }
}

/// Writes the header of an entry; its text follows after all headers.
fn write_header(out: &mut Vec<u8>, kind: Kind, pin: Pin, sizes: [usize; 2]) {
    // Nearly every entry is short, and is written at once; the bytes are the same.
    if let (true, [key @ ..0x80, value @ ..0x80]) = (kind.is_pinned(), sizes) {
        let [a, b, c, d, e, f, g, h] = *pin.as_bytes();
        let short: [u8; SHORT_HEADER] = [kind as u8, a, b, c, d, e, f, g, h, key as u8, value as u8];
        return out.extend_from_slice(&short);
    }
    out.push(kind as u8);
    if kind.is_pinned() {
        out.extend_from_slice(pin.as_bytes());
    }
    sizes.into_iter().for_each(|size| write_size(out, size));
}

/// Writes a length: seven bits a byte, the lowest first.
pub(super) fn write_size(out: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        out.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

/// Reads the header of a short entry at once: kind, pin, and the lengths of key and value. `None` if the next header is not
/// of that form and has to be read field by field.
fn short_header(reader: &mut Reader<'_>) -> Option<(Kind, Pin, usize, usize)> {
    let ([tag, a, b, c, d, e, f, g, h, key, value], rest) = reader.0.split_first_chunk::<SHORT_HEADER>()?;
    let kind = Kind::from_tag(*tag).filter(|kind| kind.is_pinned())?;
    if (key | value) & 0x80 != 0 {
        return None;
    }
    reader.0 = rest;
    let pin = Pin::from_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
    Some((kind, pin, usize::from(*key), usize::from(*value)))
}
