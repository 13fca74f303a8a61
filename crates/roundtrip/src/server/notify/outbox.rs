//! Queue of notifications that a handler sends before its result, for the transport that polls the handler.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use roundtrip_core::round::{Compared, SentNotifications};
use roundtrip_core::wire::{
    LoggingMessageNotification, LoggingMessageNotificationParams, NotificationMethod, ProgressNotification,
    ProgressNotificationParams, RequestId, append_notification, append_part,
};
use serde::Serialize;

use super::pace::Pace;
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
    /// Messages, one after the other: a long stream of parts needs no allocation for each.
    bytes: Vec<u8>,
    /// Bytes at the start whose messages have been taken.
    taken: usize,
    /// Length of each message that waits.
    lengths: VecDeque<usize>,
    /// Number of messages at the end that earlier rounds may have sent, which is not known yet.
    held: usize,
    last_progress: Option<f64>,
    pace: Pace,
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

    /// Creates a queue whose first part has this number.
    pub(crate) fn numbered_from(listens: Listens, part: u32) -> Self {
        let outbox = Self::new(listens);
        outbox.queue().next_part = part;
        outbox
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
        if queue.pace.admits(params) {
            queue.push::<ProgressNotification>(params, false);
        } else if let Some(waker) = queue.waker.take() {
            // The transport waits for the time at which the newest report is due.
            waker.wake();
        }
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
    /// left out. Returns whether there is room for more.
    pub(crate) fn part(&self, request_id: &RequestId, content: &impl Serialize) -> bool {
        let mut queue = self.queue();
        if queue.closed {
            return true;
        }
        let part = queue.next_part;
        queue.next_part = part.saturating_add(1);
        if part >= queue.parts_before {
            queue.insert(false, |out| append_part(out, request_id, part, content));
        }
        queue.has_room()
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
        if let Poll::Ready(params) = queue.pace.poll_due(cx) {
            queue.push::<ProgressNotification>(&params, false);
        }
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

    /// Takes all messages that are there already.
    pub(crate) fn take_all(&self, mut each: impl FnMut(&[u8])) {
        let mut queue = self.queue();
        while let Some(place) = queue.take() {
            each(&queue.bytes[place]);
        }
        queue.tidy();
    }

    /// Closes the queue: nothing is sent for a call that has ended, even if a task of its handler goes on (N2).
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.release_held();
        if let Some(last) = queue.pace.take().filter(|_| !queue.closed) {
            queue.insert(false, |out| append_notification(out, ProgressNotification::NAME, &last));
        }
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
        let place = self.take()?;
        let message = self.bytes[place].to_vec();
        self.tidy();
        Some(message)
    }

    /// Takes the next message. Its bytes stay in their place until the queue is tidied.
    fn take(&mut self) -> Option<Range<usize>> {
        if self.lengths.len() == self.held {
            return None;
        }
        let start = self.taken;
        self.taken += self.lengths.pop_front()?;
        Some(start..self.taken)
    }

    /// Frees the bytes of messages that were taken, and wakes a handler that waits for room.
    fn tidy(&mut self) {
        if self.waiting() == 0 || self.taken >= ROOM_BYTES {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        if self.room.is_some() && self.has_room() {
            self.room.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Returns the bytes of all messages that wait.
    fn waiting(&self) -> usize {
        self.bytes.len() - self.taken
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
        let kept = self.lengths.len() - self.held;
        let dropped: usize = self.lengths.drain(kept..).sum();
        self.bytes.truncate(self.bytes.len() - dropped);
        self.held = 0;
    }

    /// Lets the messages go that were held back.
    fn release_held(&mut self) {
        self.held = 0;
    }

    fn has_room(&self) -> bool {
        self.lengths.len() < CAPACITY && self.waiting() < ROOM_BYTES
    }

    fn push<N: NotificationMethod>(&mut self, params: &N::Params, hold: bool) {
        if self.lengths.len() >= CAPACITY || self.waiting() >= CAPACITY_BYTES {
            // A message that is held back is most likely a repetition.
            self.left_out += usize::from(!hold);
            return;
        }
        self.insert(hold, |out| append_notification(out, N::NAME, params));
    }

    /// Queues a message, before those that are held back unless it is one of them.
    fn insert(&mut self, hold: bool, write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            tracing::warn!(%error, "a notification does not serialise");
            return;
        }
        let length = self.bytes.len() - start;
        if hold || self.held == 0 {
            self.held += usize::from(hold);
            self.lengths.push_back(length);
        } else {
            let at = self.lengths.len() - self.held;
            let held: usize = self.lengths.range(at..).sum();
            self.bytes[start - held..].rotate_right(length);
            self.lengths.insert(at, length);
        }
        if !hold && let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(queue: &mut Queue, message: &str, hold: bool) {
        queue.insert(hold, |out| {
            out.extend_from_slice(message.as_bytes());
            Ok(())
        });
    }

    fn pop_all(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).map(|message| String::from_utf8(message).unwrap()).collect()
    }

    #[test]
    fn messages_pass_those_that_are_held_back() {
        for (released, rest) in [(true, &["held", "back", "last"][..]), (false, &["last"])] {
            let mut queue = Queue::default();
            for (message, hold) in [("held", true), ("a", false), ("back", true), ("second", false)] {
                insert(&mut queue, message, hold);
            }
            assert_eq!(pop_all(&mut queue), ["a", "second"]);
            if released {
                queue.release_held();
            } else {
                queue.drop_held();
            }
            insert(&mut queue, "last", false);
            assert_eq!(pop_all(&mut queue), rest);
            assert_eq!(queue.bytes.len(), 0);
        }
    }

    #[test]
    fn a_queue_that_is_never_empty_keeps_no_bytes_of_what_was_taken() {
        let mut queue = Queue::default();
        insert(&mut queue, "ahead", false);
        for number in 0..1000 {
            insert(&mut queue, &format!("{number:0>1000}"), false);
            assert!(queue.pop().is_some());
        }
        assert!(queue.bytes.len() <= ROOM_BYTES + 2000, "{}", queue.bytes.len());
        assert_eq!(queue.waiting(), 1000);
    }

    #[test]
    fn a_message_that_does_not_serialise_leaves_nothing_behind() {
        let mut queue = Queue::default();
        insert(&mut queue, "before", false);
        queue.insert(false, |out| {
            out.extend_from_slice(b"half");
            Err(serde::ser::Error::custom("no"))
        });
        insert(&mut queue, "after", false);
        assert_eq!(pop_all(&mut queue), ["before", "after"]);
    }
}
