//! [`ToEnd`]: a future that goes on by itself when it is dropped.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use roundtrip::seal::BoxFuture;
use tokio::runtime::Handle;

/// A future that is run to its end, by a task of its own once it is dropped: a statement that is on its way to a database
/// cannot be taken back, and its result has to be seen to be undone.
pub(crate) struct ToEnd<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> ToEnd<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for ToEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = ready!(future.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for ToEnd<T> {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(rest.await) });
        }
    }
}
