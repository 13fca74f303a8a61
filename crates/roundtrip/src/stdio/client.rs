//! The client side: a server as a child process, started when it is first needed and again when it has died.

mod child;
mod inbox;
mod stderr;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use roundtrip_core::wire::{
    CancelledNotification, CancelledNotificationParams, Method as _, NotificationMeta,
    NotificationMethod as _, RequestId, SubscriptionsListen, encode_notification,
};
use tokio::process::Command;

use self::child::{Child, Launcher, Writer};
use self::inbox::{Inbox, Mailbox};
use crate::client::{BoxFuture, Client, Error, Incoming, Outgoing, Sent, Transport};

impl Client {
    /// A client of a server that runs as a child process and speaks on its standard streams.
    ///
    /// The child is started by the first call, in a process group of its own. When it dies, calls under way fail
    /// with its exit status and the last lines of its standard error, and the next call starts it again. It is
    /// ended when the last clone of the client is dropped, in the background, or by [`close`](Self::close), which
    /// waits for it: its input is closed, and if that does not do it, the whole group is told to end, then made to.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), roundtrip::Error> {
    /// use roundtrip::Client;
    /// use tokio::process::Command;
    ///
    /// let mut command = Command::new("my-server");
    /// command.arg("--quiet");
    /// let client = Client::stdio(command);
    /// let tools = client.list_tools().await?;
    /// client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stdio(command: impl Into<Command>) -> Self {
        let launcher = Launcher::new(command.into());
        Self::new(Stdio(Arc::new(Mutex::new(State { launcher, child: None, closed: false }))))
    }
}

struct Stdio(Arc<Mutex<State>>);

struct State {
    launcher: Launcher,
    child: Option<Child>,
    closed: bool,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A place for the answer to a request, at a child that lives.
    fn open(&mut self, outgoing: &Outgoing) -> Result<Answers, Error> {
        if self.closed {
            return Err(Error::ApiMisuse("this client has been closed".to_owned()));
        }
        let listens = outgoing.method == SubscriptionsListen::NAME;
        let running = self.child.as_ref();
        if let Some(answers) = running.and_then(|child| Answers::at(child, &outgoing.id, listens)) {
            return Ok(answers);
        }
        let child = self.child.insert(self.launcher.start()?);
        Answers::at(child, &outgoing.id, listens)
            .ok_or_else(|| Error::unreachable("the server process ended at once", Sent::No))
    }
}

impl Transport for Stdio {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            let mut answers = lock(&state).open(&outgoing)?;
            drop(state);
            // Where the child is gone by now, the mailbox is told why.
            answers.sent = answers.writer.write(line(&outgoing.message)).await;
            Ok(Box::pin(answers) as Incoming)
        })
    }

    fn close(&self) -> BoxFuture<()> {
        let child = {
            let mut state = lock(&self.0);
            state.closed = true;
            state.child.take()
        };
        Box::pin(async move {
            if let Some(child) = child {
                child.close().await;
            }
        })
    }
}

fn line(message: &[u8]) -> Bytes {
    [message, b"\n"].concat().into()
}

/// What comes of one request. Dropped before the answer, it tells the server that nobody waits any more.
struct Answers {
    id: RequestId,
    inbox: Arc<Inbox>,
    mailbox: Arc<Mailbox>,
    writer: Writer,
    sent: bool,
}

impl Answers {
    /// None where the child has died.
    fn at(child: &Child, id: &RequestId, listens: bool) -> Option<Self> {
        let mailbox = child.inbox.open(id, listens)?;
        let (inbox, writer) = (Arc::clone(&child.inbox), child.writer());
        Some(Self { id: id.clone(), inbox, mailbox, writer, sent: false })
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
        // An answer that comes all the same finds no place, and is passed over.
        if self.inbox.close(&self.id) && self.sent {
            let params = CancelledNotificationParams {
                meta: NotificationMeta::default(),
                request_id: self.id.clone(),
                reason: None,
            };
            if let Ok(message) = encode_notification(CancelledNotification::NAME, &params) {
                self.writer.write_now(line(&message));
            }
        }
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").finish_non_exhaustive()
    }
}
