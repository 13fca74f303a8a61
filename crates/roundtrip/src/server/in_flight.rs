//! A call on its way: polled by whatever transport it came in on, and dropped with it.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use roundtrip_core::wire::{
    CallToolResult, ErrorObject, GetPromptResult, ReadResourceResult, RequestId, ServerResult,
};

use super::endpoint::Permit;
use super::handler::HandlerFuture;
use super::hook::{Outcome, OutcomeFuture};
use super::outbox::Outbox;
use super::subscription::Subscription;

/// What a call has to say next.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and a box would cost every call an allocation"
)]
#[derive(Debug)]
pub enum Event {
    /// A notification to send before the result: one whole JSON-RPC message.
    Notification(Vec<u8>),
    /// What the call came to. Nothing follows.
    Response(Outcome),
}

/// A call on its way. Poll it for [`Event`]s until the response; drop it to cancel the call.
///
/// Transports drive this. It needs no task and no channel of its own.
pub struct InFlight {
    id: RequestId,
    work: Work,
    source: Source,
    finished: Option<Outcome>,
    span: tracing::Span,
    _permit: Permit,
}

/// What there is to poll. Handlers keep their own type here, so that a call costs one box and not two.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a call, and a box would cost every call an allocation"
)]
pub(crate) enum Work {
    Ready(Option<Outcome>),
    Tool(HandlerFuture<CallToolResult>),
    Prompt(HandlerFuture<GetPromptResult>),
    Resource(HandlerFuture<ReadResourceResult>),
    Other(OutcomeFuture),
    /// Ends when the server closes its subscriptions.
    Listen(Arc<Subscription>),
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        match self {
            Self::Ready(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
            Self::Tool(work) => work.as_mut().poll(cx).map_ok(ServerResult::CallTool),
            Self::Prompt(work) => work.as_mut().poll(cx).map_ok(ServerResult::GetPrompt),
            Self::Resource(work) => work.as_mut().poll(cx).map_ok(ServerResult::ReadResource),
            Self::Other(work) => work.as_mut().poll(cx),
            Self::Listen(subscription) => {
                subscription.poll_closed(cx).map(|result| Ok(ServerResult::SubscriptionsListen(result)))
            }
        }
    }

    /// The same work as one plain future, for hooks to wrap.
    pub(crate) fn boxed(mut self) -> OutcomeFuture {
        Box::pin(poll_fn(move |cx| self.poll(cx)))
    }
}

impl From<Outcome> for Work {
    fn from(outcome: Outcome) -> Self {
        Self::Ready(Some(outcome))
    }
}

impl From<ErrorObject> for Work {
    fn from(error: ErrorObject) -> Self {
        Self::Ready(Some(Err(error)))
    }
}

/// Where notifications before the result come from.
#[derive(Debug, Default)]
pub(crate) enum Source {
    #[default]
    None,
    Outbox(Arc<Outbox>),
    Subscription(Arc<Subscription>),
}

impl Source {
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        match self {
            Self::None => Poll::Pending,
            Self::Outbox(outbox) => outbox.poll_next(cx),
            Self::Subscription(subscription) => subscription.poll_next(cx),
        }
    }

    fn pop(&self) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Outbox(outbox) => outbox.pop(),
            Self::Subscription(subscription) => subscription.pop(),
        }
    }

    fn close(&self) {
        if let Self::Outbox(outbox) = self {
            outbox.close();
        }
    }
}

impl From<Option<Arc<Outbox>>> for Source {
    fn from(outbox: Option<Arc<Outbox>>) -> Self {
        outbox.map_or(Self::None, Self::Outbox)
    }
}

impl InFlight {
    pub(crate) fn new(
        id: RequestId,
        work: Work,
        source: Source,
        span: tracing::Span,
        permit: Permit,
    ) -> Self {
        Self { id, work, source, finished: None, span, _permit: permit }
    }

    /// The request's id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// The next event. After [`Event::Response`] there is nothing more to poll for.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.finished.is_none() {
            let entered = self.span.enter();
            // One handler's panic is one call's internal error (Z1).
            let polled = catch_unwind(AssertUnwindSafe(|| self.work.poll(cx)));
            drop(entered);
            match polled {
                Ok(Poll::Pending) => return self.source.poll_next(cx).map(Event::Notification),
                Ok(Poll::Ready(outcome)) => self.finish(outcome),
                Err(_) => self.finish(Err(panicked())),
            }
        }
        match self.source.pop() {
            Some(notification) => Poll::Ready(Event::Notification(notification)),
            None => {
                self.finished.take().map_or(Poll::Pending, |outcome| Poll::Ready(Event::Response(outcome)))
            }
        }
    }

    /// The next event, as a future.
    pub async fn event(&mut self) -> Event {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn finish(&mut self, outcome: Outcome) {
        // The handler's own values go before anything else is sent.
        self.work = Work::Ready(None);
        self.source.close();
        self.finished = Some(outcome);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.source.close();
    }
}

/// What a peer is told when a handler panicked: the details are for the log.
pub(crate) fn panicked() -> ErrorObject {
    tracing::error!("a handler panicked");
    ErrorObject::internal("internal error")
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("id", &self.id).finish_non_exhaustive()
    }
}
