//! The door: which era a server belongs to, found out once, and every request sent accordingly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roundtrip_core::wire::{Era, ProtocolVersion};
use tokio::time::timeout;

use super::closing::{Closing, until_closed};
use super::detect::{Found, NoSession, PATIENCE, initialize, settle, told_apart};
use super::link::{Failure, Link, Refusal};
use super::open_calls::OpenCalls;
use super::outside::Answering;
use super::request::{Hello, Request};
use super::session::{Life, Session, in_background};
use super::translate;
use crate::client::{BoxFuture, Error, Incoming, Outgoing, PeerIncompatible, Sent, Unreachable};

/// Stands between the client and an edge. Clones share what was found out; when the last one goes, everything under way
/// ends.
#[derive(Clone)]
pub(crate) struct EraClient<L: Link>(Arc<Open<L>>);

/// Closes the client when dropped. Tasks of the client's own never hold it.
struct Open<L: Link>(Arc<Inner<L>>);

pub(super) struct Inner<L: Link> {
    pub(super) link: L,
    /// The era of the server, and in which of its lives that was found out.
    known: AtomicU64,
    /// Held by the task that finds out the era, or begins a session.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The session requests are made in. The signal to close is given under this lock, so that no session is kept after it.
    session: Mutex<Option<Arc<Session<L>>>>,
    closing: Closing,
    answering: Answering,
    pub(super) held: Arc<OpenCalls<L>>,
}

const MODERN: u64 = 1;
const OLD: u64 = 2;

impl<L: Link> EraClient<L> {
    pub(crate) fn new(link: L) -> Self {
        Self(Arc::new(Open(Arc::new(Inner {
            link,
            known: AtomicU64::new(0),
            turn: Arc::default(),
            session: Mutex::default(),
            closing: Closing::default(),
            answering: Answering::default(),
            held: Arc::default(),
        }))))
    }

    pub(crate) fn link(&self) -> &L {
        &self.0.0.link
    }

    /// Sends a request, in whatever words its server understands.
    pub(crate) fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let inner = Arc::clone(&self.0.0);
        let life = Life { closed: inner.closing.watch(), answering: inner.answering.clone() };
        Box::pin(async move {
            let incoming = life.closed.unless(inner.send(outgoing, &life)).await?;
            Ok(until_closed(incoming, life.closed))
        })
    }

    /// Nobody will go on with the round that has this state.
    pub(crate) fn abandon(&self, state: &str) {
        self.0.0.held.let_go(state);
    }

    /// Ends what is under way at once, whatever it waits for, and then the session.
    pub(crate) async fn close(&self) {
        if let Some(session) = self.0.0.close() {
            session.end().await;
        }
    }
}

impl<L: Link> Drop for Open<L> {
    fn drop(&mut self) {
        let session = self.0.close();
        self.0.link.shut();
        if let Some(session) = session {
            in_background(async move { session.end().await });
        }
    }
}

impl<L: Link> Inner<L> {
    fn era(&self) -> Option<Era> {
        let known = self.known.load(Ordering::Relaxed);
        let same_life = self.link.life().is_some_and(|life| life == known >> 2);
        match known & 3 {
            MODERN if same_life => Some(Era::Modern),
            OLD if same_life => Some(Era::Handshake),
            _ => None,
        }
    }

    fn learn(&self, era: Option<Era>) {
        let era = era.map_or(0, |era| if era == Era::Modern { MODERN } else { OLD });
        self.known.store(self.link.life().unwrap_or(0) << 2 | era, Ordering::Relaxed);
    }

    /// Ends what is under way; the session that is left to be ended.
    fn close(&self) -> Option<Arc<Session<L>>> {
        let session = {
            let mut session = self.session_place();
            self.closing.signal();
            session.take()
        };
        self.held.clear();
        session
    }

    fn session_place(&self) -> MutexGuard<'_, Option<Arc<Session<L>>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a session for requests to come, unless the client was closed while it began.
    fn keep(&self, session: &Arc<Session<L>>) -> Result<(), Error> {
        let mut place = self.session_place();
        if session.closed.is_closed() {
            return Err(Error::Closed);
        }
        *place = Some(Arc::clone(session));
        Ok(())
    }

    async fn send(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        let era = match outgoing.pinned.map(ProtocolVersion::era) {
            Some(Era::Handshake) => Some(Era::Handshake),
            _ => self.era(),
        };
        match era {
            Some(Era::Handshake) => Box::pin(self.old(outgoing, life)).await,
            None if L::PROBES || outgoing.pinned.is_none() => Box::pin(self.first(outgoing, life)).await,
            known => match self.link.modern(&outgoing).await {
                Err(Failure::Refused(refusal))
                    if refusal.is_doubt() && (known.is_none() || refusal.error.is_none()) =>
                {
                    Box::pin(self.doubt(outgoing, refusal, life)).await
                }
                sent => plainly(sent),
            },
        }
    }

    /// The first request of all. Some old servers take modern requests for their own, so it is not sent before the era
    /// is known.
    async fn first(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        match self.find(&Request::read(&outgoing)?.hello, life).await.map_err(unsent)? {
            Found::Modern => plainly(self.link.modern(&outgoing).await),
            Found::Old(_) => self.old(outgoing, life).await,
            Found::Neither(Error::Rejected(error)) => Err(PeerIncompatible::UnknownEra(format!(
                "it answers neither `server/discover` nor `initialize`; to the latter it says: {error}"
            ))
            .into()),
            Found::Neither(error) => Err(error),
        }
    }

