//! [`HeadTimer`]: the limit on the time for a request's head to arrive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::socket::Answering;

/// The limit on the time for the next head to arrive, idle time between requests included (H7). One timer serves all requests of a
/// connection: it is set anew when it has run out. hyper's own is made, registered and dropped with every request.
pub(super) struct HeadTimer {
    answering: Answering,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl HeadTimer {
    pub(super) fn new(answering: Answering, limit: Duration) -> Self {
        Self { answering, limit, timer: Box::pin(sleep(limit)) }
    }

    /// Returns whether the timer has run out. Then [`poll`](Self::poll) has something to say, and before that it has not.
    pub(super) fn is_due(&self) -> bool {
        self.timer.is_elapsed()
    }

    /// Ready once a head has been waited for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            match self.answering.waits_for_head_since() {
                Some(since) if since + self.limit <= now => return Poll::Ready(()),
                Some(since) => self.timer.as_mut().reset(since + self.limit),
                // The request has limits of its own.
                None => self.timer.as_mut().reset(now + self.limit),
            }
        }
    }
}
