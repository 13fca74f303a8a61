//! A session over HTTP, as far as this process keeps it: its calls, its streams, and its clients that are connected.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{ErrorObject, RequestId};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::sessions::{Sessions, UNUSED};
use super::stream::{Finish, Stream};
use crate::legacy::server::session::{Session, Sink as _, Weight};
use crate::lock::lock;
use crate::server::{Budget, Principal, Reservation};

/// Most calls of one session that run at once.
const RUNNING: usize = 256;
/// Most finished streams that a session keeps after they were read, and most bytes of them.
const KEPT: (usize, usize) = (16, 256 * 1024);
/// The same for streams not read to their end. The newest is kept however large it is.
const UNREAD: (usize, usize) = (64, 4 * 1024 * 1024);
/// Most bytes of the running calls of one session, by their parameters.
const WEIGHT: usize = 8 * 1024 * 1024;
/// Bytes counted for a call besides its parameters.
const OVERHEAD: usize = 1024;

type Call = std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;

/// A session over HTTP. It belongs to the principal that began it (L9).
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: Box<str>,
    pub(super) session: Arc<Session>,
    pub(super) principal: Option<Principal>,
    /// Stream of messages outside of any call.
    pub(super) standalone: Arc<Stream>,
    running_in_all: Arc<Budget>,
    /// Budget of all sessions, and the part of it that the session's owner holds.
    bytes: Arc<Budget>,
    own_bytes: Reservation,
    /// Time at which a sealed id expires.
    ends: Option<Instant>,
    table: Weak<Sessions>,
    held: Mutex<Held>,
}

/// Place of a session among those that the process keeps, and its bytes.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) _session: Reservation,
    pub(super) _bytes: Reservation,
}

#[derive(Debug)]
struct Held {
    seen: Instant,
    used: bool,
    readers: usize,
    last_stream: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
    running: HashMap<RequestId, Running>,
    /// `None` for a sealed session of which nothing outlives its calls.
    place: Option<Place>,
    ended: bool,
}

/// A running call.
#[derive(Debug)]
struct Running {
    /// Number of its stream, which no other call has.
    stream: u64,
    weight: usize,
    /// `None` before it is spawned.
    task: Option<AbortHandle>,
    _place: Reservation,
    _bytes: Reservation,
}

impl HttpSession {
    /// Creates a session that only this process serves.
    pub(super) fn begun(
        sessions: &Arc<Sessions>,
        id: &str,
        session: Arc<Session>,
        principal: Option<Principal>,
        place: Place,
    ) -> Self {
        Self::new(sessions, id, session, principal, Held::new(Some(place)))
    }

    /// Creates the state of a session with a sealed id, which is good for a time.
    pub(super) fn sealed(
        sessions: &Arc<Sessions>,
        id: &str,
        session: Arc<Session>,
        principal: Option<Principal>,
        left: Duration,
    ) -> Self {
        let state = Self::new(sessions, id, session, principal, Held::new(None));
        Self { ends: Some(Instant::now() + left), ..state }
    }

    fn new(
        sessions: &Arc<Sessions>,
        id: &str,
        session: Arc<Session>,
        principal: Option<Principal>,
        held: Held,
    ) -> Self {
        let charged = || sessions.bytes.charge(&session.owner, 0);
        let tag = session.shared.then(|| session.tag());
        Self {
            id: id.into(),
            principal,
            standalone: Arc::new(Stream::kept_by(0, tag, charged())),
            running_in_all: Arc::clone(&sessions.running),
            bytes: Arc::clone(&sessions.bytes),
            own_bytes: charged(),
            ends: None,
            table: Arc::downgrade(sessions),
            held: Mutex::new(held),
            session,
        }
    }

    /// Returns the number that marks the events of this state, if other instances serve the session as well.
    pub(super) fn tag(&self) -> Option<i64> {
        self.session.shared.then(|| self.session.tag())
    }

