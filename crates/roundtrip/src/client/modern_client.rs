//! Client of modern servers alone, for builds without the feature `legacy`: requests are sent as they are, and a legacy
//! server is an error that says so.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use roundtrip_core::error::{Error, PeerIncompatible};
use roundtrip_core::wire::{Era, ProtocolVersion};

use super::closing::{Closing, until_closed};
use super::link::{Failure, Link, Refusal};
use super::probe::{Probed, discover, probe, unsent};
use super::transport::{BoxFuture, Incoming, Outgoing};

/// Link to a modern server. When the last clone is dropped, everything under way ends.
#[derive(Clone)]
pub(crate) struct ModernClient<L: Link>(Arc<Open<L>>);

/// Closes the client when dropped. Calls under way never hold it.
struct Open<L: Link>(Arc<Inner<L>>);

struct Inner<L: Link> {
    link: L,
    /// Life of the server in which it was found to be modern; 0 if it was not yet.
    known: AtomicU64,
    /// Locked by the request that probes.
    turn: tokio::sync::Mutex<()>,
    closing: Closing,
}

impl<L: Link> ModernClient<L> {
    pub(crate) fn new(link: L) -> Self {
        let (known, turn, closing) = Default::default();
        Self(Arc::new(Open(Arc::new(Inner { link, known, turn, closing }))))
    }

    pub(crate) fn link(&self) -> &L {
        &self.0.0.link
    }

    /// Returns whether a client can be told to speak this revision alone.
    pub(crate) fn speaks(version: ProtocolVersion) -> bool {
        version.era() == Era::Modern
    }

    /// Returns the description of the connection: a modern server has no sessions to add.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn in_session(&self, network: crate::telemetry::Network) -> crate::telemetry::Network {
        network
    }

    /// Sends a request.
    pub(crate) fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let inner = Arc::clone(&self.0.0);
        let closed = inner.closing.watch();
        Box::pin(async move {
            let incoming = closed.unless(inner.send(&outgoing)).await?;
            Ok(until_closed(incoming, closed))
        })
    }

    /// Does nothing: a modern server has no sessions.
    #[cfg(feature = "oauth")]
    pub(crate) fn end_session(&self) -> Ready<()> {
        ready(())
    }

    /// Ends everything under way at once.
    pub(crate) fn close(&self) -> Ready<()> {
        self.0.0.closing.signal();
        ready(())
    }
}

impl<L: Link> Drop for Open<L> {
    fn drop(&mut self) {
        self.0.closing.signal();
        self.0.link.shut();
    }
}

impl<L: Link> Inner<L> {
    fn is_known(&self) -> bool {
        let known = self.known.load(Ordering::Relaxed);
        self.link.life().is_some_and(|life| life == known)
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Incoming, Error> {
        if L::PROBES && !self.is_known() {
            self.probe(outgoing).await.map_err(unsent)?;
        }
        match self.link.send(outgoing).await {
            Ok(incoming) => Ok(incoming),
            Err(Failure::Refused(refusal)) if is_worth_probing(&refusal) && !self.is_known() => {
                match self.probe(outgoing).await {
                    Err(error @ Error::PeerIncompatible(_)) => Err(error),
                    // The refusal has nothing to do with eras, or the era cannot be detected now.
                    Ok(()) | Err(_) => refusal.otherwise,
                }
            }
            Err(failure) => failure.otherwise(),
        }
    }

    /// Makes sure that the server is a modern one.
    async fn probe(&self, outgoing: &Outgoing) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        if self.is_known() {
            return Ok(());
        }
        match probe(&self.link, &discover(outgoing)?).await? {
            Probed::Modern => {
                self.known.store(self.link.life().unwrap_or(0), Ordering::Relaxed);
                Ok(())
            }
            Probed::Legacy => Err(PeerIncompatible::HandshakeRequired.into()),
            Probed::Lost(error) => Err(error),
        }
    }
}

/// Returns whether a probe can tell if a legacy server refused a request. A bare 404 or 405 comes from an address without a
/// server of any era.
fn is_worth_probing(refusal: &Refusal) -> bool {
    refusal.may_be_legacy() && (refusal.error.is_some() || !matches!(refusal.status, 404 | 405))
}
