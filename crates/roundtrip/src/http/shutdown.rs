//! Shutdown of a server: what begins it, and the phases its connections go through.

use std::future::{Future, pending};
use std::pin::Pin;

use tokio::sync::watch;

/// Phase of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Connections are accepted.
    Serving,
    /// No connection is accepted; calls that run are waited for.
    Draining,
    /// Connections end at once.
    Stopped,
}

/// Waits until a server has reached a phase. A server that is dropped drains, and never stops calls that run.
pub(super) async fn reached(phases: &mut watch::Receiver<Phase>, phase: Phase) {
    if phases.wait_for(|now| *now >= phase).await.is_err() && phase == Phase::Stopped {
        pending::<()>().await;
    }
}

/// Source of the wish to stop.
pub(super) enum Trigger {
    /// SIGTERM, which orchestrators send, and ctrl-c.
    Signals(Signals),
    /// A future of the user's, once.
    Future(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl Trigger {
    /// Waits for the wish to stop.
    pub(super) async fn first(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Future(future) => future.await,
        }
    }

    /// Waits for the wish to stop at once.
    pub(super) async fn second(&mut self) {
        match self {
            Self::Signals(signals) => signals.next().await,
            Self::Future(_) => pending().await,
        }
    }

    /// Returns the words that tell a person at a terminal how to stop at once.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Signals(_) => "; a second signal stops at once",
            Self::Future(_) => "",
        }
    }
}

/// Signals that ask a process to end.
#[cfg(unix)]
pub(super) struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self([SignalKind::terminate(), SignalKind::interrupt()].into_iter().flat_map(signal).collect())
    }

    async fn next(&mut self) {
        std::future::poll_fn(|cx| match self.0.iter_mut().any(|signal| signal.poll_recv(cx).is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
    }
}

/// Signals that ask a process to end.
#[cfg(not(unix))]
pub(super) struct Signals(());

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> Self {
        Self(())
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
