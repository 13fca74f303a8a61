//! A call on its way: polled by whatever transport it came in on, and dropped with it.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use roundtrip_core::wire::RequestId;

use super::runner::Runner;
use super::span::CallSpan;
use crate::server::limits::Permit;
use crate::server::notify::outbox::Outbox;
use crate::server::notify::subscription::Subscription;
use crate::server::outcome::Outcome;

/// Next event of a call.
#[derive(Debug)]
pub enum Event {
    /// A notification to send before the result: one whole JSON-RPC message. Where messages are lines, it goes through
    /// [`one_line`](roundtrip_core::wire::one_line) first.
    Notification(Vec<u8>),
    /// The outcome of the call. Nothing follows.
    Response(Outcome),
}

/// A call on its way. Poll it for [`Event`]s until the response; drop it to cancel the call.
///
/// Transports drive this. It needs no task and no channel of its own.
pub struct InFlight {
    id: RequestId,
    run: Runner,
    source: Source,
    /// Outcome that waits for the notifications before it.
    finished: Option<Outcome>,
    span: CallSpan,
    _permit: Permit,
}

/// Source of the notifications before the result.
#[derive(Debug, Default)]
pub(crate) enum Source {
    #[default]
    None,
    Outbox(Arc<Outbox>),
    Subscription(Arc<Subscription>),
    /// Of a call that is prepared while it is polled: unset before.
    Deferred(Arc<OnceLock<Source>>),
}

impl Source {
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        match self {
            Self::None => Poll::Pending,
            Self::Outbox(outbox) => outbox.poll_next(cx),
            Self::Subscription(subscription) => subscription.poll_next(cx),
            // The call is polled first, so it has been prepared or waits for a hook that wakes it.
            Self::Deferred(source) => source.get().map_or(Poll::Pending, |source| source.poll_next(cx)),
        }
    }

    fn pop(&self) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Outbox(outbox) => outbox.pop(),
            Self::Subscription(subscription) => subscription.pop(),
            Self::Deferred(source) => source.get().and_then(Self::pop),
        }
    }

    fn take_all(&self, mut each: impl FnMut(&[u8])) {
        match self {
            Self::None => {}
            Self::Outbox(outbox) => outbox.take_all(each),
            Self::Subscription(subscription) => {
                while let Some(message) = subscription.pop() {
                    each(&message);
                }
            }
            Self::Deferred(source) => {
                if let Some(source) = source.get() {
                    source.take_all(each);
                }
            }
        }
    }

    fn close(&self) {
        match self {
            Self::Outbox(outbox) => outbox.close(),
            Self::Deferred(source) => source.get().into_iter().for_each(Self::close),
            Self::None | Self::Subscription(_) => {}
        }
    }
}

impl From<Option<Arc<Outbox>>> for Source {
    fn from(outbox: Option<Arc<Outbox>>) -> Self {
        outbox.map_or(Self::None, Self::Outbox)
    }
}

impl InFlight {
    pub(crate) fn new(id: RequestId, run: Runner, source: Source, span: CallSpan, permit: Permit) -> Self {
        Self { id, run, source, finished: None, span, _permit: permit }
    }

    /// The request's id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns whether no handler is left to run: the next events are ready, and so is the response.
    pub(crate) fn is_settled(&self) -> bool {
        self.finished.is_some() || self.run.is_done()
    }

    /// Takes all notifications that wait to be sent already.
    pub(crate) fn take_notifications(&self, each: impl FnMut(&[u8])) {
        self.source.take_all(each);
    }

    /// The next event. After [`Event::Response`] there is nothing more to poll for.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let Some(outcome) = self.finished.take() else { return self.poll_run(cx) };
        Poll::Ready(self.last_events(outcome))
    }

    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let entered = self.span.enter();
        let polled = self.run.poll(cx);
        drop(entered);
        match polled {
            Poll::Pending => self.source.poll_next(cx).map(Event::Notification),
            Poll::Ready(outcome) => {
                self.source.close();
                #[cfg(feature = "opentelemetry")]
                self.span.end(&outcome);
                Poll::Ready(self.last_events(outcome))
            }
        }
    }

    /// Returns what is left to send: the notifications first, the response last.
    fn last_events(&mut self, outcome: Outcome) -> Event {
        match self.source.pop() {
            None => Event::Response(outcome),
            Some(notification) => {
                self.finished = Some(outcome);
                Event::Notification(notification)
            }
        }
    }

    /// The next event, as a future.
    pub async fn event(&mut self) -> Event {
        poll_fn(|cx| self.poll_event(cx)).await
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.source.close();
        if !self.run.is_done() {
            // Inside its span, for what the handler's destructors log and for a claimed round, which goes on.
            let _entered = self.span.enter();
            self.run.cancel();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("id", &self.id).finish_non_exhaustive()
    }
}