    /// Returns whether the id has expired.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|end| end <= now)
    }

    /// Returns when the session expires, unless something happens before.
    pub(super) fn expires(&self, idle: Duration, now: Instant) -> Instant {
        let end = lock(&self.held).expires(idle, now);
        self.ends.map_or(end, |last| last.min(end))
    }

    /// Returns whether nobody uses the session and nothing is kept of it.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.held).is_empty()
    }

    /// Takes a place for streams that outlive their calls.
    pub(super) fn keep(&self) -> Result<(), ErrorObject> {
        let has_ended = || ErrorObject::invalid_request("the session has ended");
        if lock(&self.held).place.is_some() {
            return Ok(());
        }
        // Without the lock: this may end other sessions.
        let place = self.table.upgrade().ok_or_else(has_ended)?.place(&self.session.owner, 0)?;
        let mut held = lock(&self.held);
        if held.ended {
            return Err(has_ended());
        }
        held.place.get_or_insert(place);
        Ok(())
    }

    /// Removes this state from the table if nothing is kept of it.
    fn leave(&self) {
        if let Some(sessions) = self.table.upgrade() {
            sessions.leave(self);
        }
    }

    /// Creates a stream for a new call.
    pub(super) fn stream(&self) -> Arc<Stream> {
        let mut held = lock(&self.held);
        held.last_stream += 1;
        Arc::new(Stream::kept_by(held.last_stream, self.tag(), self.bytes.charge(&self.session.owner, 0)))
    }

    /// Returns a stream by its number.
    pub(super) fn find_stream(&self, number: u64) -> Option<Arc<Stream>> {
        if number == 0 {
            Some(Arc::clone(&self.standalone))
        } else {
            lock(&self.held).streams.get(&number).cloned()
        }
    }

    /// Reserves a place for a call, before any of it runs.
    pub(super) fn reserve(&self, id: &RequestId, stream: u64, weight: usize) -> Result<(), ErrorObject> {
        let mut held = lock(&self.held);
        if held.ended {
            return Err(ErrorObject::invalid_request("the session has ended"));
        }
        if held.running.contains_key(id) {
            return Err(ErrorObject::invalid_request("a request of this id is still running"));
        }
        let weighs: usize = held.running.values().map(|running| running.weight).sum();
        if held.running.len() >= RUNNING || weighs + weight > WEIGHT {
            return Err(ErrorObject::new(
                BUSY,
                "too many calls at once in this session: wait for one to end",
            ));
        }
        let place = self.running_in_all.reserve(&self.session.owner, 1).ok_or_else(|| {
            ErrorObject::new(
                BUSY,
                "too many calls at once in your sessions: wait for one to end, or try again later",
            )
        })?;
        let bytes = self.bytes.reserve(&self.session.owner, OVERHEAD + weight).ok_or_else(|| {
            ErrorObject::new(
                BUSY,
                "your sessions keep too many bytes: read their streams, or try again later",
            )
        })?;
        let running = Running { stream, weight, task: None, _place: place, _bytes: bytes };
        held.running.insert(id.clone(), running);
        Ok(())
    }

    /// Gives back the place of a call that finished at once.
    pub(super) fn release(&self, id: &RequestId, stream: u64) {
        let mut held = lock(&self.held);
        // If the call was cancelled meanwhile, its id may be in use again.
        if held.running.get(id).is_some_and(|running| running.stream == stream) {
            held.running.remove(id);
        }
    }

    /// Spawns a call that outlives its connection. A call whose place is gone has been cancelled already.
    pub(super) fn spawn(self: &Arc<Self>, id: &RequestId, finish: Arc<Finish>, call: Call) {
        let mut held = lock(&self.held);
        let number = finish.0.number;
        let Some(place) = held.running.get_mut(id).filter(|running| running.stream == number) else { return };
        let (session, own, stream) = (Arc::clone(self), id.clone(), Arc::clone(&finish.0));
        let task = tokio::spawn(async move {
            let answer = call.await;
            // Under the lock: nothing is sent for a call that has just been cancelled.
            let mut held = lock(&session.held);
            // The id may be in use again since.
            if held.running.get(&own).is_some_and(|running| running.stream == number) {
                held.running.remove(&own);
                finish.0.send(answer, Weight::Answer);
            }
            drop(finish);
            held.prune(&session.own_bytes);
            let is_empty = held.is_empty();
            drop(held);
            if is_empty {
                session.leave();
            }
        });
        place.task = Some(task.abort_handle());
        held.streams.insert(number, stream);
    }

    /// Keeps a stream for a client to resume, if there is room: otherwise it can be read once.
    pub(super) fn keep_stream(&self, stream: &Arc<Stream>) {
        if self.keep().is_err() {
            return;
        }
        let mut held = lock(&self.held);
        held.streams.insert(stream.number, Arc::clone(stream));
        held.prune(&self.own_bytes);
    }

    /// Removes a stream whose answer was sent in full.
    pub(super) fn forget_stream(&self, number: u64) {
        lock(&self.held).streams.remove(&number);
    }

    /// Cancels a call and removes its stream: nothing more is sent for it.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut held = lock(&self.held);
        if let Some(running) = held.running.remove(id) {
            held.streams.remove(&running.stream);
            running.task.iter().for_each(AbortHandle::abort);
        }
    }

    /// Ends the session with its calls and streams.
    pub(super) fn end(&self) {
        let mut held = lock(&self.held);
        (held.ended, held.place) = (true, None);
        // Their streams end with them.
        held.running.drain().filter_map(|(_, running)| running.task).for_each(|task| task.abort());
        held.streams.clear();
        drop(held);
        self.standalone.finish();
    }
}

