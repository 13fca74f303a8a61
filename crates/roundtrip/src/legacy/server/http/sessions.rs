//! Sessions over HTTP that a process keeps (transports, "Session Management").

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::error::BUSY;
use roundtrip_core::wire::ErrorObject;
use tokio::time::{Instant, sleep_until};

use super::http_session::{HttpSession, Place, Present};
use crate::legacy::server::session::Session;
use crate::lock::lock;
use crate::server::{Budget, Handshake, Owner, Principal, random};

/// Bytes counted for a session besides the parameters of `initialize`.
const OVERHEAD: usize = 4 * 1024;
/// Lifetime of a session that was begun and never used.
pub(super) const UNUSED: Duration = Duration::from_secs(60);

/// Sessions of one endpoint, by their unguessable ids.
///
/// A session whose id is sealed is here only while it needs to be: while its calls run, and from when it has a stream that
/// can be resumed until it is idle.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) settings: Handshake,
    table: Mutex<SessionTable>,
    /// Budget of the calls running in all sessions: the other half is for calls without a session.
    pub(super) running: Arc<Budget>,
    /// Budgets for sessions, and for the bytes they keep.
    places: Arc<Budget>,
    pub(super) bytes: Arc<Budget>,
}

#[derive(Debug, Default)]
struct SessionTable {
    open: HashMap<Box<str>, Arc<HttpSession>>,
    /// True while a task ends expired sessions.
    reaped: bool,
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

    /// Begins a session that only this process serves, and returns its id. `said` is the number of bytes it keeps of
    /// `initialize`.
    pub(super) fn open(
        self: &Arc<Self>,
        session: Arc<Session>,
        principal: Option<Principal>,
        said: usize,
    ) -> Result<String, ErrorObject> {
        let id = URL_SAFE_NO_PAD.encode(random::<24>()?);
        let place = self.place(&session.owner, said)?;
        self.insert(Arc::new(HttpSession::begun(self, &id, session, principal, place)));
        Ok(id)
    }

    /// Enters a session with a sealed id. The first request that does so creates its state.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: &str,
        left: Duration,
        principal: Option<&Principal>,
        create: impl FnOnce() -> Result<Arc<Session>, ErrorObject>,
    ) -> Result<Present, ErrorObject> {
        let mut table = lock(&self.table);
        if let Some(session) = table.open.get(id) {
            return Ok(Present::new(session));
        }
        let session = Arc::new(HttpSession::sealed(self, id, create()?, principal.cloned(), left));
        let present = Present::new(&session);
        self.insert_into(&mut table, session);
        Ok(present)
    }

    fn insert(self: &Arc<Self>, session: Arc<HttpSession>) {
        self.insert_into(&mut lock(&self.table), session);
    }

    fn insert_into(self: &Arc<Self>, table: &mut SessionTable, session: Arc<HttpSession>) {
        table.open.insert(session.id.clone(), session);
        if !std::mem::replace(&mut table.reaped, true) {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Reserves a place for a session, and bytes for what it keeps from the start.
    pub(super) fn place(&self, owner: &Owner, said: usize) -> Result<Place, ErrorObject> {
        let room = || {
            let session = self.places.reserve(owner, 1)?;
            Some(Place { _session: session, _bytes: self.bytes.reserve(owner, OVERHEAD + said)? })
        };
        let place = room().or_else(|| {
            self.expire();
            room()
        });
        place.ok_or_else(|| ErrorObject::new(BUSY, "too many sessions: end one, or try again later"))
    }

    /// Finds a session of this principal. A session of another principal is reported like one that does not exist.
    pub(super) fn find(&self, id: &str, principal: Option<&Principal>) -> Option<Present> {
        let table = lock(&self.table);
        let session = table.open.get(id)?;
        if session.principal.as_ref() != principal {
            tracing::warn!("a request named a session of another principal");
            return None;
        }
        (!session.is_over(Instant::now())).then(|| Present::new(session))
    }

    /// Ends a session: what this process keeps of it.
    pub(super) fn end(&self, session: &HttpSession) {
        self.remove_if(session, |_| true);
        session.end();
    }

    /// Removes the state of a session that keeps nothing, unless a request has entered it meanwhile.
    pub(super) fn leave(&self, session: &HttpSession) {
        self.remove_if(session, HttpSession::is_empty);
    }

    fn remove_if(&self, session: &HttpSession, condition: impl FnOnce(&HttpSession) -> bool) {
        let mut table = lock(&self.table);
        let is_it = |found: &Arc<HttpSession>| std::ptr::eq(Arc::as_ptr(found), session);
        if table.open.get(&session.id).is_some_and(is_it) && condition(session) {
            table.open.remove(&session.id);
        }
    }

    /// Ends expired sessions; returns when the next one expires, if there are any left.
    fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut table = lock(&self.table);
        let mut next = None;
        let mut expired = Vec::new();
        table.open.retain(|_, session| {
            let end = session.expires(self.settings.idle_for, now);
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

#[cfg(test)]
mod tests;
