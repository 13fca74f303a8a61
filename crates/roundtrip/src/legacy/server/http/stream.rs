//! Stream of events that outlives its connections (transports, "Resumability and Redelivery").

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::event_stream::write_data;
use crate::legacy::server::session::{Sink, Weight};
use crate::lock::lock;
use crate::server::Reservation;

/// Most hints kept for a client that does not read them. All questions and answers are kept: they are few, because
/// each waits for the one before.
const KEPT_HINTS: usize = 256;
/// Most bytes of hints that are kept. The newest is kept however long it is.
const KEPT_HINT_BYTES: usize = 256 * 1024;
/// Bytes counted for a message besides its text.
const OVERHEAD: usize = 64;
/// Time for a client to wait before it reconnects, in milliseconds.
const RETRY: u32 = 1_000;

/// Messages of one call, or those outside of any call.
#[derive(Debug)]
pub(super) struct Stream {
    /// Unique within the session; part of every event's id.
    pub(super) number: u64,
    /// Number of the process's state of a session that others serve as well: a part of every event's id too.
    tag: Option<i64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    /// Number of the last event.
    last: u64,
    bytes: usize,
    /// Reservation for them in the budget of all sessions. `None` if the stream ends with its connection.
    held: Option<Reservation>,
    hints: usize,
    hint_bytes: usize,
    finished: bool,
    /// True once it has been read to its end.
    read: bool,
    /// Current reader: the last one to attach. Earlier ones are done.
    reader: u64,
    /// True if the reader is to disconnect, and to come back later.
    let_go: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    weight: Weight,
    message: Vec<u8>,
}

/// First message of a stream, which decides how a request is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The answer, and nothing before it.
    Answer(Vec<u8>),
    /// Any other message.
    Events,
}

impl Stream {
    /// Creates a stream that ends with its connection.
    pub(super) fn new(number: u64) -> Self {
        Self { number, tag: None, state: Mutex::default() }
    }

    /// Creates a stream of a session, charged to its budget.
    pub(super) fn kept_by(number: u64, tag: Option<i64>, held: Reservation) -> Self {
        Self { number, tag, state: Mutex::new(State { held: Some(held), ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Ends the stream: no more messages will follow.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.finished = true;
        state.wake();
    }

    /// Closes the current connection. The client comes back for the rest.
    pub(super) fn let_go(&self) {
        let mut state = self.state();
        state.let_go = true;
        state.wake();
    }

    /// Takes note that a disconnected client is back.
    pub(super) fn come_back(&self) {
        self.state().let_go = false;
    }

    /// Returns how many bytes an ended stream keeps, and whether they have been read.
    pub(super) fn kept(&self) -> Option<(usize, bool)> {
        let state = self.state();
        state.finished.then_some((state.bytes, state.read))
    }

    /// Returns whether anything follows after an event.
    pub(super) fn goes_on_after(&self, event: u64) -> bool {
        let state = self.state();
        !state.finished || state.last > event
    }

    /// Returns whether no other reader has attached since.
    pub(super) fn is_read_by(&self, reader: &Reader) -> bool {
        self.state().reader == reader.number
    }

    pub(super) fn poll_first(&self, cx: &mut Context<'_>) -> Poll<First> {
        let mut state = self.state();
        let alone = state.events.len() == 1 && state.events[0].weight == Weight::Answer;
        if state.finished && alone && !state.let_go {
            let answer = state.events.pop_front().map(|event| event.message);
            return Poll::Ready(answer.map_or(First::Events, First::Answer));
        }
        if state.finished || state.let_go || !state.events.is_empty() {
            return Poll::Ready(First::Events);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Attaches a reader after an event; earlier readers are done. Without an event, messages sent already are
    /// skipped.
    pub(super) fn attach(&self, after: Option<u64>) -> Reader {
        let mut state = self.state();
        state.reader += 1;
        state.wake();
        Reader { number: state.reader, seen: after.unwrap_or(state.last) }
    }

    /// Appends the next events to `out`; false if there is nothing more to wait for.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Poll<bool> {
        let mut state = self.state();
        if state.reader != reader.number {
            // A client that opens two streams for its session gets messages on one of them; the other stays open, or
            // the client would reconnect at once and take over from the first. Its keep-alive wakes it up often
            // enough.
            let stays = self.number == 0 && !state.finished;
            return if stays { Poll::Pending } else { Poll::Ready(false) };
        }
        let before = out.len();
        for event in state.events.iter().filter(|event| event.number > reader.seen) {
            self.write_id(out, event.number);
            write_data(out, |out| out.extend_from_slice(&event.message));
        }
        reader.seen = reader.seen.max(state.last);
        state.read |= state.finished;
        if out.len() > before {
            return Poll::Ready(true);
        }
        if state.finished || state.let_go {
            return Poll::Ready(false);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Writes an event without a message: from then on a client knows how to resume, and when.
    pub(super) fn prime(&self, reader: &Reader, out: &mut Vec<u8>) {
        self.write_id(out, reader.seen);
        let _ = write!(out, "retry: {RETRY}\ndata: \n\n");
    }

    /// Writes the line with an event's id.
    fn write_id(&self, out: &mut Vec<u8>, event: u64) {
        // Writing into memory does not fail.
        let _ = match self.tag {
            Some(tag) => writeln!(out, "id: {}-{event}-{tag:x}", self.number),
            None => writeln!(out, "id: {}-{event}", self.number),
        };
    }
}

/// Position of a reader in a stream.
#[derive(Debug)]
pub(super) struct Reader {
    number: u64,
    seen: u64,
}

impl State {
    fn push(&mut self, event: Event) {
        let size = event.message.len();
        self.bytes += size;
        if event.weight == Weight::Hint {
            self.hints += 1;
            self.hint_bytes += size;
        }
        self.events.push_back(event);
        if let Some(held) = &mut self.held {
            held.charge(size + OVERHEAD);
        }
    }

    /// Drops the oldest hint.
    fn drop_hint(&mut self) {
        self.hints = self.hints.saturating_sub(1);
        let oldest = self.events.iter().position(|event| event.weight == Weight::Hint);
        let Some(event) = oldest.and_then(|oldest| self.events.remove(oldest)) else { return };
        self.hint_bytes -= event.message.len();
        self.bytes -= event.message.len();
        if let Some(held) = &mut self.held {
            held.shrink(event.message.len() + OVERHEAD);
        }
    }

    fn is_tight(&self) -> bool {
        self.held.as_ref().is_some_and(Reservation::is_tight)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Sink for Stream {
    fn send(&self, message: Vec<u8>, weight: Weight) {
        let mut state = self.state();
        if state.finished {
            return;
        }
        state.last += 1;
        let number = state.last;
        state.push(Event { number, weight, message });
        // Outside of any call the last message is kept: it would not be sent again.
        let spared = usize::from(self.number == 0);
        while state.hints > KEPT_HINTS
            || state.hints > 1 && state.hint_bytes > KEPT_HINT_BYTES
            || state.hints > spared && state.is_tight()
        {
            state.drop_hint();
        }
        state.wake();
    }
}

/// Ends a stream when the last of its writers is done or aborted.
#[derive(Debug)]
pub(super) struct Finish(pub(super) std::sync::Arc<Stream>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}
