//! Reads a request's body: bounded in size and time, and without a copy if it arrives in one piece.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::Body;

use super::limits::HttpLimits;
use crate::server::Reservation;

/// Reasons for which a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLarge,
    TooSlow,
    Broken,
    /// The budget has no room for it beside the bodies being read already.
    Busy,
}

/// Reads a whole body. A body that does not arrive together with its head takes a place first, if there is one, and
/// then as many bytes of the budget as have arrived.
pub(crate) async fn read<B: Body>(
    body: B,
    limits: &HttpLimits,
    place: impl FnOnce() -> Option<Reservation>,
) -> Result<Bytes, Unread> {
    let mut body = pin!(body);
    let mut received = Received { limit: limits.body_bytes, ..Received::default() };
    // Most bodies arrive together with their head: a timer and a place are only taken for those that do not.
    if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(received.poll(body.as_mut(), cx))).await {
        return read.map(|()| received.finish());
    }
    let mut place = place().ok_or(Unread::Busy)?;
    if !place.grow(received.size) {
        return Err(Unread::Busy);
    }
    received.place = Some(Box::new(place));
    // In a box: bodies that are there already need not carry the weight of a timer.
    let reading =
        Box::pin(tokio::time::timeout(limits.body_timeout, poll_fn(|cx| received.poll(body.as_mut(), cx))));
    reading.await.unwrap_or(Err(Unread::TooSlow))?;
    Ok(received.finish())
}

/// Returns the length that a body has, if that is known before it is read. hyper knows it from the head.
pub(crate) fn announced(headers: &HeaderMap, body: &impl Body) -> Option<usize> {
    match body.size_hint().exact() {
        Some(length) => Some(usize::try_from(length).unwrap_or(usize::MAX)),
        None => headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok(),
    }
}

/// Part of a body that has arrived.
#[derive(Default)]
struct Received {
    first: Option<Bytes>,
    rest: Option<BytesMut>,
    size: usize,
    limit: usize,
    /// Bytes reserved in the budget; `None` while the body did not have to be waited for.
    place: Option<Box<Reservation>>,
}

impl Received {
    /// Takes frames as they arrive; ready at the end of the body.
    fn poll<B: Body>(&mut self, mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Result<(), Unread>> {
        loop {
            let frame = match ready!(body.as_mut().poll_frame(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(_)) => return Poll::Ready(Err(Unread::Broken)),
                Some(Ok(frame)) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            if let Err(unread) = self.take(data) {
                return Poll::Ready(Err(unread));
            }
            if body.is_end_stream() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn take(&mut self, mut data: impl Buf) -> Result<(), Unread> {
        let more = data.remaining();
        self.size += more;
        if self.size > self.limit {
            return Err(Unread::TooLarge);
        }
        if self.place.as_mut().is_some_and(|place| !place.grow(more)) {
            return Err(Unread::Busy);
        }
        let data = data.copy_to_bytes(more);
        match (&self.first, &mut self.rest) {
            (None, _) => self.first = Some(data),
            (Some(start), None) => {
                let mut all = BytesMut::with_capacity(self.size.max(2 * start.len()));
                all.extend_from_slice(start);
                all.extend_from_slice(&data);
                self.rest = Some(all);
            }
            (Some(_), Some(all)) => all.extend_from_slice(&data),
        }
        Ok(())
    }

    /// Takes the bytes out.
    fn finish(&mut self) -> Bytes {
        match self.rest.take() {
            Some(all) => all.freeze(),
            None => self.first.take().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
