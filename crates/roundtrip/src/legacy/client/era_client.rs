//! Client of either era: detects the server's era once, and sends every request accordingly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use roundtrip_core::wire::{Discover, Era, Method as _, ProtocolVersion};
use tokio::time::timeout;

use super::detect::{Found, NoSession, PATIENCE, detect, incompatible, initialize};
use super::link::{SessionFailure, SessionLink};
use super::open_calls::OpenCalls;
use super::request::{Hello, Request};
use super::server_request::Answering;
use super::session::{Life, Session, in_background};
use super::translate;
use crate::client::{
    BoxFuture, Closing, Error, Failure, Incoming, Outgoing, PeerIncompatible, Refusal, Sent, Unreachable,
    discover, unsent, until_closed,
};
use crate::lock::lock;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::Network;

/// Link to a server of either era. Clones share the detected era; when the last one is dropped, everything under way
/// ends.
#[derive(Clone)]
pub(crate) struct EraClient<L: SessionLink>(Arc<Open<L>>);

/// Closes the client when dropped. Tasks of the client never hold it.
struct Open<L: SessionLink>(Arc<Inner<L>>);

pub(super) struct Inner<L: SessionLink> {
    pub(super) link: L,
    /// Era of the server, and the life of the server in which it was detected.
    known: AtomicU64,
    /// Locked by the task that detects the era, or begins a session.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Session for requests. The client is closed under this lock, so that no session is stored afterwards.
    session: Mutex<Option<Arc<Session<L>>>>,
    /// Revision last spoken with the server, where it is known.
    spoken: Mutex<Option<ProtocolVersion>>,
    closing: Closing,
    answering: Answering,
    pub(super) open_calls: Arc<OpenCalls<L>>,
}

const MODERN: u64 = 1;
const LEGACY: u64 = 2;

impl<L: SessionLink> EraClient<L> {
    pub(crate) fn new(link: L) -> Self {
        Self(Arc::new(Open(Arc::new(Inner {
            link,
            known: AtomicU64::new(0),
            turn: Arc::default(),
            session: Mutex::default(),
            spoken: Mutex::default(),
            closing: Closing::default(),
            answering: Answering::default(),
            open_calls: Arc::default(),
        }))))
    }

    pub(crate) fn link(&self) -> &L {
        &self.0.0.link
    }

    /// Returns whether a client can be told to speak this revision alone.
    pub(crate) fn speaks(_: ProtocolVersion) -> bool {
        true
    }

    /// Returns the revision last spoken with the server, where it is known.
    pub(crate) fn protocol_version(&self) -> Option<ProtocolVersion> {
        *lock(&self.0.0.spoken)
    }

    /// Adds the session of its requests to the description of the connection.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn in_session(&self, network: Network) -> Network {
        let session = self.0.0.current();
        match session.as_ref().and_then(|session| L::session_id(&session.at)) {
            Some(id) => network.session(id),
            None => network,
        }
    }

    /// Sends a request, translated if the server is a legacy one.
    pub(crate) fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let inner = Arc::clone(&self.0.0);
        let life = Life { closed: inner.closing.watch(), answering: inner.answering.clone() };
        Box::pin(async move {
            let incoming = life.closed.unless(inner.send(outgoing, &life)).await?;
            Ok(until_closed(incoming, life.closed))
        })
    }

    /// Gives up the open call whose handle is this `requestState`.
    pub(crate) fn abandon(&self, state: &str) {
        self.0.0.open_calls.let_go(state);
    }

    /// Ends the session, and gives up calls in it that wait for answers. The next request begins another one.
    #[cfg(feature = "oauth")]
    pub(crate) async fn end_session(&self) {
        let session = self.0.0.session_place().take();
        self.0.0.open_calls.clear();
        if let Some(session) = session {
            session.end().await;
        }
    }

    /// Ends everything under way at once, and then the session.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.0.0.close() {
            session.end().await;
        }
    }
}

impl<L: SessionLink> Drop for Open<L> {
    fn drop(&mut self) {
        let session = self.0.close();
        self.0.link.shut();
        if let Some(session) = session {
            in_background(async move { session.end().await });
        }
    }
}

