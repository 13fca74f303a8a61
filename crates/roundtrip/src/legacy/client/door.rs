//! The door: which era a server belongs to, found out once, and every request sent accordingly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roundtrip_core::wire::{Era, ProtocolVersion};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::held::Held;
use super::link::{Failure, Link, Refusal};
use super::request::{Hello, Request};
use super::session::Session;
use super::settle::{Found, NoSession, PATIENCE, initialize, settle, told_apart};
use super::translate;
use crate::client::{BoxFuture, Error, Incoming, Outgoing, Sent};

/// Stands between the client and an edge. Clones share what was found out.
#[derive(Clone)]
pub(crate) struct Door<L: Link>(Arc<Inner<L>>);

pub(super) struct Inner<L: Link> {
    pub(super) link: L,
    /// The era of the server, and in which of its lives that was found out.
    known: AtomicU64,
    /// The session requests are made in. Whoever holds the lock finds out, or begins one.
    session: Arc<tokio::sync::Mutex<Option<Arc<Session<L>>>>>,
    pub(super) held: Arc<Held<L>>,
}

const MODERN: u64 = 1;
const OLD: u64 = 2;

impl<L: Link> Door<L> {
    pub(crate) fn new(link: L) -> Self {
        let (known, session, held) = (AtomicU64::new(0), Arc::default(), Arc::default());
        Self(Arc::new(Inner { link, known, session, held }))
    }

    pub(crate) fn link(&self) -> &L {
        &self.0.link
    }

