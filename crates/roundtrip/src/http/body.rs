//! Response bodies: one JSON message, or a stream of events that polls the call.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::socket::AnsweringGuard;
use crate::event_stream::{EventBuffer, write_data};
use crate::server::{Endpoint, Event, InFlight};

/// A response body.
pub struct Body {
    kind: Kind,
    /// Dropped with the body, or earlier by a connection that ends.
    answering: Option<AnsweringGuard>,
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Self {
        Self { kind, answering: None }
    }
}

enum Kind {
    Whole(Option<Bytes>),
    Events(Box<Events>),
    /// A body of the handshake eras.
    #[cfg(feature = "legacy")]
    Other(Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible> + Send>>),
}

/// Body of a call whose events are sent as they occur. Dropping it, as a closed connection does, cancels the call
/// (H5).
struct Events {
    endpoint: Endpoint,
    call: Option<InFlight>,
    buffer: EventBuffer,
}

impl Body {
    /// Marks the request as being answered for as long as the body lasts.
    pub(super) fn hold(&mut self, answering: AnsweringGuard) {
        self.answering = Some(answering);
    }

    pub(crate) fn empty() -> Self {
        Kind::Whole(None).into()
    }

    #[cfg(feature = "legacy")]
    pub(crate) fn other(
        body: impl http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Kind::Other(Box::pin(body)).into()
    }

    pub(crate) fn json(message: Vec<u8>) -> Self {
        Self::whole(message.into())
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Kind::Whole(Some(bytes)).into()
    }

    /// Creates a stream that begins with `first`, if there is a first event already.
    pub(crate) fn events(endpoint: Endpoint, call: InFlight, first: Option<Event>, every: Duration) -> Self {
        let mut events = Events { endpoint, call: Some(call), buffer: EventBuffer::new(every) };
        if let Some(event) = first {
            events.write(event);
        }
        Kind::Events(Box::new(events)).into()
    }
}

impl Events {
    /// Appends an event to the buffer, and the notifications that wait behind it; after the response the call is gone.
    fn write(&mut self, event: Event) {
        let out = &mut self.buffer.bytes;
        let mut notification = |message: &[u8]| write_data(out, |out| out.extend_from_slice(message));
        match event {
            Event::Notification(message) => {
                notification(&message);
                self.call.iter().for_each(|call| call.take_notifications(&mut notification));
            }
            Event::Response(outcome) => {
                if let Some(call) = self.call.take() {
                    write_data(out, |out| self.endpoint.encode(out, call.id(), outcome));
                }
            }
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while let Some(call) = self.call.as_mut() {
            // What a handler has sent is in a frame before it goes on.
            if !self.buffer.bytes.is_empty() && !call.is_settled() {
                break;
            }
            match call.poll_event(cx) {
                Poll::Ready(event) => self.write(event),
                Poll::Pending => break,
            }
        }
        self.buffer.poll_frame(cx, self.call.is_none())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Events(events) => events.poll_frame(cx),
            #[cfg(feature = "legacy")]
            Kind::Other(body) => return body.as_mut().poll_frame(cx),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Events(events) => events.call.is_none() && events.buffer.bytes.is_empty(),
            #[cfg(feature = "legacy")]
            Kind::Other(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Whole(_) => "Body(whole)",
            _ => "Body(events)",
        })
    }
}
