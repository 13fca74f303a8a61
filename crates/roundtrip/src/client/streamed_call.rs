//! [`StreamedCall`]: a call of a tool whose result comes in parts.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_core::Stream;
use roundtrip_core::error::Error;
use roundtrip_core::wire::{CallToolResult, ContentBlock};

use super::options::OnPart;
use super::transport::BoxFuture;
use crate::lock::lock;

/// Call of a tool as a stream of the parts of its result, with the result at its end: [`Call::parts`](super::Call::parts).
///
/// The call runs while the stream is polled, and dropping the stream cancels it.
#[must_use = "a call does nothing until it is polled"]
pub struct StreamedCall {
    call: Option<BoxFuture<Result<CallToolResult, Error>>>,
    /// Parts that have arrived, at most those of one poll of the call.
    arrived: Arc<Mutex<VecDeque<ContentBlock>>>,
    result: Option<Result<CallToolResult, Error>>,
}

impl StreamedCall {
    /// Begins a call with the hook that its parts go to.
    pub(super) fn new(begin: impl FnOnce(OnPart) -> BoxFuture<Result<CallToolResult, Error>>) -> Self {
        let arrived = Arc::<Mutex<VecDeque<_>>>::default();
        let inbox = Arc::clone(&arrived);
        let call = begin(Box::new(move |part| lock(&inbox).push_back(part)));
        Self { call: Some(call), arrived, result: None }
    }

    /// Returns the next part, or `None` once all have come and the call is over.
    pub async fn next(&mut self) -> Option<ContentBlock> {
        poll_fn(|cx| self.poll_part(cx)).await
    }

    /// Returns the result of the call, which is whole however many of its parts were looked at.
    ///
    /// # Errors
    /// Those of the call.
    pub async fn result(mut self) -> Result<CallToolResult, Error> {
        loop {
            if let Some(result) = self.result.take() {
                return result;
            }
            self.next().await;
        }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<ContentBlock>> {
        loop {
            if let Some(part) = lock(&self.arrived).pop_front() {
                return Poll::Ready(Some(part));
            }
            let Some(call) = &mut self.call else { return Poll::Ready(None) };
            match call.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    self.call = None;
                    self.result = Some(result);
                }
                Poll::Pending if lock(&self.arrived).is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}

impl Stream for StreamedCall {
    type Item = ContentBlock;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ContentBlock>> {
        self.poll_part(cx)
    }
}

impl fmt::Debug for StreamedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedCall").field("ended", &self.call.is_none()).finish_non_exhaustive()
    }
}
