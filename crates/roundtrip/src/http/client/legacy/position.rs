//! Position in a stream of events, by which it is resumed after it breaks off.

use std::time::Duration;

/// Longest id that is remembered.
const MAX_ID: usize = 4 * 1024;

/// Ids and retry time that the events of a stream have named so far.
#[derive(Debug, Default)]
pub(in crate::http::client) struct Position {
    /// Id of the event so far.
    id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
}

impl Position {
    /// Returns the id of the last event that had one.
    pub(in crate::http::client) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref()
    }

    /// Returns the time the server wants to pass before the stream is resumed.
    pub(in crate::http::client) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Reads a field of an event.
    pub(in crate::http::client) fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"id" if value.len() <= MAX_ID && !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" => {
                let digits =
                    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let retry = digits.and_then(|text| text.parse().ok()).map(Duration::from_millis);
                self.retry = retry.or(self.retry);
            }
            _ => {}
        }
    }

    /// Ends an event: its id counts, whether it had data or not.
    pub(in crate::http::client) fn end_event(&mut self) {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
    }

    /// Begins a new connection: an event that was not complete on the last one never will be.
    pub(in crate::http::client) fn begin_anew(&mut self) {
        self.id = None;
    }
}
