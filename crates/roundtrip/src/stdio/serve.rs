//! The server side: lines in, lines out, calls side by side.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use roundtrip_core::wire::{
    CancelledNotification, ClientRequest, ErrorObject, Message, Notification, NotificationMethod, Request,
    RequestId, decode_params, encode_error,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::lines::{Line, Lines};
use super::old::Pipe;
use super::outgoing::Outgoing;
use super::{MAX_LINE, pipe};
use crate::server::{Endpoint, Event, InFlight, Peer, ServeError, Server};

/// How long running calls get to finish once the input has ended.
const GRACE: Duration = Duration::from_secs(1);

impl Server {
    /// Serves standard input and output, until the input ends.
    ///
    /// Nothing else may write to standard output: log to standard error.
    ///
    /// # Errors
    /// When the server was put together wrongly, or a stream breaks.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let endpoint = self.build()?;
        Ok(serve_lines(&endpoint, &Peer::default(), pipe::stdin(), pipe::stdout()).await?)
    }
}

/// Serves one peer over a pair of byte streams, one message a line, until the input ends.
///
/// # Errors
/// When a stream breaks.
pub async fn serve_lines(
    endpoint: &Endpoint,
    peer: &Peer,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let session =
        Session { endpoint, peer, old: Pipe::new(endpoint), calls: Arc::default(), outgoing: Arc::default() };
    let writing = {
        let outgoing = Arc::clone(&session.outgoing);
        tokio::spawn(async move { outgoing.write_to(output).await })
    };
    let mut lines = Lines::new(MAX_LINE);
    let mut buffer = vec![0; 64 * 1024];
    let mut answers = Vec::new();
    let ended = loop {
        session.outgoing.calm().await;
        if writing.is_finished() {
            break Ok(());
        }
        match input.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(size) => lines.feed(&buffer[..size], |line| session.line(line, &mut answers)),
            Err(error) => break Err(error),
        }
        session.outgoing.push(&answers);
        answers.clear();
    };
    session.drain().await;
    session.outgoing.close();
    match writing.await {
        // Whoever has hung up does not read on either.
        Ok(Err(error)) if ended.is_ok() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

/// One peer and its calls.
pub(super) struct Session<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) peer: &'a Peer,
    /// Where requests of the handshake eras go.
    pub(super) old: Pipe,
    pub(super) calls: Arc<Calls>,
    pub(super) outgoing: Arc<Outgoing>,
}

/// The calls that did not finish at once. Only a call that stands here may write.
#[derive(Debug, Default)]
pub(super) struct Calls {
    running: Mutex<HashMap<RequestId, Running>>,
    ended: Notify,
    /// What is told outside of any call.
    changes: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
pub(super) struct Running {
    task: AbortHandle,
    /// A subscription goes on for as long as somebody listens, so nobody waits for it.
    listening: bool,
}

impl Calls {
    pub(super) fn running(&self) -> MutexGuard<'_, HashMap<RequestId, Running>> {
        // Entries are added and removed in single steps.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a task go on for as long as the pipe is open; the one before it ends.
    pub(super) fn listen(&self, task: Option<AbortHandle>) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = std::mem::replace(&mut *changes, task) {
            earlier.abort();
        }
    }

    /// The last line of a call, unless it has been cancelled.
    pub(super) fn end(&self, id: &RequestId, outgoing: &Outgoing, line: &[u8]) {
        let mut running = self.running();
        if running.remove(id).is_some() {
            outgoing.push(line);
            self.ended.notify_one();
        }
    }
}