impl<L: SessionLink> Inner<L> {
    fn era(&self) -> Option<Era> {
        let known = self.known.load(Ordering::Relaxed);
        let same_life = self.link.life().is_some_and(|life| life == known >> 2);
        match known & 3 {
            MODERN if same_life => Some(Era::Modern),
            LEGACY if same_life => Some(Era::Handshake),
            _ => None,
        }
    }

    fn learn(&self, era: Option<Era>) {
        let era = era.map_or(0, |era| if era == Era::Modern { MODERN } else { LEGACY });
        self.known.store(self.link.life().unwrap_or(0) << 2 | era, Ordering::Relaxed);
        if era != LEGACY {
            *lock(&self.spoken) = (era == MODERN).then_some(ProtocolVersion::LATEST);
        }
    }

    /// Ends everything under way; returns the session that is left to be ended.
    fn close(&self) -> Option<Arc<Session<L>>> {
        let session = {
            let mut session = self.session_place();
            self.closing.signal();
            session.take()
        };
        self.open_calls.clear();
        session
    }

    fn session_place(&self) -> MutexGuard<'_, Option<Arc<Session<L>>>> {
        lock(&self.session)
    }

    /// Returns the session for requests, if it is of the credentials that they are sent with now.
    fn current(&self) -> Option<Arc<Session<L>>> {
        let mut place = self.session_place();
        let session = place.take()?;
        if self.link.is_current(&session.at) {
            return Some(Arc::clone(place.insert(session)));
        }
        drop(place);
        // Calls that wait for answers were made with the credentials before.
        self.open_calls.clear();
        None
    }

    /// Stores a session for further requests, unless the client was closed while it began. A session of credentials that were
    /// replaced meanwhile is not stored: its request finds that it is over, and begins another.
    fn keep(&self, session: &Arc<Session<L>>) -> Result<(), Error> {
        let mut place = self.session_place();
        if session.closed.is_closed() {
            return Err(Error::Closed);
        }
        if !self.link.is_current(&session.at) {
            return Ok(());
        }
        *place = Some(Arc::clone(session));
        *lock(&self.spoken) = Some(session.version);
        Ok(())
    }

    async fn send(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        let era = match outgoing.caller.pinned.map(ProtocolVersion::era) {
            Some(Era::Handshake) => Some(Era::Handshake),
            _ => self.era(),
        };
        match era {
            Some(Era::Handshake) => Box::pin(self.legacy(outgoing, life)).await,
            None if L::PROBES || outgoing.caller.pinned.is_none() => {
                Box::pin(self.first(outgoing, life)).await
            }
            known => match self.link.send(&outgoing).await {
                Err(Failure::Refused(refusal))
                    if refusal.may_be_legacy() && (known.is_none() || refusal.error.is_none()) =>
                {
                    Box::pin(self.doubt(outgoing, *refusal, life)).await
                }
                sent => sent.or_else(Failure::otherwise),
            },
        }
    }

    /// Sends the first request, once the era is known: some legacy servers would take a modern request for their own.
    async fn first(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        match self.find(&outgoing, life).await.map_err(unsent)? {
            Found::Modern => self.link.send(&outgoing).await.or_else(Failure::otherwise),
            Found::Legacy(_) => self.legacy(outgoing, life).await,
            Found::Neither(Error::Rejected(error)) => Err(PeerIncompatible::UnknownEra(format!(
                "it answers neither `server/discover` nor `initialize`; to the latter it says: {error}"
            ))
            .into()),
            Found::Neither(error) => Err(error),
        }
    }

    /// Detects the era again after a refusal that may come from a legacy server.
    async fn doubt(
        self: Arc<Self>,
        outgoing: Outgoing,
        refusal: Refusal,
        life: &Life,
    ) -> Result<Incoming, Error> {
        self.learn(None);
        match self.find(&outgoing, life).await {
            Ok(Found::Legacy(_)) => self.legacy(outgoing, life).await,
            Err(error @ Error::PeerIncompatible(_)) => Err(error),
            // The refusal has nothing to do with eras, or the era cannot be detected now.
            Ok(Found::Modern | Found::Neither(_)) | Err(_) => refusal.otherwise,
        }
    }

    /// Sends a request to a legacy server.
    async fn legacy(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        let request = Request::read(&outgoing)?;
        if let Some(state) = &request.state
            && !translate::calls_again(state, &request.answers)?
        {
            return translate::go_on(&self.open_calls, state, request.id, request.answers).await;
        }
        for last in [false, true] {
            let session = match self.session(&request.hello, life).await {
                Ok(session) => session,
                // The server had sessions, and no longer has any.
                Err(NoSession::Refused(_))
                    if request.hello.caller.pinned.is_none() && self.era().is_some() =>
                {
                    self.learn(None);
                    return self.link.send(&outgoing).await.or_else(Failure::otherwise);
                }
                Err(NoSession::Refused(error) | NoSession::Error(error)) => {
                    return Err(incompatible(error, request.hello.caller.pinned));
                }
            };
            if let Some(pinned) = request.hello.caller.pinned.filter(|pinned| pinned.era() == Era::Modern) {
                let theirs = session.version.to_string();
                return Err(
                    PeerIncompatible::NotThePinnedVersion { theirs, pinned: pinned.to_string() }.into()
                );
            }
            match translate::serve(&self.open_calls, &session, &request).await {
                Err(SessionFailure::Gone) => {
                    self.forget(&session);
                    if last {
                        break;
                    }
                }
                // Some servers give such errors an id of their own.
                Err(SessionFailure::Refused(refusal)) => return Err(refusal.into_error()),
                Err(SessionFailure::Error(error)) => return Err(error),
                Ok(incoming) => return Ok(incoming),
            }
        }
        let why = "the server says of every session that there is none";
        Err(Error::unreachable(Unreachable::SessionEnded(why.to_owned()), Sent::No))
    }

    /// Detects the era, once for all callers that wait for it. A caller that times out does not stop the others.
    async fn find(self: &Arc<Self>, outgoing: &Outgoing, life: &Life) -> Result<Found<L>, Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        match (self.era(), self.current()) {
            (Some(Era::Modern), _) => return Ok(Found::Modern),
            (Some(Era::Handshake), Some(session)) => return Ok(Found::Legacy(session)),
            _ => {}
        }
        let (this, life) = (Arc::clone(self), life.clone());
        let (discover, hello) = (discover(outgoing)?, Request::read(outgoing)?.hello);
        let finding = tokio::spawn(async move {
            let _turn = turn;
            // Other callers wait for this too.
            let all = 2 * PATIENCE;
            let detecting = life.closed.unless(detect(&this.link, &discover, &hello, &life));
            let found =
                timeout(all, detecting).await.unwrap_or_else(|_| Err(Error::timeout(Discover::NAME, all)))?;
            match &found {
                Found::Modern => this.learn(Some(Era::Modern)),
                Found::Legacy(session) => {
                    this.keep(session)?;
                    this.learn(Some(Era::Handshake));
                }
                Found::Neither(_) => {}
            }
            Ok(found)
        });
        finding.await.unwrap_or_else(|_| Err(Error::closed_by_server("the search was broken off", Sent::No)))
    }

    /// Returns the session for a request, and begins one if there is none.
    async fn session(self: &Arc<Self>, hello: &Hello, life: &Life) -> Result<Arc<Session<L>>, NoSession> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let mut hello = hello.clone();
        if let Some(session) = self.current() {
            // The caller reports a pin on a revision that the server does not speak.
            let other_era = hello.caller.pinned.is_some_and(|pinned| pinned.era() == Era::Modern);
            if other_era || session.suits(&hello) {
                return Ok(session);
            }
            translate::widen(&mut hello.capabilities, &session.declared);
        }
        let (this, life) = (Arc::clone(self), life.clone());
        let beginning = tokio::spawn(async move {
            let _turn = turn;
            let session = life.closed.unless(initialize(&this.link, &hello, &life)).await?;
            this.keep(&session)?;
            // A client that is pinned to a legacy revision learns nothing of the modern one.
            if hello.caller.pinned.is_none() {
                this.learn(Some(Era::Handshake));
            }
            Ok(session)
        });
        let broken = |_| Err(Error::closed_by_server("the handshake was broken off", Sent::No).into());
        beginning.await.unwrap_or_else(broken)
    }

    fn forget(&self, gone: &Arc<Session<L>>) {
        gone.lost();
        let mut place = self.session_place();
        if place.as_ref().is_some_and(|session| Arc::ptr_eq(session, gone)) {
            *place = None;
        }
    }
}
