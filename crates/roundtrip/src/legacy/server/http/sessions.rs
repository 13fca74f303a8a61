//! The sessions there are over HTTP (transports, "Session Management").

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::{ErrorObject, RequestId};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::super::session::Session;
use super::super::settings::Handshake;
use super::super::sink::{Sink as _, Weight};
use super::stream::{Finish, Stream};
use crate::server::{Principal, random};

/// How many calls of one session may run at once.
const RUNNING: usize = 256;
/// How many finished streams a session keeps for clients that have not read them, and how much of them in all.
const KEPT: (usize, usize) = (16, 256 * 1024);
/// How long a session lasts that was begun and never used.
const UNUSED: Duration = Duration::from_secs(60);

type Call = std::pin::Pin<Box<dyn Future<Output = Vec<u8>> + Send>>;

/// All sessions of one endpoint, by their unguessable ids.
#[derive(Debug)]
pub(super) struct Sessions {
    settings: Handshake,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Box<str>, Arc<HttpSession>>,
    /// Somebody looks after those that expire.
    reaped: bool,
}

/// A session over HTTP. It belongs to whoever began it (L9).
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    principal: Option<Principal>,
    /// What is told outside of any call.
    pub(super) standalone: Arc<Stream>,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    seen: Instant,
    used: bool,
    readers: usize,
    last_stream: u64,
    streams: BTreeMap<u64, Arc<Stream>>,
    /// Calls by their id; those that have not been spawned yet have no task.
    running: HashMap<RequestId, Option<AbortHandle>>,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is made in one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(super) fn new(settings: Handshake) -> Arc<Self> {
        Arc::new(Self { settings, table: Mutex::default() })
    }

    /// Begins a session, and gives its id.
    pub(super) fn open(
        self: &Arc<Self>,
        session: Arc<Session>,
        principal: Option<Principal>,
    ) -> Result<String, ErrorObject> {
        let id = URL_SAFE_NO_PAD.encode(random::<24>()?);
        let held = Held {
            seen: Instant::now(),
            used: false,
            readers: 0,
            last_stream: 0,
            streams: BTreeMap::new(),
            running: HashMap::new(),
            ended: false,
        };
        let session =
            HttpSession { session, principal, standalone: Arc::new(Stream::new(0)), held: Mutex::new(held) };
        let mut table = lock(&self.table);
        if table.open.len() >= self.settings.max_sessions {
            return Err(ErrorObject::new(BUSY, "too many sessions: end one, or try again later"));
        }
        table.open.insert(id.as_str().into(), Arc::new(session));
        if !std::mem::replace(&mut table.reaped, true) {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
        Ok(id)
    }

    /// A session of this principal's. There is no telling a session of somebody else's from one that never was.
    pub(super) fn find(&self, id: &str, principal: Option<&Principal>) -> Option<Arc<HttpSession>> {
        let session = Arc::clone(lock(&self.table).open.get(id)?);
        if session.principal.as_ref() != principal {
            tracing::warn!("a session was named by somebody it does not belong to");
            return None;
        }
        let mut held = lock(&session.held);
        held.seen = Instant::now();
        held.used = true;
        drop(held);
        Some(session)
    }

    /// Ends a session of this principal's; whether there was one.
    pub(super) fn end(&self, id: &str, principal: Option<&Principal>) -> bool {
        let Some(session) = self.find(id, principal) else { return false };
        lock(&self.table).open.remove(id);
        session.end();
        true
    }

    /// Ends what has expired, and says when to look again; none once there is nothing to look after.
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

/// Ends sessions when their time is over, for as long as there are any.
async fn reap(sessions: Weak<Sessions>) {
    loop {
        let Some(next) = sessions.upgrade().and_then(|sessions| sessions.expire()) else { return };
        sleep_until(next).await;
    }
}

impl Held {
    fn expires(&self, idle: Duration, now: Instant) -> Instant {
        match (self.readers, self.used) {
            (0, true) => self.seen + idle,
            (0, false) => self.seen + idle.min(UNUSED),
            // Somebody is there.
            _ => now + idle,
        }
    }
}

impl HttpSession {
    /// A stream for a new call.
    pub(super) fn stream(&self) -> Arc<Stream> {
        let mut held = lock(&self.held);
        held.last_stream += 1;
        Arc::new(Stream::new(held.last_stream))
    }

    /// A stream by its number.
    pub(super) fn find_stream(&self, number: u64) -> Option<Arc<Stream>> {
        if number == 0 {
            Some(Arc::clone(&self.standalone))
        } else {
            lock(&self.held).streams.get(&number).cloned()
        }
    }

    /// A place for a call, before anything of it runs.
    pub(super) fn reserve(&self, id: &RequestId) -> Result<(), ErrorObject> {
        let mut held = lock(&self.held);
        if held.ended {
            return Err(ErrorObject::invalid_request("the session has ended"));
        }
        if held.running.contains_key(id) {
            return Err(ErrorObject::invalid_request("a request of this id is still running"));
        }
        if held.running.len() >= RUNNING {
            return Err(ErrorObject::new(
                BUSY,
                "too many calls at once in this session: wait for one to end",
            ));
        }
        held.running.insert(id.clone(), None);
        Ok(())
    }

    /// Gives a place back that is not needed after all.
    pub(super) fn release(&self, id: &RequestId) {
        lock(&self.held).running.remove(id);
    }

    /// Lets a call run on its own, whatever becomes of the connection it came on. Without its place it has been cancelled
    /// already.
    pub(super) fn spawn(self: &Arc<Self>, id: &RequestId, finish: Arc<Finish>, call: Call) {
        let mut held = lock(&self.held);
        if !held.running.contains_key(id) {
            return;
        }
        held.streams.insert(finish.0.number, Arc::clone(&finish.0));
        let (session, own) = (Arc::clone(self), id.clone());
        let task = tokio::spawn(async move {
            let answer = call.await;
            // Under the lock: nothing is sent for a call that has just been cancelled.
            let mut held = lock(&session.held);
            if held.running.remove(&own).is_some() {
                finish.0.send(answer, Weight::Must);
            }
            drop(finish);
            held.prune();
        });
        held.running.insert(id.clone(), Some(task.abort_handle()));
    }

    /// Forgets a stream that has been answered in full.
    pub(super) fn forget_stream(&self, number: u64) {
        lock(&self.held).streams.remove(&number);
    }

    /// Cancels a call, of which nothing is heard any more.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(Some(task)) = lock(&self.held).running.remove(id) {
            task.abort();
        }
    }

    /// Ends everything.
    fn end(&self) {
        let mut held = lock(&self.held);
        held.ended = true;
        // Their streams end with them.
        held.running.drain().filter_map(|(_, task)| task).for_each(|task| task.abort());
        held.streams.clear();
        drop(held);
        self.standalone.finish();
    }

    pub(super) fn reader_comes(&self) {
        lock(&self.held).readers += 1;
    }

    pub(super) fn reader_goes(&self) {
        let mut held = lock(&self.held);
        held.readers -= 1;
        held.seen = Instant::now();
    }
}

impl Held {
    /// Keeps the newest of the finished streams, as far as they go.
    fn prune(&mut self) {
        let (mut count, mut bytes) = (0, 0);
        let mut gone = Vec::new();
        for (number, stream) in self.streams.iter().rev() {
            if let Some(kept) = stream.kept() {
                count += 1;
                bytes += kept;
                if count > KEPT.0 || bytes > KEPT.1 {
                    gone.push(*number);
                }
            }
        }
        gone.iter().for_each(|number| drop(self.streams.remove(number)));
    }
}