    /// Sends a request, in whatever words its server understands.
    pub(crate) fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.send(outgoing).await })
    }

    /// Nobody will go on with the round that has this state.
    pub(crate) fn abandon(&self, state: &str) {
        self.0.held.let_go(state);
    }

    /// Gives up what is under way, and ends the session.
    pub(crate) async fn close(&self) {
        self.0.held.clear();
        let session = self.0.session.lock().await.take();
        if let Some(session) = session {
            session.end().await;
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

    async fn send(self: Arc<Self>, outgoing: Outgoing) -> Result<Incoming, Error> {
        let era = match outgoing.pinned.map(ProtocolVersion::era) {
            Some(Era::Handshake) => Some(Era::Handshake),
            _ => self.era(),
        };
        match era {
            Some(Era::Handshake) => Box::pin(self.old(outgoing)).await,
            None if L::PROBES || outgoing.pinned.is_none() => Box::pin(self.first(outgoing)).await,
            known => match self.link.modern(&outgoing).await {
                Err(Failure::Refused(refusal))
                    if refusal.is_doubt() && (known.is_none() || refusal.error.is_none()) =>
                {
                    Box::pin(self.doubt(outgoing, refusal)).await
                }
                sent => plainly(sent),
            },
        }
    }

    /// The first request of all. Some old servers take modern requests for their own, so it is not sent before the era
    /// is known.
    async fn first(self: Arc<Self>, outgoing: Outgoing) -> Result<Incoming, Error> {
        match self.find(&Request::read(&outgoing)?.hello).await.map_err(unsent)? {
            Found::Modern => plainly(self.link.modern(&outgoing).await),
            Found::Old(_) => self.old(outgoing).await,
            Found::Neither(Error::Rejected(error)) => Err(Error::PeerIncompatible(format!(
                "it answers neither `server/discover` nor `initialize`; to the latter it says: {error}"
            ))),
            Found::Neither(error) => Err(error),
        }
    }

    /// A refusal that may be how an old server speaks.
    async fn doubt(self: Arc<Self>, outgoing: Outgoing, refusal: Refusal) -> Result<Incoming, Error> {
        self.learn(None);
        match self.find(&Request::read(&outgoing)?.hello).await {
            Ok(Found::Old(_)) => self.old(outgoing).await,
            Err(error @ Error::PeerIncompatible(_)) => Err(error),
            // It is no question of eras, or one that cannot be answered now.
            Ok(Found::Modern | Found::Neither(_)) | Err(_) => refusal.otherwise,
        }
    }

    /// A request to an old server.
    async fn old(self: Arc<Self>, outgoing: Outgoing) -> Result<Incoming, Error> {
        let request = Request::read(&outgoing)?;
        if let Some(state) = &request.state
            && !translate::calls_again(state, &request.answers)?
        {
            return translate::go_on(&self.held, state, request.id, request.answers).await;
        }
        for last in [false, true] {
            let session = match self.session(&request.hello).await {
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
                return Err(Error::PeerIncompatible(format!(
                    "it speaks {}, and this client is to speak {pinned} alone: leave `protocol` out, or name another",
                    session.version
                )));
            }
            match translate::serve(&self.held, &session, &request).await {
                Err(Failure::Gone) => {
                    self.forget(&session).await;
                    if last {
                        break;
                    }
                }
                // Some give such errors an id of their own.
                Err(Failure::Refused(refusal)) => return Err(refusal.into_error()),
                served => return plainly(served),
            }
        }
        Err(Error::unreachable("the server says of every session that there is none", Sent::No))
    }

    /// Finds out the era, once for all who wait for it. Whoever loses patience does not keep the others from it.
    async fn find(self: &Arc<Self>, hello: &Hello) -> Result<Found<L>, Error> {
        let mut place = self.place().await;
        match (self.era(), &*place) {
            (Some(Era::Modern), _) => return Ok(Found::Modern),
            (Some(Era::Handshake), Some(session)) => return Ok(Found::Old(Arc::clone(session))),
            _ => {}
        }
        let (this, hello) = (Arc::clone(self), hello.clone());
        let finding = tokio::spawn(async move {
            // Others wait for this too.
            let all = 2 * PATIENCE;
            let found = timeout(all, settle(&this.link, &hello)).await.unwrap_or(Err(Error::Timeout(all)))?;
            match &found {
                Found::Modern => this.learn(Some(Era::Modern)),
                Found::Old(session) => {
                    *place = Some(Arc::clone(session));
                    this.learn(Some(Era::Handshake));
                }
                Found::Neither(_) => {}
            }
            Ok(found)
        });
        finding.await.unwrap_or_else(|_| Err(Error::unreachable("the search was broken off", Sent::No)))
    }

    /// The session a request can be made in, begun where there is none.
    async fn session(self: &Arc<Self>, hello: &Hello) -> Result<Arc<Session<L>>, NoSession> {
        let mut place = self.place().await;
        let mut hello = hello.clone();
        if let Some(session) = &*place {
            // A pin on what is not spoken here is for the caller to report.
            let other_era = hello.pinned.is_some_and(|pinned| pinned.era() == Era::Modern);
            if other_era || session.suits(&hello) {
                return Ok(Arc::clone(session));
            }
            translate::widen(&mut hello.capabilities, &session.declared);
        }
        let this = Arc::clone(self);
        let beginning = tokio::spawn(async move {
            let session = initialize(&this.link, &hello).await?;
            *place = Some(Arc::clone(&session));
            // Whoever is told to speak the old way learns nothing of the other one.
            if hello.pinned.is_none() {
                this.learn(Some(Era::Handshake));
            }
            Ok(session)
        });
        let broken = |_| Err(Error::unreachable("the handshake was broken off", Sent::No).into());
        beginning.await.unwrap_or_else(broken)
    }

    async fn place(&self) -> OwnedMutexGuard<Option<Arc<Session<L>>>> {
        Arc::clone(&self.session).lock_owned().await
    }

    async fn forget(&self, gone: &Arc<Session<L>>) {
        gone.lost();
        let mut place = self.session.lock().await;
        if place.as_ref().is_some_and(|session| Arc::ptr_eq(session, gone)) {
            *place = None;
        }
    }
}

/// Whatever became of the question about the era, the request itself has not been sent.
fn unsent(error: Error) -> Error {
    match error {
        Error::Unreachable { message, source, .. } => Error::Unreachable { message, sent: Sent::No, source },
        other => other,
    }
}

/// What a client that knows of one era alone makes of it.
fn plainly(sent: Result<Incoming, Failure>) -> Result<Incoming, Error> {
    match sent {
        Ok(incoming) => Ok(incoming),
        Err(Failure::Refused(refusal)) => refusal.otherwise,
        Err(Failure::Gone) => Err(Error::unreachable("the server is gone", Sent::No)),
        Err(Failure::Error(error)) => Err(error),
    }
}