/// Marks a client as connected, or a request as under way: the session does not expire meanwhile.
#[derive(Debug)]
pub(super) struct Present(Arc<HttpSession>);

impl Present {
    pub(super) fn new(session: &Arc<HttpSession>) -> Self {
        let mut held = lock(&session.held);
        held.readers += 1;
        held.used = true;
        drop(held);
        Self(Arc::clone(session))
    }
}

impl Deref for Present {
    type Target = Arc<HttpSession>;

    fn deref(&self) -> &Arc<HttpSession> {
        &self.0
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut held = lock(&self.0.held);
        held.readers -= 1;
        held.seen = Instant::now();
        let is_empty = held.is_empty();
        drop(held);
        if is_empty {
            self.0.leave();
        }
    }
}

impl Held {
    fn new(place: Option<Place>) -> Self {
        Self {
            seen: Instant::now(),
            used: false,
            readers: 0,
            last_stream: 0,
            streams: BTreeMap::new(),
            running: HashMap::new(),
            place,
            ended: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.readers == 0 && self.running.is_empty() && self.place.is_none()
    }

    fn expires(&self, idle: Duration, now: Instant) -> Instant {
        match (self.readers, self.used) {
            (0, true) => self.seen + idle,
            (0, false) => self.seen + idle.min(UNUSED),
            // A client is connected.
            _ => now + idle,
        }
    }

    /// Keeps the newest of the finished streams, within the limits; none if the session's owner has little room left.
    /// Without a place none is kept. A reader of a removed stream holds it, and reads on.
    fn prune(&mut self, own_bytes: &Reservation) {
        let (mut count, mut bytes) = (0, 0);
        let mut gone = Vec::new();
        for (number, stream) in self.streams.iter().rev() {
            if let Some((kept, read)) = stream.kept() {
                count += 1;
                bytes += kept;
                let most = if read { KEPT } else { UNREAD };
                if count > 1 && (count > most.0 || bytes > most.1) {
                    gone.push(*number);
                }
            }
        }
        gone.iter().for_each(|number| drop(self.streams.remove(number)));
        if self.place.is_none() {
            self.streams.retain(|_, stream| stream.kept().is_none());
        }
        while own_bytes.is_tight() {
            let finished = self.streams.iter().find(|(_, stream)| stream.kept().is_some());
            let Some(oldest) = finished.map(|(number, _)| *number) else { return };
            self.streams.remove(&oldest);
        }
    }
}
