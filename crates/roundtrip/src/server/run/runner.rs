//! Running a call: its handler, and, if it asks, the end of its round.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use roundtrip_core::error::needed_scope;
use roundtrip_core::wire::{
    CallToolResult, CompleteResult, ErrorObject, GetPromptResult, ReadResourceResult, ServerResult,
};

use crate::server::handler::function::HandlerFuture;
use crate::server::handler::reply::{HandlerOutcome, Reply};
use crate::server::notify::subscription::Subscription;
use crate::server::outcome::{Conclusion, Outcome, OutcomeFuture, panicked};
use crate::server::round::{Flow, RoundState, Suspended};

/// A call being run.
pub(crate) struct Runner {
    work: Work,
    /// Only for handlers that can ask.
    flow: Option<Box<Flow>>,
}

/// Future of a call. Handlers keep their own type here, so that a call costs one box and not two.
pub(crate) enum Work {
    Ready(Option<Outcome>),
    Tool(HandlerFuture<CallToolResult>),
    Prompt(HandlerFuture<GetPromptResult>),
    Resource(HandlerFuture<ReadResourceResult>),
    Completer(HandlerFuture<CompleteResult>),
    Other(OutcomeFuture),
    /// Ends when the server closes its subscriptions.
    Listen(Arc<Subscription>),
}

/// Result of a poll.
enum Polled {
    Done(Outcome),
    Suspended,
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Polled> {
        match self {
            Self::Ready(outcome) => {
                outcome.take().map_or(Poll::Pending, |outcome| Poll::Ready(Polled::Done(outcome)))
            }
            Self::Tool(work) => work.as_mut().poll(cx).map(|reply| polled(reply, ServerResult::CallTool)),
            Self::Prompt(work) => work.as_mut().poll(cx).map(|reply| polled(reply, ServerResult::GetPrompt)),
            Self::Resource(work) => {
                work.as_mut().poll(cx).map(|reply| polled(reply, ServerResult::ReadResource))
            }
            Self::Completer(work) => {
                work.as_mut().poll(cx).map(|reply| polled(reply, ServerResult::Complete))
            }
            Self::Other(work) => work.as_mut().poll(cx).map(Polled::Done),
            Self::Listen(subscription) => subscription
                .poll_closed(cx)
                .map(|result| Polled::Done(Ok(ServerResult::SubscriptionsListen(result)))),
        }
    }
}

/// Converts a handler's reply into the result of a poll.
fn polled<R>(reply: Result<Reply<R>, ErrorObject>, result: fn(R) -> ServerResult) -> Polled {
    match reply {
        Ok(Reply(HandlerOutcome::Complete(value))) => Polled::Done(Ok(result(value))),
        Ok(Reply(HandlerOutcome::Suspended)) => Polled::Suspended,
        Ok(Reply(HandlerOutcome::Failed(error))) => Polled::Done(Err(error.into())),
        Err(error) => Polled::Done(Err(error)),
    }
}

impl Runner {
    pub(crate) fn new(work: Work, flow: Option<Box<Flow>>) -> Self {
        Self { work, flow }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            // One handler's panic is one call's internal error (Z1).
            let polled = catch_unwind(AssertUnwindSafe(|| self.work.poll(cx)));
            match polled {
                // A step that this round has run is kept, and the next round is refused (O34).
                Ok(Poll::Ready(Polled::Done(Err(error))))
                    if needed_scope(&error).is_some() && self.suspend(|flow| flow.refused()) => {}
                Ok(Poll::Ready(Polled::Done(outcome))) => return Poll::Ready(self.end(outcome)),
                Ok(Poll::Ready(Polled::Suspended)) if self.suspend(|flow| flow.returned()) => {}
                Ok(Poll::Ready(Polled::Suspended)) => {
                    let error = ErrorObject::internal("a handler answered with a reply of another call");
                    return Poll::Ready(self.end(Err(error)));
                }
                // Pending, an unanswered question, and no step in flight: that is the suspension (A3).
                Ok(Poll::Pending) if self.suspend(|flow| flow.suspend(cx)) => {}
                Ok(Poll::Pending) => return Poll::Pending,
                Err(_) => return Poll::Ready(self.end(Err(panicked()))),
            }
        }
    }

    /// Ends the round if the handler waits for nothing but answers.
    fn suspend(&mut self, suspended: impl FnOnce(&mut Flow) -> Option<Suspended>) -> bool {
        let Some(suspended) = self.flow.as_deref_mut().and_then(suspended) else { return false };
        let Some(flow) = self.flow.take() else { return false };
        // The handler is dropped before anything is sent: its destructors run once, and nothing of it stays (A10).
        self.work = match self.drop_work() {
            Ok(()) => flow.conclude(suspended).into(),
            Err(error) => error.into(),
        };
        true
    }

    fn end(&mut self, outcome: Outcome) -> Outcome {
        let dropped = self.drop_work();
        self.flow = None;
        dropped.and(outcome)
    }

    /// Drops the handler. One that panics over this is like any other that panics (Z1).
    fn drop_work(&mut self) -> Result<(), ErrorObject> {
        let work = std::mem::replace(&mut self.work, Work::Ready(None));
        catch_unwind(AssertUnwindSafe(|| drop(work))).map_err(|_| panicked())
    }

    /// Returns whether there is no handler left to drop.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.work, Work::Ready(_))
    }

    /// Drops the handler. What its destructors panic with is logged.
    pub(crate) fn cancel(&mut self) {
        let _ = self.drop_work();
    }

    /// Returns the state of its round, if its handler can ask.
    pub(crate) fn round_state(&self) -> Option<&Arc<RoundState>> {
        self.flow.as_ref().map(|flow| &flow.round)
    }
}

/// A call that is cancelled drops its handler, whose destructors are user code (Z1).
impl Drop for Runner {
    fn drop(&mut self) {
        if !self.is_done() {
            self.cancel();
        }
    }
}

impl From<Work> for Runner {
    fn from(work: Work) -> Self {
        Self::new(work, None)
    }
}

impl From<Outcome> for Work {
    fn from(outcome: Outcome) -> Self {
        Self::Ready(Some(outcome))
    }
}

impl From<Conclusion> for Work {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Now(outcome) => outcome.into(),
            Conclusion::Later(concluding) => Self::Other(concluding),
        }
    }
}

impl From<ErrorObject> for Work {
    fn from(error: ErrorObject) -> Self {
        Self::Ready(Some(Err(error)))
    }
}
