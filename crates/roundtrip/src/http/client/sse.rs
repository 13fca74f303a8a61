//! Decoder of server-sent events: bytes in, the data of each event out. Event names mean nothing to this protocol and are
//! skipped.

use bytes::Bytes;

#[cfg(feature = "legacy")]
use super::legacy::position::Position;

/// Largest data of one event.
pub(super) const MAX_EVENT: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Error: an event beyond the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {} MiB", MAX_EVENT >> 20)]
pub(super) struct Overlong;

/// Puts events together, independent of how the bytes are cut.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Line so far.
    line: Vec<u8>,
    /// Data of the event so far, with a newline after each line.
    data: Vec<u8>,
    /// True if a CR ended the last line: an LF now belongs to it.
    after_cr: bool,
    /// True after the first line, and with it the place for a byte order mark.
    begun: bool,
    /// Place to resume at; only streams of a session are resumed.
    #[cfg(feature = "legacy")]
    position: Position,
}

impl Decoder {
    #[cfg(feature = "legacy")]
    pub(super) fn position(&self) -> &Position {
        &self.position
    }

    /// Begins a new connection: an event that was not complete on the last one never will be.
    #[cfg(feature = "legacy")]
    pub(super) fn begin_anew(&mut self) {
        let mut position = std::mem::take(&mut self.position);
        position.begin_anew();
        *self = Self { position, ..Self::default() };
    }

    /// Takes the next bytes and hands out the data of each event they complete. Data that is not UTF-8 is handed out
    /// unchanged: it is not JSON either, and decoding it will fail.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut event: impl FnMut(Bytes)) -> Result<(), Overlong> {
        if std::mem::take(&mut self.after_cr) && !bytes.is_empty() {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        } else if bytes.is_empty() {
            return Ok(());
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.extend(&bytes[..end])?;
            self.end_line(&mut event)?;
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), Overlong> {
        // The field name and the colon come on top.
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT + 64 {
            return Err(Overlong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, event: &mut impl FnMut(Bytes)) -> Result<(), Overlong> {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            // End of an event. Without data it is not handed out, but its id counts.
            #[cfg(feature = "legacy")]
            self.position.end_event();
            if self.data.pop().is_some() {
                event(std::mem::take(&mut self.data).into());
            }
        } else {
            match field(line) {
                (b"data", value) => {
                    if self.data.len() + value.len() >= MAX_EVENT {
                        return Err(Overlong);
                    }
                    self.data.extend_from_slice(value);
                    self.data.push(b'\n');
                }
                #[cfg(feature = "legacy")]
                (name, value) => self.position.field(name, value),
                #[cfg(not(feature = "legacy"))]
                _ => {}
            }
        }
        self.line.clear();
        Ok(())
    }
}

/// Splits a line into the name and the value of its field.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        None => (line, b""),
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for chunk in chunks {
            decoder
                .feed(chunk.as_ref(), |event| found.push(String::from_utf8_lossy(&event).into_owned()))
                .expect("within bounds");
        }
        found
    }

    /// The events are the same however the bytes are cut.
    fn check(stream: &str, expected: &[&str]) {
        assert_eq!(events([stream]), expected, "in one piece: {stream:?}");
        assert_eq!(events(stream.bytes().map(|byte| [byte])), expected, "byte by byte: {stream:?}");
        for at in 0..stream.len() {
            let (left, right) = stream.as_bytes().split_at(at);
            assert_eq!(events([left, right]), expected, "cut at {at}: {stream:?}");
        }
    }

    #[test]
    fn every_line_ending_ends_a_line_once() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = format!("data: one{end}{end}data: two{end}{end}");
            // A lone CR at the very end could still be half of a CRLF, and ends the line nevertheless.
            check(&stream, &["one", "two"]);
        }
        check("data: a\r\ndata: b\rdata: c\n\r\n", &["a\nb\nc"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_one_blank_is_cut() {
        check("data: {\ndata:\"a\":\ndata:  1}\n\n", &["{\n\"a\":\n 1}"]);
        check("data\n\n", &[""]);
        check("data:\ndata:\n\n", &["\n"]);
    }

    #[test]
    fn comments_and_other_fields_say_nothing() {
        check(": keep-alive\n\n:\n\nevent: message\nid: 7\nretry: 10\ndata: x\n\n", &["x"]);
        check("event: nothing\n\ndatabase: no\n\n", &[]);
        check("data: [1,2]\nid\n\n", &["[1,2]"]);
    }

    /// L6: what a stream can be taken up by is remembered, and only what a whole event said.
    #[cfg(feature = "legacy")]
    #[test]
    fn ids_and_retry_times_are_kept() {
        use std::time::Duration;

        let mut decoder = Decoder::default();
        let mut feed = |text: &str| {
            decoder.feed(text.as_bytes(), drop).expect("within bounds");
            (decoder.position().last_id().map(<[u8]>::to_vec), decoder.position().retry())
        };
        assert_eq!(
            feed("id: 1\nretry: 250\ndata:\n\n"),
            (Some(b"1".to_vec()), Some(Duration::from_millis(250)))
        );
        assert_eq!(feed("retry: soon\nid: 2\ndata: half").0, Some(b"1".to_vec()));
        assert_eq!(feed("\n\n"), (Some(b"2".to_vec()), Some(Duration::from_millis(250))));
        assert_eq!(feed("id: a\u{0}b\n\n").0, Some(b"2".to_vec()));
        assert_eq!(feed("id\n\n").0, None);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_at_the_start_alone() {
        check("\u{feff}data: x\n\n", &["x"]);
        check("data: x\n\n\u{feff}data: y\n\n", &["x"]);
        check("data: \u{feff}x\n\n", &["\u{feff}x"]);
    }

    #[test]
    fn what_was_not_ended_is_no_event() {
        check("data: x\n\ndata: lost\n", &["x"]);
        check("data: lost", &[]);
    }

    #[test]
    fn bytes_that_are_no_text_come_out_as_they_are() {
        let mut found = Vec::new();
        Decoder::default().feed(b"data: \xff\xfe\n\n", |event| found.push(event)).expect("within bounds");
        assert_eq!(found, [&b"\xff\xfe"[..]]);
    }

    #[test]
    fn an_event_has_a_largest_size_in_one_line_and_in_many() {
        let chunk = vec![b'x'; 1 << 20];
        let mut decoder = Decoder::default();
        decoder.feed(b"data: ", drop).expect("a few bytes");
        let fed = (0..20).try_for_each(|_| decoder.feed(&chunk, drop));
        assert_eq!(fed, Err(Overlong));

        let line = [b"data: ", chunk.as_slice(), b"\n"].concat();
        let mut decoder = Decoder::default();
        assert_eq!((0..20).try_for_each(|_| decoder.feed(&line, drop)), Err(Overlong));
    }
}