    /// A refusal that may be how an old server speaks.
    async fn doubt(
        self: Arc<Self>,
        outgoing: Outgoing,
        refusal: Refusal,
        life: &Life,
    ) -> Result<Incoming, Error> {
        self.learn(None);
        match self.find(&Request::read(&outgoing)?.hello, life).await {
            Ok(Found::Old(_)) => self.old(outgoing, life).await,
            Err(error @ Error::PeerIncompatible(_)) => Err(error),
            // It is no question of eras, or one that cannot be answered now.
            Ok(Found::Modern | Found::Neither(_)) | Err(_) => refusal.otherwise,
        }
    }

    /// A request to an old server.
    async fn old(self: Arc<Self>, outgoing: Outgoing, life: &Life) -> Result<Incoming, Error> {
        let request = Request::read(&outgoing)?;
        if let Some(state) = &request.state
            && !translate::calls_again(state, &request.answers)?
        {
            return translate::go_on(&self.held, state, request.id, request.answers).await;
        }
        for last in [false, true] {
            let session = match self.session(&request.hello, life).await {
                Ok(session) => session,
                // It had sessions, and has none any more.
                Err(NoSession::Refused(_)) if request.hello.pinned.is_none() && self.era().is_some() => {
                    self.learn(None);
                    return plainly(self.link.modern(&outgoing).await);
                }
                Err(NoSession::Refused(error) | NoSession::Error(error)) => {
                    return Err(told_apart(error, request.hello.pinned));
                }
            };
            if let Some(pinned) = request.hello.pinned.filter(|pinned| pinned.era() == Era::Modern) {
                let theirs = session.version.to_string();
                return Err(
                    PeerIncompatible::NotThePinnedVersion { theirs, pinned: pinned.to_string() }.into()
                );
            }
            match translate::serve(&self.held, &session, &request).await {
                Err(Failure::Gone) => {
                    self.forget(&session);
                    if last {
                        break;
                    }
                }
                // Some give such errors an id of their own.
                Err(Failure::Refused(refusal)) => return Err(refusal.into_error()),
                served => return plainly(served),
            }
        }
        let why = "the server says of every session that there is none";
        Err(Error::unreachable(Unreachable::SessionEnded(why.to_owned()), Sent::No))
    }

    /// Finds out the era, once for all who wait for it. Whoever loses patience does not keep the others from it.
    async fn find(self: &Arc<Self>, hello: &Hello, life: &Life) -> Result<Found<L>, Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        match (self.era(), &*self.session_place()) {
            (Some(Era::Modern), _) => return Ok(Found::Modern),
            (Some(Era::Handshake), Some(session)) => return Ok(Found::Old(Arc::clone(session))),
            _ => {}
        }
        let (this, hello, life) = (Arc::clone(self), hello.clone(), life.clone());
        let finding = tokio::spawn(async move {
            let _turn = turn;
            // Others wait for this too.
            let all = 2 * PATIENCE;
            let settling = life.closed.unless(settle(&this.link, &hello, &life));
            let found = timeout(all, settling).await.unwrap_or(Err(Error::Timeout(all)))?;
            match &found {
                Found::Modern => this.learn(Some(Era::Modern)),
                Found::Old(session) => {
                    this.keep(session)?;
                    this.learn(Some(Era::Handshake));
                }
                Found::Neither(_) => {}
            }
            Ok(found)
        });
        finding.await.unwrap_or_else(|_| Err(Error::closed_by_server("the search was broken off", Sent::No)))
    }

    /// The session a request can be made in, begun where there is none.
    async fn session(self: &Arc<Self>, hello: &Hello, life: &Life) -> Result<Arc<Session<L>>, NoSession> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let mut hello = hello.clone();
        if let Some(session) = &*self.session_place() {
            // A pin on what is not spoken here is for the caller to report.
            let other_era = hello.pinned.is_some_and(|pinned| pinned.era() == Era::Modern);
            if other_era || session.suits(&hello) {
                return Ok(Arc::clone(session));
            }
            translate::widen(&mut hello.capabilities, &session.declared);
        }
        let (this, life) = (Arc::clone(self), life.clone());
        let beginning = tokio::spawn(async move {
            let _turn = turn;
            let session = life.closed.unless(initialize(&this.link, &hello, &life)).await?;
            this.keep(&session)?;
            // Whoever is told to speak the old way learns nothing of the other one.
            if hello.pinned.is_none() {
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

/// Whatever became of the question about the era, the request itself has not been sent.
fn unsent(error: Error) -> Error {
    match error {
        Error::Unreachable { why, cause, .. } => Error::Unreachable { why, sent: Sent::No, cause },
        Error::Refused(mut refusal) => {
            refusal.sent = Sent::No;
            Error::Refused(refusal)
        }
        other => other,
    }
}

/// What a client that knows of one era alone makes of it.
fn plainly(sent: Result<Incoming, Failure>) -> Result<Incoming, Error> {
    match sent {
        Ok(incoming) => Ok(incoming),
        Err(Failure::Refused(refusal)) => refusal.otherwise,
        Err(Failure::Gone) => Err(Error::closed_by_server("the server is gone", Sent::No)),
        Err(Failure::Error(error)) => Err(error),
    }
}
