//! Sessions over HTTP (transports, "Session Management").

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{ErrorObject, RequestId};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::stream::{Finish, Stream};
use crate::legacy::server::session::{Session, Sink as _, Weight};
use crate::lock::lock;
use crate::server::{Budget, Handshake, Owner, Principal, Reservation, random};

/// Most calls of one session that run at once.
const RUNNING: usize = 256;
/// Most finished streams that a session keeps after they were read, and most bytes of them.
const KEPT: (usize, usize) = (16, 256 * 1024);
/// The same for streams not read to their end. The newest is kept however large it is.
const UNREAD: (usize, usize) = (64, 4 * 1024 * 1024);
/// Most bytes of the running calls of one session, by their parameters.
const WEIGHT: usize = 8 * 1024 * 1024;
/// Bytes counted for a session besides the parameters of `initialize`, and for a call besides its own.
const OVERHEAD: (usize, usize) = (4 * 1024, 1024);
/// Lifetime of a session that was begun and never used.
const UNUSED: Duration = Duration::from_secs(60);

type Call = std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;

/// Sessions of one endpoint, by their unguessable ids.
#[derive(Debug)]
pub(super) struct Sessions {
    settings: Handshake,
    table: Mutex<SessionTable>,
    /// Budget of the calls running in all sessions: the other half is for calls without a session.
    running: Arc<Budget>,
    /// Budgets for sessions, and for the bytes they keep.
    places: Arc<Budget>,
    bytes: Arc<Budget>,
}

#[derive(Debug, Default)]
struct SessionTable {
    open: HashMap<Box<str>, Arc<HttpSession>>,
    /// True while a task ends expired sessions.
    reaped: bool,
}

/// A session over HTTP. It belongs to the principal that began it (L9).
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    principal: Option<Principal>,
    /// Stream of messages outside of any call.
    pub(super) standalone: Arc<Stream>,
    running_in_all: Arc<Budget>,
    /// Budget of all sessions, and the reservation of this one.
    bytes: Arc<Budget>,
    own_bytes: Reservation,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    seen: Instant,
    used: bool,
    readers: usize,
    last_stream: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
    running: HashMap<RequestId, Running>,
    /// `None` once the session has ended.
    place: Option<Reservation>,
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

impl Sessions {
    pub(super) fn new(settings: Handshake, concurrent_calls: usize) -> Arc<Self> {
        Arc::new(Self {
            settings,
            table: Mutex::default(),
            running: Budget::new(concurrent_calls.div_ceil(2)),
            places: Budget::new(settings.max_sessions),
            bytes: Budget::new(settings.session_bytes),
        })
    }

