//! Response body that sends a stream through one connection.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::task::AbortHandle;

use super::http_session::Present;
use super::stream::{Reader, Stream};
use crate::event_stream::EventBuffer;
use crate::legacy::server::session::{Sink as _, Weight};
use crate::server::Subscription;

/// Response body of a stream of events.
pub(crate) struct EventBody {
    stream: Arc<Stream>,
    reader: Reader,
    buffer: EventBuffer,
    ended: bool,
    owner: Owner,
}

/// Owner of the stream.
pub(super) enum Owner {
    /// A session: the stream outlives the connection. The session is not idle meanwhile.
    Session { _present: Present, changes: Option<Arc<Subscription>> },
    /// None: the stream is complete.
    None,
    /// A call without a session, which ends with its connection.
    Call { _ends: Abort },
}

/// Aborts a task when dropped.
#[derive(Debug)]
pub(super) struct Abort(pub(super) AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl EventBody {
    /// Reads a stream after an event. A client that can resume is told how first.
    pub(super) fn new(
        stream: Arc<Stream>,
        after: Option<u64>,
        primed: bool,
        every: Duration,
        owner: Owner,
    ) -> Self {
        let reader = stream.attach(after);
        let mut buffer = EventBuffer::new(every);
        if primed {
            stream.prime(&reader, &mut buffer.bytes);
        }
        Self { stream, reader, buffer, ended: false, owner }
    }

    /// Moves the next change outside of any call into the stream; returns whether there was one. Only the current
    /// reader may: there is one waker.
    fn listen(&self, cx: &mut Context<'_>) -> bool {
        let Owner::Session { changes: Some(changes), .. } = &self.owner else { return false };
        if !self.stream.is_read_by(&self.reader) {
            return false;
        }
        let mut any = changes.poll_closed(cx).is_ready();
        if any {
            self.stream.finish();
        }
        // One at a time: the stream may have no room for more.
        if let Poll::Ready(change) = changes.poll_next(cx) {
            self.stream.send(change, Weight::Hint);
            any = true;
        }
        any
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.stream.poll_read(cx, &mut self.reader, &mut self.buffer.bytes) {
            Poll::Pending if self.listen(cx) => {
                self.stream.poll_read(cx, &mut self.reader, &mut self.buffer.bytes)
            }
            polled => polled,
        }
    }
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if !this.ended
            && let Poll::Ready(more) = this.poll_read(cx)
        {
            this.ended = !more;
        }
        let frame = this.buffer.poll_frame(cx, this.ended);
        frame.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").field("stream", &self.stream.number).finish_non_exhaustive()
    }
}
