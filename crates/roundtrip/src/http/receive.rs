//! Reading a request's body: bounded in size and time, and without a copy when it comes in one piece.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;

use super::limits::HttpLimits;

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLarge,
    TooSlow,
    Broken,
}

/// Reads a whole body.
pub(crate) async fn read<B: Body>(body: B, limits: &HttpLimits) -> Result<Bytes, Unread> {
    let mut body = pin!(body);
    let mut reading = pin!(async {
        let mut first: Option<Bytes> = None;
        let mut rest: Option<BytesMut> = None;
        let mut size = 0;
        loop {
            let frame = match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                None => break,
                Some(Err(_)) => return Err(Unread::Broken),
                Some(Ok(frame)) => frame,
            };
            let Ok(mut data) = frame.into_data() else { continue };
            size += data.remaining();
            if size > limits.body_bytes {
                return Err(Unread::TooLarge);
            }
            match (&first, &mut rest) {
                (None, _) => first = Some(data.copy_to_bytes(data.remaining())),
                (Some(start), None) => {
                    let mut all = BytesMut::with_capacity(size.max(2 * start.len()));
                    all.extend_from_slice(start);
                    all.extend_from_slice(&data.copy_to_bytes(data.remaining()));
                    rest = Some(all);
                }
                (Some(_), Some(all)) => all.extend_from_slice(&data.copy_to_bytes(data.remaining())),
            }
            if body.is_end_stream() {
                break;
            }
        }
        Ok(rest.map(BytesMut::freeze).or(first).unwrap_or_default())
    });
    // Most bodies arrive together with their head: a timer is only set for those that do not.
    if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        return read;
    }
    tokio::time::timeout(limits.body_timeout, reading).await.unwrap_or(Err(Unread::TooSlow))
}
