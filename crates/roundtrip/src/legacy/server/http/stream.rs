//! A stream of events that outlives the connections it is read through (transports, "Resumability and Redelivery").

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use roundtrip_core::wire::one_line;

use crate::legacy::server::session::{Sink, Weight};
use crate::server::Reservation;

/// How many hints are kept for a client that does not read them. Questions and answers are kept whatever their number,
/// which is small: each of them waits for the one before.
const KEPT_HINTS: usize = 256;
/// How many bytes of hints are kept. The newest is kept however long it is.
const KEPT_HINT_BYTES: usize = 256 * 1024;
/// How many bytes a message takes besides its text.
const OVERHEAD: usize = 64;
/// How long a client is to wait before it comes back, in milliseconds.
const RETRY: u32 = 1_000;

/// The messages of one call, or those outside of any call.
#[derive(Debug)]
pub(super) struct Stream {
    /// Unique within the session; part of every event's id.
    pub(super) number: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    /// The number of the last event.
    last: u64,
    bytes: usize,
    /// The same in the budget of all sessions. None where the stream ends with its connection.
    held: Option<Reservation>,
    hints: usize,
    hint_bytes: usize,
    finished: bool,
    /// It has been read to its end.
    read: bool,
    /// Who reads: the last one to come. Earlier ones are done.
    reader: u64,
    /// The reader is to go, and to come back later.
    let_go: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    weight: Weight,
    message: Vec<u8>,
}

/// What a stream begins with, which decides how a request is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum First {
    /// With the answer, which is all there is.
    Answer(Vec<u8>),
    /// With something else.
    Events,
}

impl Stream {
    /// A stream that ends with its connection.
    pub(super) fn new(number: u64) -> Self {
        Self { number, state: Mutex::default() }
    }

    /// A stream of a session, which has to answer for what is kept.
    pub(super) fn kept_by(number: u64, held: Reservation) -> Self {
        Self { number, state: Mutex::new(State { held: Some(held), ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is made in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more will come.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.finished = true;
        state.wake();
    }

    /// Lets the current connection go. The client comes back for the rest.
    pub(super) fn let_go(&self) {
        let mut state = self.state();
        state.let_go = true;
        state.wake();
    }

    /// A client that was let go is back.
    pub(super) fn come_back(&self) {
        self.state().let_go = false;
    }

    /// How many bytes are kept here, once nothing more comes, and whether they have been read.
    pub(super) fn kept(&self) -> Option<(usize, bool)> {
        let state = self.state();
        state.finished.then_some((state.bytes, state.read))
    }

    /// Whether there is anything to come after an event.
    pub(super) fn goes_on_after(&self, event: u64) -> bool {
        let state = self.state();
        !state.finished || state.last > event
    }

    /// Whether somebody else has come to read since.
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

    /// Begins to read after an event; all earlier readers are done. Without one, what has been sent already is left out.
    pub(super) fn attach(&self, after: Option<u64>) -> Reader {
        let mut state = self.state();
        state.reader += 1;
        state.wake();
        Reader { number: state.reader, seen: after.unwrap_or(state.last) }
    }

    /// What comes next, as events, at the end of `out`; false when there is nothing more to wait for.
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        reader: &mut Reader,
        out: &mut Vec<u8>,
    ) -> Poll<bool> {
        let mut state = self.state();
        if state.reader != reader.number {
            // Whoever listens to a session on two connections is told on one of them; the other stays open, or the client
            // would come back at once and take the place of the first. Its sign of life wakes it up often enough.
            let stays = self.number == 0 && !state.finished;
            return if stays { Poll::Pending } else { Poll::Ready(false) };
        }
        let before = out.len();
        for event in state.events.iter().filter(|event| event.number > reader.seen) {
            // Writing into memory does not fail.
            let _ = write!(out, "id: {}-{}\ndata: ", self.number, event.number);
            let start = out.len();
            out.extend_from_slice(&event.message);
            one_line(&mut out[start..]);
            out.extend_from_slice(b"\n\n");
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

    /// An event without a message: from then on a client can come back for the rest, and knows when.
    pub(super) fn prime(&self, reader: &Reader, out: &mut Vec<u8>) {
        let _ = write!(out, "id: {}-{}\nretry: {RETRY}\ndata: \n\n", self.number, reader.seen);
    }
}

/// A place in a stream.
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

    /// Leaves the oldest hint out.
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
        // Of what is told outside of any call, the last thing stays: nobody would tell it again.
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

/// Finishes a stream when the last of those who write to it is done, or was made to stop.
#[derive(Debug)]
pub(super) struct Finish(pub(super) std::sync::Arc<Stream>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}
