//! Stream of messages made by an async function, one after the other.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;

use crate::client::{Error, Incoming};

/// Outcome of a step: a message, and the state of the next step; none after the last one.
pub(crate) type Stepped<S> = (Result<Bytes, Error>, Option<S>);

/// Builds a stream of the messages that `step` makes of its state, until there is none. Dropping the stream drops the
/// state, wherever it is.
pub(crate) fn unfold<S, F, Fut>(state: S, step: F) -> Incoming
where
    S: Send + Unpin + 'static,
    F: FnMut(S) -> Fut + Send + Unpin + 'static,
    Fut: Future<Output = Option<Stepped<S>>> + Send + 'static,
{
    Box::pin(Unfold { state: Some(state), running: None, step })
}

struct Unfold<S, F, Fut> {
    state: Option<S>,
    running: Option<Pin<Box<Fut>>>,
    step: F,
}

impl<S, F, Fut> Stream for Unfold<S, F, Fut>
where
    S: Unpin,
    F: FnMut(S) -> Fut + Unpin,
    Fut: Future<Output = Option<Stepped<S>>>,
{
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(state) = this.state.take() {
            this.running = Some(Box::pin((this.step)(state)));
        }
        let Some(running) = &mut this.running else { return Poll::Ready(None) };
        let stepped = ready!(running.as_mut().poll(cx));
        this.running = None;
        Poll::Ready(stepped.map(|(item, state)| {
            this.state = state;
            item
        }))
    }
}
