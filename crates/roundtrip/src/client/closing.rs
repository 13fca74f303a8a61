//! Signal that the client is closed, for everything that waits.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::error::Error;
use tokio::sync::watch;

use super::transport::{BoxFuture, Incoming};

/// Signal that the client is closed. Dropping it is such a signal too.
#[derive(Default)]
pub(crate) struct Closing(watch::Sender<bool>);

impl Closing {
    /// Ends everything under way, and whatever begins later.
    pub(crate) fn signal(&self) {
        self.0.send_replace(true);
    }

    /// Returns a receiver of the signal.
    pub(crate) fn watch(&self) -> Closed {
        Closed(self.0.subscribe())
    }
}

/// Receiver of that signal.
#[derive(Clone)]
pub(crate) struct Closed(watch::Receiver<bool>);

impl Closed {
    /// Returns whether the client has been closed.
    #[cfg(feature = "legacy")]
    pub(crate) fn is_closed(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for the client to be closed.
    pub(crate) async fn wait(mut self) {
        // Without a sender there is no client any more.
        let _ = self.0.wait_for(|closed| *closed).await;
    }

    /// Runs a future, unless the client is closed first: then it is dropped.
    pub(crate) async fn unless<T, E: From<Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            () = self.clone().wait() => Err(Error::Closed.into()),
            done = work => done,
        }
    }
}

/// Passes messages on until the client is closed.
pub(crate) fn until_closed(incoming: Incoming, closed: Closed) -> Incoming {
    until(incoming, async move {
        closed.wait().await;
        Error::Closed
    })
}

/// Passes messages on until a future gives the error that ends them.
pub(crate) fn until(incoming: Incoming, ended: impl Future<Output = Error> + Send + 'static) -> Incoming {
    Box::pin(Until { incoming: Some(incoming), ended: Box::pin(ended) })
}

struct Until {
    /// `None` once the stream has ended.
    incoming: Option<Incoming>,
    ended: BoxFuture<Error>,
}

impl Stream for Until {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.incoming.is_some()
            && let Poll::Ready(error) = self.ended.as_mut().poll(cx)
        {
            self.incoming = None;
            return Poll::Ready(Some(Err(error)));
        }
        match &mut self.incoming {
            Some(incoming) => incoming.as_mut().poll_next(cx),
            None => Poll::Ready(None),
        }
    }
}
