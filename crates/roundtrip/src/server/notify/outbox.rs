//! Queue of notifications that a handler sends before its result, for the transport that polls the handler.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use roundtrip_core::wire::{
    LoggingMessageNotification, LoggingMessageNotificationParams, NotificationMethod, ProgressNotification,
    ProgressNotificationParams, encode_notification,
};

use crate::lock::lock;
use crate::server::peer::Listens;

/// Most messages that may wait for a slow client. Further ones are left out: progress and logs are hints.
const CAPACITY: usize = 256;
/// Most bytes that may wait before further messages are left out.
const CAPACITY_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Outbox(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Vec<u8>>,
    /// Bytes of all messages.
    bytes: usize,
    last_progress: Option<f64>,
    left_out: usize,
    closed: bool,
    waker: Option<Waker>,
}

impl Outbox {
    pub(crate) fn new(listens: Listens) -> Self {
        Self(Mutex::new(Queue { closed: listens == Listens::No, ..Queue::default() }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.0)
    }

    pub(crate) fn progress(&self, params: &ProgressNotificationParams) {
        let mut queue = self.queue();
        let increases = queue.last_progress.is_none_or(|last| params.progress > last);
        if !increases || !params.progress.is_finite() {
            tracing::debug!(progress = params.progress, "progress that does not increase is left out");
            return;
        }
        queue.last_progress = Some(params.progress);
        queue.push::<ProgressNotification>(params);
    }

    pub(crate) fn log(&self, params: &LoggingMessageNotificationParams) {
        self.queue().push::<LoggingMessageNotification>(params);
    }

    /// Returns the next message, or `Pending` with the waker kept.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut queue = self.queue();
        match queue.pop() {
            Some(message) => Poll::Ready(message),
            None => {
                if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    queue.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Returns the next message that is there already.
    pub(crate) fn pop(&self) -> Option<Vec<u8>> {
        self.queue().pop()
    }

    /// Closes the queue: nothing is sent for a call that has ended, even if a task of its handler goes on (N2).
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.waker = None;
        if queue.left_out > 0 {
            tracing::warn!(left_out = queue.left_out, "a slow client missed notifications");
        }
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Vec<u8>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    fn push<N: NotificationMethod>(&mut self, params: &N::Params) {
        if self.closed {
            return;
        }
        if self.messages.len() >= CAPACITY || self.bytes >= CAPACITY_BYTES {
            self.left_out += 1;
            return;
        }
        match encode_notification(N::NAME, params) {
            Ok(message) => {
                self.bytes += message.len();
                self.messages.push_back(message);
            }
            Err(error) => tracing::warn!(%error, "a notification does not serialise"),
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
