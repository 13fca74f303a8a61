//! Link to a child process: one pipe each way, shared by all requests and by the child's other messages.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{Method as _, RequestId, SubscriptionsListen, encode_cancelled};

use super::child::{Child, Launcher, Writer};
use super::inbox::{Inbox, Mailbox, Place};
#[cfg(feature = "legacy")]
use super::legacy::sessions::Sessions;
use crate::client::{Error, Failure, Incoming, Link, Outgoing, Sent};
use crate::lock::lock;
use crate::stdio::lines::end_line;

/// Link to a server that runs as a child process.
#[derive(Clone)]
pub(super) struct ChildLink(Arc<Mutex<State>>);

pub(super) struct State {
    launcher: Launcher,
    pub(super) child: Option<Child>,
    #[cfg(feature = "legacy")]
    pub(super) sessions: Sessions,
    closed: bool,
}

impl ChildLink {
    pub(super) fn new(launcher: Launcher) -> Self {
        Self(Arc::new(Mutex::new(State {
            launcher,
            child: None,
            #[cfg(feature = "legacy")]
            sessions: Sessions::default(),
            closed: false,
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Ends all children at the same time, and waits until they have ended.
    pub(super) async fn close(&self) {
        let ending: Vec<_> = self.take().into_iter().map(Child::stop).collect();
        for ended in ending {
            let _ = ended.await;
        }
    }

    /// Takes all children; none is started after that.
    fn take(&self) -> Vec<Child> {
        let mut state = self.state();
        state.closed = true;
        let children = state.child.take().into_iter();
        #[cfg(feature = "legacy")]
        let children = children.chain(std::mem::take(&mut state.sessions.retired));
        children.collect()
    }
}

impl State {
    /// Opens a mailbox for the answer to a request, at a child that runs.
    pub(super) fn open(&mut self, id: &RequestId, place: Place) -> Result<Answers, Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        let running = self.child.as_ref().map(Pipes::of);
        if let Some(answers) = running.and_then(|pipes| pipes.open(id, place)) {
            return Ok(answers);
        }
        let pipes = Pipes::of(self.child.insert(self.launcher.start()?));
        let answers = pipes.open(id, place);
        answers.ok_or_else(|| Error::closed_by_server("the server process ended at once", Sent::No))
    }
}

/// Pipes of one child. They do not keep the child alive.
#[derive(Clone)]
pub(super) struct Pipes {
    pub(super) inbox: Arc<Inbox>,
    pub(super) writer: Writer,
}

impl Pipes {
    pub(super) fn of(child: &Child) -> Self {
        Self { inbox: Arc::clone(&child.inbox), writer: child.writer() }
    }

    /// Opens a mailbox for an answer; `None` if the child has died.
    pub(super) fn open(self, id: &RequestId, place: Place) -> Option<Answers> {
        let mailbox = self.inbox.open(id, place)?;
        Some(Answers { id: id.clone(), pipes: self, mailbox, cancels: false })
    }
}

pub(super) fn line(message: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    end_line(&mut line, 0);
    line.into()
}

impl Link for ChildLink {
    const PROBES: bool = true;

    fn life(&self) -> Option<u64> {
        let state = self.state();
        state.child.as_ref().filter(|child| child.inbox.is_open()).map(|child| child.life)
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Incoming, Failure> {
        let place = match outgoing.method {
            SubscriptionsListen::NAME => Place::Stream,
            _ if outgoing.parts => Place::Parts,
            _ => Place::Call,
        };
        let answers = self.state().open(&outgoing.id, place)?;
        Ok(answers.send(&outgoing.message).await)
    }

    /// Ends the children, even if a session or a waiting write still exists.
    fn shut(&self) {
        drop(self.take());
    }
}

/// Messages for one request. Dropped before the answer, it cancels the request.
pub(super) struct Answers {
    id: RequestId,
    pipes: Pipes,
    mailbox: Arc<Mailbox>,
    /// True if there is a request to cancel.
    cancels: bool,
}

impl Answers {
    /// Sends the request. If the child is gone by now, the mailbox gets the error.
    pub(super) async fn send(mut self, message: &[u8]) -> Incoming {
        self.cancels = self.pipes.writer.write(line(message)).await;
        Box::pin(self)
    }

    /// Sends a request that is never cancelled.
    #[cfg(feature = "legacy")]
    pub(super) async fn send_for_good(self, message: &[u8]) -> Incoming {
        self.pipes.writer.write(line(message)).await;
        Box::pin(self)
    }
}

impl Stream for Answers {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.mailbox.poll_next(cx)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        // An answer that arrives later finds no mailbox and is ignored.
        let waited = self.pipes.inbox.close(&self.id);
        if waited
            && self.cancels
            && let Ok(message) = encode_cancelled(&self.id, None)
        {
            self.pipes.writer.write_now(line(&message));
        }
    }
}
