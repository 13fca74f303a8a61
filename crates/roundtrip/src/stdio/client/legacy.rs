//! Hand-over to the handshake eras: sessions with a child process, one for each child.

pub(super) mod sessions;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{ProtocolVersion, RequestId};

use super::inbox::{Mailbox, Place};
use super::link::{ChildLink, Pipes, State, line};
use crate::client::{BoxFuture, Error, Incoming};
use crate::legacy::client::{EraClient, SessionFailure, SessionLink};

/// Connection of a client to its server.
pub(super) type Connection = EraClient<ChildLink>;

/// A session: the child it is with. It does not keep the child alive.
#[derive(Clone)]
pub(super) struct At {
    life: u64,
    pipes: Pipes,
}

impl State {
    /// Retires a child that has a session: each child can have only one.
    fn retire(&mut self) {
        let Self { child, sessions, .. } = self;
        let retired = child.take_if(|child| sessions.latest == Some(child.life) && child.inbox.is_open());
        sessions.retired.extend(retired);
    }
}

impl SessionLink for ChildLink {
    type At = At;
    const SILENCE: Duration = Duration::from_secs(3);
    const SHARED: bool = true;

    fn begin(&self, id: RequestId, message: Bytes) -> BoxFuture<Result<(At, Incoming), SessionFailure>> {
        let this = self.clone();
        Box::pin(async move {
            let (at, answers) = {
                let mut state = this.state();
                state.retire();
                let answers = state.open(&id, Place::Call)?;
                let child = state.child.as_ref().ok_or(SessionFailure::Gone)?;
                (At { life: child.life, pipes: Pipes::of(child) }, answers)
            };
            // A handshake is never cancelled (cancellation, "Behavior Requirements").
            Ok((at, answers.send_for_good(&message).await))
        })
    }

    fn agree(&self, at: &mut At, _: ProtocolVersion) {
        let mut state = self.state();
        if state.child.as_ref().is_some_and(|child| child.life == at.life) {
            state.sessions.latest = Some(at.life);
        }
    }

    fn request(&self, at: &At, id: RequestId, message: Bytes) -> BoxFuture<Result<Incoming, SessionFailure>> {
        let answers = at.pipes.clone().open(&id, Place::Call);
        Box::pin(async move {
            match answers {
                Some(answers) => Ok(answers.send(&message).await),
                None => Err(SessionFailure::Gone),
            }
        })
    }

    fn tell(&self, at: &At, message: Bytes) -> BoxFuture<Result<(), SessionFailure>> {
        let at = at.clone();
        Box::pin(async move {
            if at.pipes.writer.write(line(&message)).await { Ok(()) } else { Err(SessionFailure::Gone) }
        })
    }

    fn listen(&self, at: &At) -> BoxFuture<Result<Incoming, SessionFailure>> {
        let mailbox = at.pipes.inbox.listen();
        Box::pin(async move {
            let mailbox = mailbox.ok_or(SessionFailure::Gone)?;
            Ok(Box::pin(Everything(mailbox)) as Incoming)
        })
    }

    /// Does nothing: dropping the answers of a request cancels it already.
    fn cancel(&self, _: &At, _: &RequestId) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends a child that has been replaced by another; the latest one is kept for further requests.
    fn end(&self, at: &At) -> BoxFuture<()> {
        self.state().sessions.retired.retain(|child| child.life != at.life);
        Box::pin(std::future::ready(()))
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
