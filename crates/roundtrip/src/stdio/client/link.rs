//! Link to a child process: one pipe each way, shared by all requests and by the child's other messages.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{Method as _, ProtocolVersion, RequestId, SubscriptionsListen, encode_cancelled};

use super::child::{Child, Launcher, Writer};
use super::inbox::{Inbox, Mailbox, Place};
use super::{Failure, Link};
use crate::client::{ApiMisuse, BoxFuture, Error, Incoming, Outgoing, Sent};
use crate::lock::lock;
use crate::stdio::lines::end_line;

/// Link to a server that runs as a child process.
#[derive(Clone)]
pub(super) struct ChildLink(Arc<Mutex<State>>);

struct State {
    launcher: Launcher,
    child: Option<Child>,
    /// Children whose session is not the latest. They end with it.
    retired: Vec<Child>,
    closed: bool,
}

impl ChildLink {
    pub(super) fn new(launcher: Launcher) -> Self {
        Self(Arc::new(Mutex::new(State { launcher, child: None, retired: Vec::new(), closed: false })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
        let child = state.child.take();
        child.into_iter().chain(state.retired.drain(..)).collect()
    }
}

impl State {
    /// Retires a child that has a session: each child can have only one.
    fn untouched(&mut self) {
        let retired = self.child.take_if(|child| child.has_session && child.inbox.is_open());
        self.retired.extend(retired);
    }

    /// Opens a mailbox for the answer to a request, at a child that runs.
    fn open(&mut self, id: &RequestId, place: Place) -> Result<(At, Answers), Error> {
        if self.closed {
            return Err(ApiMisuse::Closed.into());
        }
        let running = self.child.as_ref().map(At::of);
        if let Some((at, answers)) = running.and_then(|at| Some((at.clone(), at.open(id, place)?))) {
            return Ok((at, answers));
        }
        let at = At::of(self.child.insert(self.launcher.start()?));
        let answers = at.open(id, place);
        answers
            .map(|answers| (at, answers))
            .ok_or_else(|| Error::closed_by_server("the server process ended at once", Sent::No))
    }
}

/// One life of the child. It does not keep the child alive.
#[derive(Clone)]
pub(super) struct At {
    life: u64,
    inbox: Arc<Inbox>,
    writer: Writer,
}

impl At {
    fn of(child: &Child) -> Self {
        Self { life: child.life, inbox: Arc::clone(&child.inbox), writer: child.writer() }
    }

    /// Opens a mailbox for an answer; `None` if the child has died.
    fn open(&self, id: &RequestId, place: Place) -> Option<Answers> {
        let mailbox = self.inbox.open(id, place)?;
        Some(Answers { id: id.clone(), at: self.clone(), mailbox, sent: false, place })
    }
}

fn line(message: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    end_line(&mut line, 0);
    line.into()
}

impl Link for ChildLink {
    type At = At;
    const PROBES: bool = true;
    const SILENCE: Duration = Duration::from_secs(3);
    const SHARED: bool = true;

    fn life(&self) -> Option<u64> {
        let state = self.state();
        state.child.as_ref().filter(|child| child.inbox.is_open()).map(|child| child.life)
    }

    async fn modern(&self, outgoing: &Outgoing) -> Result<Incoming, Failure> {
        let listens = outgoing.method == SubscriptionsListen::NAME;
        let place = if listens { Place::Stream } else { Place::Call };
        let (_, answers) = self.state().open(&outgoing.id, place)?;
        Ok(answers.send(&outgoing.message).await)
    }

    fn begin(&self, id: RequestId, message: Bytes) -> BoxFuture<Result<(At, Incoming), Failure>> {
        let this = self.clone();
        Box::pin(async move {
            let (at, answers) = {
                let mut state = this.state();
                state.untouched();
                state.open(&id, Place::Aside)?
            };
            Ok((at, answers.send(&message).await))
        })
    }

    fn agree(&self, at: &mut At, _: ProtocolVersion) {
        if let Some(child) = self.state().child.as_mut().filter(|child| child.life == at.life) {
            child.has_session = true;
        }
    }

    fn request(&self, at: &At, id: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, Failure>> {
        let answers = at.open(&id, Place::Call);
        Box::pin(async move {
            match answers {
                Some(answers) => Ok(answers.send(&message).await),
                None => Err(Failure::Gone),
            }
        })
    }

    fn tell(&self, at: &At, message: Bytes) -> BoxFuture<Result<(), Failure>> {
        let at = at.clone();
        Box::pin(
            async move { if at.writer.write(line(&message)).await { Ok(()) } else { Err(Failure::Gone) } },
        )
    }

    fn listen(&self, at: &At) -> BoxFuture<Result<Incoming, Failure>> {
        let mailbox = at.inbox.listen();
        Box::pin(async move {
            let mailbox = mailbox.ok_or(Failure::Gone)?;
            Ok(Box::pin(Everything(mailbox)) as Incoming)
        })
    }

    /// Does nothing: dropping the answers of a request cancels it already.
    fn cancel(&self, _: &At, _: &RequestId) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends a child that has been replaced by another; the latest one is kept for further requests.
    fn end(&self, at: &At) -> BoxFuture<()> {
        self.state().retired.retain(|child| child.life != at.life);
        Box::pin(std::future::ready(()))
    }

    /// Ends the children, even if a session or a waiting write still exists.
    fn shut(&self) {
        drop(self.take());
    }
}

/// Messages for one request. Dropped before the answer, it cancels the request.
struct Answers {
    id: RequestId,
    at: At,
    mailbox: Arc<Mailbox>,
    sent: bool,
    place: Place,
}

impl Answers {
    /// Sends the request. If the child is gone by now, the mailbox gets the error.
    async fn send(mut self, message: &[u8]) -> Incoming {
        self.sent = self.at.writer.write(line(message)).await;
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
        let waited = self.at.inbox.close(&self.id) && self.sent;
        // A handshake is never cancelled (cancellation, "Behavior Requirements").
        if waited
            && self.place != Place::Aside
            && let Ok(message) = encode_cancelled(&self.id, None)
        {
            self.at.writer.write_now(line(&message));
        }
    }
}

/// Messages that belong to no request.
struct Everything(Arc<Mailbox>);

impl Stream for Everything {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next(cx)
    }
}