impl Session<'_> {
    /// Takes one line. Answers that are ready at once go to the end of `answers`.
    fn line(&self, line: Line<'_>, answers: &mut Vec<u8>) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                let error =
                    ErrorObject::invalid_request(format!("a message is at most {MAX_LINE} bytes long"));
                return refuse(answers, None, &error);
            }
        };
        match Message::decode(line) {
            Ok(Message::Request(request)) => self.request(request, answers),
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => self.old.response(response),
            Err(malformed) => match self.old.batch(line) {
                Some(messages) => {
                    for message in messages {
                        self.line(Line::Whole(message.get().as_bytes()), answers);
                    }
                }
                None => refuse(answers, malformed.id.as_ref(), &malformed.error),
            },
        }
    }

    fn request(&self, request: Request<'_>, answers: &mut Vec<u8>) {
        let decoded = match self.endpoint.decode(&request) {
            Ok(decoded) => decoded,
            Err(_) if self.old.takes(&request) => return self.old_request(&request, answers),
            Err(error) => return refuse(answers, Some(&request.id), &self.old.explain(&request, error)),
        };
        let size = request.params.map_or(0, |params| params.get().len());
        let mut call = self.endpoint.begin_sized(request.id, &decoded, self.peer, size);
        // Most handlers are done at the first poll, and those need no task.
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(event) = call.poll_event(&mut cx) {
            if write(self.endpoint, &call, event, answers) {
                return;
            }
        }
        let listening = matches!(decoded, ClientRequest::SubscriptionsListen(_));
        let (endpoint, calls, outgoing) =
            (self.endpoint.clone(), Arc::clone(&self.calls), Arc::clone(&self.outgoing));
        let id = call.id().clone();
        self.spawn(id, listening, run(endpoint, call, listening, calls, outgoing), answers);
    }

    /// Lets a call run on its own.
    pub(super) fn spawn(
        &self,
        id: RequestId,
        listening: bool,
        call: impl Future<Output = ()> + Send + 'static,
        answers: &mut Vec<u8>,
    ) {
        let mut running = self.calls.running();
        match running.entry(id) {
            Entry::Occupied(taken) => {
                let error = ErrorObject::invalid_request("a request of this id is still running");
                refuse(answers, Some(taken.key()), &error);
            }
            Entry::Vacant(free) => {
                let task = tokio::spawn(call);
                free.insert(Running { task: task.abort_handle(), listening });
            }
        }
    }

    /// `notifications/cancelled` is the only one that means anything to a modern call.
    fn notification(&self, notification: &Notification<'_>) {
        if notification.method != CancelledNotification::NAME {
            return self.old_notification(notification);
        }
        let params =
            decode_params::<<CancelledNotification as NotificationMethod>::Params>(notification.params);
        let Ok(params) = params else { return };
        if let Some(Running { task, .. }) = self.calls.running().remove(&params.request_id) {
            tracing::debug!(id = %params.request_id, reason = params.reason, "cancelled");
            task.abort();
        }
    }

    /// Ends what is left: subscriptions at once, calls if they do not finish in time.
    async fn drain(&self) {
        self.calls.listen(None);
        self.old.hang_up();
        self.calls.running().retain(|_, running| {
            if running.listening {
                running.task.abort();
            }
            !running.listening
        });
        let all_ended = async {
            loop {
                let ended = self.calls.ended.notified();
                if self.calls.running().is_empty() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(GRACE, all_ended).await.is_err() {
            self.calls.running().drain().for_each(|(_, running)| running.task.abort());
        }
    }
}

/// Drives a call to its end. What comes before the answer may be left out where nobody keeps up; changes, which must not
/// be, wait until somebody does.
async fn run(
    endpoint: Endpoint,
    mut call: InFlight,
    listening: bool,
    calls: Arc<Calls>,
    outgoing: Arc<Outgoing>,
) {
    let mut line = Vec::new();
    loop {
        if listening {
            outgoing.calm().await;
        }
        let event = call.event().await;
        let last = write(&endpoint, &call, event, &mut line);
        // Under the lock, so that nothing is sent for a call that has just been cancelled (I2).
        let mut running = calls.running();
        if !running.contains_key(call.id()) {
            return;
        }
        if last || listening {
            outgoing.push(&line);
        } else {
            outgoing.push_hint(&line);
        }
        line.clear();
        if last {
            running.remove(call.id());
            calls.ended.notify_one();
            return;
        }
    }
}

/// Writes an event as a line; true if it was the last.
fn write(endpoint: &Endpoint, call: &InFlight, event: Event, out: &mut Vec<u8>) -> bool {
    let last = match event {
        Event::Notification(message) => {
            out.extend_from_slice(&message);
            false
        }
        Event::Response(outcome) => {
            endpoint.encode(out, call.id(), outcome);
            true
        }
    };
    out.push(b'\n');
    last
}

pub(super) fn refuse(answers: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    encode_error(answers, id, error);
    answers.push(b'\n');
}
