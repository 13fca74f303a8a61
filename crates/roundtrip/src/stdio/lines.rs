//! Splits chunks into lines, without a copy for lines that arrive whole, and ends messages as lines.

use roundtrip_core::wire::one_line;

/// Ends the line of the message that begins at `start`. A message always takes exactly one line (I1).
pub(crate) fn end_line(out: &mut Vec<u8>, start: usize) {
    one_line(&mut out[start..]);
    out.push(b'\n');
}

/// Most bytes that are split in one go.
#[cfg(feature = "client")]
const PIECE: usize = 4096;

/// Splits a byte stream into lines, dropping those that grow past a cap.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Beginning of a line whose end has not arrived yet.
    started: Vec<u8>,
    /// True if the current line is too long: skip to its end.
    skipping: bool,
    cap: usize,
}

/// A line of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

/// Returns the beginning of a chunk, of the size that is split in one go: blank lines take a turn for each, too.
#[cfg(feature = "client")]
pub(crate) fn piece(chunk: &[u8]) -> &[u8] {
    &chunk[..chunk.len().min(PIECE)]
}

impl Lines {
    pub(crate) fn new(cap: usize) -> Self {
        Self { started: Vec::new(), skipping: false, cap }
    }

    /// Hands lines that `chunk` completes to `take` as long as it returns true; returns how many bytes were consumed. Blank
    /// lines are passed over.
    pub(crate) fn feed_while(&mut self, chunk: &[u8], mut take: impl FnMut(Line<'_>) -> bool) -> usize {
        let mut done = 0;
        while let Some(length) = memchr::memchr(b'\n', &chunk[done..]) {
            let line = &chunk[done..done + length];
            done += length + 1;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let more = if self.started.len() + line.len() > self.cap {
                self.started = Vec::new();
                take(Line::TooLong)
            } else if self.started.is_empty() {
                emit(line, &mut take)
            } else {
                self.started.extend_from_slice(line);
                let more = emit(&self.started, &mut take);
                self.started.clear();
                more
            };
            if !more {
                return done;
            }
        }
        let rest = &chunk[done..];
        if self.skipping {
            return chunk.len();
        }
        if self.started.len() + rest.len() > self.cap {
            self.started = Vec::new();
            self.skipping = true;
            take(Line::TooLong);
        } else {
            self.started.extend_from_slice(rest);
        }
        chunk.len()
    }
}

fn emit(line: &[u8], take: &mut impl FnMut(Line<'_>) -> bool) -> bool {
    line.iter().all(u8::is_ascii_whitespace) || take(Line::Whole(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cap: usize, chunks: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(cap);
        let mut all = Vec::new();
        for chunk in chunks {
            let mut rest = chunk.as_bytes();
            while !rest.is_empty() {
                // One at a time: the rest is given later.
                let done = lines.feed_while(rest, |line| {
                    all.push(match line {
                        Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                        Line::TooLong => "too long".to_owned(),
                    });
                    false
                });
                rest = &rest[done..];
            }
        }
        all
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        assert_eq!(read(99, &["a\nb", "c\n", "\n \r\n", "d", "e", "\nf"]), ["a", "bc", "de"]);
        let bytes: Vec<String> = "one\ntwo\r\n".chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(read(99, &bytes), ["one", "two\r"]);
    }

    /// I1: a line past the cap is reported once, and the stream goes on after it.
    #[test]
    fn a_long_line_is_dropped_and_the_next_one_read() {
        assert_eq!(read(4, &["123456789", "123456789", "9\nok\n"]), ["too long", "ok"]);
        assert_eq!(read(4, &["12345\nok\n"]), ["too long", "ok"]);
        assert_eq!(read(4, &["123", "45\nok\n"]), ["too long", "ok"]);
        assert_eq!(read(4, &["1234\n"]), ["1234"]);
    }
}