    /// Begins a session and returns its id. `said` is the number of bytes it keeps of `initialize`.
    pub(super) fn open(
        self: &Arc<Self>,
        session: Arc<Session>,
        principal: Option<Principal>,
        said: usize,
    ) -> Result<String, ErrorObject> {
        let id = URL_SAFE_NO_PAD.encode(random::<24>()?);
        let room = self.room(&session.owner, said).or_else(|| {
            self.expire();
            self.room(&session.owner, said)
        });
        let (place, own_bytes) =
            room.ok_or_else(|| ErrorObject::new(BUSY, "too many sessions: end one, or try again later"))?;
        let held = Held {
            seen: Instant::now(),
            used: false,
            readers: 0,
            last_stream: 0,
            streams: BTreeMap::new(),
            running: HashMap::new(),
            place: Some(place),
        };
        let standalone = Stream::kept_by(0, self.bytes.charge(&session.owner, 0));
        let session = HttpSession {
            session,
            principal,
            standalone: Arc::new(standalone),
            running_in_all: Arc::clone(&self.running),
            bytes: Arc::clone(&self.bytes),
            own_bytes,
            held: Mutex::new(held),
        };
        let mut table = lock(&self.table);
        table.open.insert(id.as_str().into(), Arc::new(session));
        if !std::mem::replace(&mut table.reaped, true) {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
        Ok(id)
    }

    /// Reserves a place for a session, and bytes for what it keeps from the start.
    fn room(&self, owner: &Owner, said: usize) -> Option<(Reservation, Reservation)> {
        Some((self.places.reserve(owner, 1)?, self.bytes.reserve(owner, OVERHEAD.0 + said)?))
    }

    /// Finds a session of this principal. A session of another principal is reported like one that does not exist.
    pub(super) fn find(&self, id: &str, principal: Option<&Principal>) -> Option<Arc<HttpSession>> {
        let session = Arc::clone(lock(&self.table).open.get(id)?);
        if session.principal.as_ref() != principal {
            tracing::warn!("a request named a session of another principal");
            return None;
        }
        let mut held = lock(&session.held);
        held.seen = Instant::now();
        held.used = true;
        drop(held);
        Some(session)
    }

    /// Ends a session of this principal; returns whether there was one.
    pub(super) fn end(&self, id: &str, principal: Option<&Principal>) -> bool {
        let Some(session) = self.find(id, principal) else { return false };
        lock(&self.table).open.remove(id);
        session.end();
        true
    }

    /// Ends expired sessions; returns when the next one expires, if there are any left.
    fn expire(&self) -> Option<Instant> {
        let (idle, now) = (self.settings.idle_for, Instant::now());
        let mut table = lock(&self.table);
        let mut next = None;
        let mut expired = Vec::new();
        table.open.retain(|_, session| {
            let end = lock(&session.held).expires(idle, now);
            if end <= now {
                expired.push(Arc::clone(session));
                return false;
            }
            next = Some(next.map_or(end, |next: Instant| next.min(end)));
            true
        });
        table.reaped = next.is_some();
        drop(table);
        expired.iter().for_each(|session| session.end());
        next
    }
}

/// Ends sessions as they expire, as long as there are any.
async fn reap(sessions: Weak<Sessions>) {
    loop {
        let Some(next) = sessions.upgrade().and_then(|sessions| sessions.expire()) else { return };
        // Sessions that begin meanwhile may be the first to expire.
        sleep_until(next.min(Instant::now() + UNUSED)).await;
    }
}

impl Held {
    fn expires(&self, idle: Duration, now: Instant) -> Instant {
        match (self.readers, self.used) {
            (0, true) => self.seen + idle,
            (0, false) => self.seen + idle.min(UNUSED),
            // A client is connected.
            _ => now + idle,
        }
    }
}

impl HttpSession {
    /// Creates a stream for a new call.
    pub(super) fn stream(&self) -> Arc<Stream> {
        let mut held = lock(&self.held);
        held.last_stream += 1;
        Arc::new(Stream::kept_by(held.last_stream, self.bytes.charge(&self.session.owner, 0)))
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
        if held.place.is_none() {
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
        let bytes = self.bytes.reserve(&self.session.owner, OVERHEAD.1 + weight).ok_or_else(|| {
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
        });
        place.task = Some(task.abort_handle());
        held.streams.insert(number, stream);
    }

    /// Keeps a stream that has ended already, for a client to resume.
    pub(super) fn keep_stream(&self, stream: &Arc<Stream>) {
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
    fn end(&self) {
        let mut held = lock(&self.held);
        held.place = None;
        // Their streams end with them.
        held.running.drain().filter_map(|(_, running)| running.task).for_each(|task| task.abort());
        held.streams.clear();
        drop(held);
        self.standalone.finish();
    }
}

/// Marks a client as connected: the session does not expire meanwhile.
#[derive(Debug)]
pub(super) struct Present(Arc<HttpSession>);

impl Present {
    pub(super) fn new(session: &Arc<HttpSession>) -> Self {
        lock(&session.held).readers += 1;
        Self(Arc::clone(session))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut held = lock(&self.0.held);
        held.readers -= 1;
        held.seen = Instant::now();
    }
}

impl Held {
    /// Keeps the newest of the finished streams, within the limits; none if the session's owner has little room left.
    /// A reader of a removed stream holds it, and reads on.
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
        while own_bytes.is_tight() {
            let finished = self.streams.iter().find(|(_, stream)| stream.kept().is_some());
            let Some(oldest) = finished.map(|(number, _)| *number) else { return };
            self.streams.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
