//! Queue of notifications that a handler sends before its result, for the transport that polls the handler.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use roundtrip_core::round::{Compared, SentNotifications};
use roundtrip_core::wire::{
    LoggingMessageNotification, LoggingMessageNotificationParams, NotificationMethod, PartNotification,
    ProgressNotification, ProgressNotificationParams, RequestId, encode_notification,
};
use serde::Serialize;

use crate::lock::lock;
use crate::server::peer::Listens;

/// Most messages that may wait for a slow client. Further ones are left out: progress and logs are hints.
const CAPACITY: usize = 256;
/// Most bytes that may wait before further messages are left out.
const CAPACITY_BYTES: usize = 256 * 1024;
/// Most bytes that may wait before a handler that sends parts waits too.
const ROOM_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Outbox(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Vec<u8>>,
    /// Number of messages at the end that earlier rounds may have sent, which is not known yet.
    held: usize,
    /// Bytes of all messages.
    bytes: usize,
    last_progress: Option<f64>,
    left_out: usize,
    closed: bool,
    waker: Option<Waker>,
    /// Number of the next part of the result.
    next_part: u32,
    /// Number of parts that earlier rounds have sent.
    parts_before: u32,
    /// Waker of a handler that waits for room.
    room: Option<Waker>,
    /// Of a call that can ask.
    replay: Option<Replay>,
}

/// Log messages of a flow, for a replay to leave out those that were sent before.
#[derive(Debug, Default)]
struct Replay {
    /// Record of earlier rounds, as long as this round repeats it.
    earlier: Option<Box<SentNotifications>>,
    /// Record of this round, once it has sent one.
    said: Option<Box<SentNotifications>>,
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
        if queue.closed {
            return;
        }
        let increases = queue.last_progress.is_none_or(|last| params.progress > last);
        if !increases || !params.progress.is_finite() {
            tracing::debug!(progress = params.progress, "progress that does not increase is left out");
            return;
        }
        queue.last_progress = Some(params.progress);
        queue.push::<ProgressNotification>(params, false);
    }

    pub(crate) fn log(&self, params: &LoggingMessageNotificationParams) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        let compared = queue.compare(params);
        match compared {
            Compared::Same => return queue.drop_held(),
            Compared::Differs => queue.release_held(),
            Compared::Undecided => {}
        }
        queue.push::<LoggingMessageNotification>(params, compared == Compared::Undecided);
    }

    /// Queues a part of the result of a request. Parts are numbered over the flow, and those that an earlier round has sent are
    /// left out.
    pub(crate) fn part(&self, request_id: &RequestId, content: &impl Serialize) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Part<'a, C> {
            request_id: &'a RequestId,
            part: u32,
            content: &'a C,
        }
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        let part = queue.next_part;
        queue.next_part = part.saturating_add(1);
        if part >= queue.parts_before {
            queue.insert(
                encode_notification(PartNotification::NAME, &Part { request_id, part, content }),
                false,
            );
        }
    }

    /// Polls until the peer has taken most of what waits for it.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if queue.closed || queue.has_room() {
            return Poll::Ready(());
        }
        queue.room = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Begins to record what is sent, and leaves out what earlier rounds have sent: log messages up to the first that
    /// differs, and progress that does not go beyond theirs.
    pub(crate) fn remember(&self, earlier: Option<Box<SentNotifications>>) {
        let mut queue = self.queue();
        let progress = earlier.as_ref().and_then(|earlier| earlier.progress);
        queue.last_progress = queue.last_progress.or(progress);
        queue.parts_before = earlier.as_ref().map_or(0, |earlier| earlier.parts);
        let earlier = earlier.filter(|earlier| earlier.logs() > 0);
        queue.replay = Some(Replay { earlier, said: None });
    }

    /// Takes the record of what the rounds so far have sent, for the next one.
    pub(crate) fn take_sent(&self) -> Option<Box<SentNotifications>> {
        let mut queue = self.queue();
        let (progress, parts) = (queue.last_progress, queue.next_part.max(queue.parts_before));
        let Replay { earlier, said } = queue.replay.take()?;
        // A round that ends before it has repeated everything has sent nothing new.
        let others = (progress.is_some() || parts > 0).then(Box::default);
        let mut sent = earlier.or(said).or(others)?;
        sent.progress = progress;
        sent.parts = parts;
        Some(sent)
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
        queue.release_held();
        queue.closed = true;
        queue.waker = None;
        queue.room.take().into_iter().for_each(Waker::wake);
        if queue.left_out > 0 {
            tracing::warn!(left_out = queue.left_out, "a slow client missed notifications");
        }
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Vec<u8>> {
        if self.messages.len() == self.held {
            return None;
        }
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        if self.room.is_some() && self.has_room() {
            self.room.take().into_iter().for_each(Waker::wake);
        }
        Some(message)
    }

    /// Compares a log message with those of earlier rounds. A message of a call that cannot ask has not been sent before.
    fn compare(&mut self, params: &LoggingMessageNotificationParams) -> Compared {
        let Some(replay) = &mut self.replay else { return Compared::Differs };
        let said = replay.said.get_or_insert_default();
        said.log(params.level as u8, params.data.get());
        let Some(earlier) = &replay.earlier else { return Compared::Differs };
        let compared = said.compare(earlier);
        if compared == Compared::Differs || said.logs() == earlier.logs() {
            replay.earlier = None;
        }
        compared
    }

    /// Drops the messages that were held back: they have been sent before.
    fn drop_held(&mut self) {
        let kept = self.messages.len() - self.held;
        self.bytes -= self.messages.drain(kept..).map(|message| message.len()).sum::<usize>();
        self.held = 0;
    }

    /// Lets the messages go that were held back.
    fn release_held(&mut self) {
        self.held = 0;
    }

    fn has_room(&self) -> bool {
        self.messages.len() < CAPACITY && self.bytes < ROOM_BYTES
    }

    fn push<N: NotificationMethod>(&mut self, params: &N::Params, hold: bool) {
        if self.messages.len() >= CAPACITY || self.bytes >= CAPACITY_BYTES {
            // A message that is held back is most likely a repetition.
            self.left_out += usize::from(!hold);
            return;
        }
        self.insert(encode_notification(N::NAME, params), hold);
    }

    /// Queues a message, before those that are held back unless it is one of them.
    fn insert(&mut self, message: Result<Vec<u8>, serde_json::Error>, hold: bool) {
        match message {
            Ok(message) => {
                self.bytes += message.len();
                self.held += usize::from(hold);
                let at = if hold { self.messages.len() } else { self.messages.len() - self.held };
                self.messages.insert(at, message);
            }
            Err(error) => tracing::warn!(%error, "a notification does not serialise"),
        }
        if !hold && let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
