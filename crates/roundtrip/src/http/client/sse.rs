//! Decoder of server-sent events: bytes in, the data of each event out. Ids and retry times are kept for resumable
//! streams; event names mean nothing to this protocol and are skipped.

use std::time::Duration;

use bytes::Bytes;

/// Largest data of one event.
pub(super) const MAX_EVENT: usize = 16 * 1024 * 1024;

/// Longest id that is remembered.
const MAX_ID: usize = 4 * 1024;

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
    /// Id of the event so far.
    id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
}

impl Decoder {
    /// Returns the id of the last event that had one.
    pub(super) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// Returns the time the server wants to pass before the stream is resumed.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Begins a new connection: an event that was not complete on the last one never will be.
    pub(super) fn begin_anew(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Self { last_id, retry, ..Self::default() };
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
            if let Some(id) = self.id.take() {
                self.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if self.data.pop().is_some() {
                event(std::mem::take(&mut self.data).into());
            }
        } else if let Some(value) = field(line, b"data") {
            if self.data.len() + value.len() >= MAX_EVENT {
                return Err(Overlong);
            }
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        } else if let Some(value) = field(line, b"id") {
            if value.len() <= MAX_ID && !value.contains(&0) {
                self.id = Some(value.to_vec());
            }
        } else if let Some(value) = field(line, b"retry") {
            let digits =
                std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            self.retry = digits.and_then(|text| text.parse().ok()).map(Duration::from_millis).or(self.retry);
        }
        self.line.clear();
        Ok(())
    }
}

/// Returns the value of a field, if the line has that name.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
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
    #[test]
    fn ids_and_retry_times_are_kept() {
        let mut decoder = Decoder::default();
        let mut feed = |text: &str| {
            decoder.feed(text.as_bytes(), drop).expect("within bounds");
            (decoder.last_id().map(<[u8]>::to_vec), decoder.retry())
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
