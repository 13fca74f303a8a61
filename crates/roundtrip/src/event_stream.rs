//! Writing of `text/event-stream` bodies.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::one_line;
use tokio::time::{Instant, Sleep};

/// Events of a response body that wait for its next frame. A stream that is silent for a while gets a comment, so that
/// proxies keep it open.
pub(crate) struct EventBuffer {
    pub(crate) bytes: Vec<u8>,
    every: Duration,
    keep_alive: Pin<Box<Sleep>>,
}

impl EventBuffer {
    pub(crate) fn new(every: Duration) -> Self {
        Self { bytes: Vec::new(), every, keep_alive: Box::pin(tokio::time::sleep(every)) }
    }

    /// Takes the waiting events as one frame; `None` at the end of a stream that has ended.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>, ended: bool) -> Poll<Option<Bytes>> {
        if self.bytes.is_empty() {
            if ended {
                return Poll::Ready(None);
            }
            if self.keep_alive.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.bytes.extend_from_slice(b":\n\n");
        }
        self.keep_alive.as_mut().reset(Instant::now() + self.every);
        Poll::Ready(Some(Bytes::from(std::mem::take(&mut self.bytes))))
    }
}

/// Appends the `data` of an event, which is one message, and the event's end.
pub(crate) fn write_data(out: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"data: ");
    let start = out.len();
    message(out);
    one_line(&mut out[start..]);
    out.extend_from_slice(b"\n\n");
}
