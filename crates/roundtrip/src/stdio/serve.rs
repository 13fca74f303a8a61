//! Server side: lines in, lines out, calls side by side.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use roundtrip_core::wire::{
    CancelledNotification, ClientRequest, ErrorObject, Message, Notification, NotificationMethod, Request,
    RequestId, clip, decode_params, encode_error,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::calls::{Calls, Place, Running, Starting};
#[cfg(feature = "legacy")]
use super::legacy::StdioSession;
use super::lines::{Line, Lines, end_line};
use super::outgoing::{HIGH_WATER, Outgoing};
use super::{MAX_LINE, std_streams};
use crate::server::{Endpoint, Event, InFlight, Peer, ServeError, Server};

/// Time for running calls to finish once the input has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Most calls that are in their first poll, or queued for it. Those that are done with it leave no more answers than this
/// to a peer that reads none; those that block in it may be this many before reading stops.
const MAX_STARTING: usize = 64;
/// Bytes that an answer takes, more often than not.
const USUAL_LINE: usize = 512;
/// Most bytes read at once.
const CHUNK: usize = 64 * 1024;

impl Server {
    /// Serves standard input and output, until the input ends.
    ///
    /// Nothing else may write to standard output: log to standard error.
    ///
    /// # Errors
    /// If the server was put together wrongly, a stream breaks, or the client does not read the output (see
    /// [`serve_lines`]).
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let endpoint = self.build()?;
        Ok(serve_lines(&endpoint, &only(), std_streams::stdin(), std_streams::stdout()).await?)
    }
}

/// Serves one peer over a pair of byte streams, one message a line, until the input ends.
///
/// # Errors
/// If a stream breaks, or the peer does not read the output: not a byte of it for 30 s, or for 2 s once the input has
/// ended.
pub async fn serve_lines(
    endpoint: &Endpoint,
    peer: &Peer,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    #[cfg(feature = "opentelemetry")]
    let peer = &on_pipe(endpoint, peer);
    let session = Session {
        endpoint,
        peer,
        one_thread: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        #[cfg(feature = "legacy")]
        legacy: StdioSession::new(endpoint),
        calls: Arc::default(),
        outgoing: Arc::default(),
    };
    let mut writing = {
        let (outgoing, calls) = (Arc::clone(&session.outgoing), Arc::clone(&session.calls));
        tokio::spawn(async move { outgoing.write_to(output, || calls.starting() > 0).await })
    };
    let (ended, written) = tokio::select! {
        biased;
        // Input that cannot be answered is not worth reading.
        written = &mut writing => (Ok(()), Some(written)),
        ended = session.read(input) => (ended, None),
    };
    session.outgoing.hurry();
    session.drain().await;
    session.outgoing.close();
    let written = match written {
        Some(written) => written,
        None => writing.await,
    };
    match written {
        // A peer that has hung up does not read either.
        Ok(Err(error)) if ended.is_ok() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

/// Returns the peer of the process's own standard streams.
fn only() -> Peer {
    Peer { is_only: true, ..Peer::default() }
}

/// Describes the connection for the server's telemetry, unless the caller has.
#[cfg(feature = "opentelemetry")]
fn on_pipe(endpoint: &Endpoint, peer: &Peer) -> Peer {
    let mut peer = peer.clone();
    if endpoint.telemetry().is_some() {
        peer.extensions.get_or_insert_with(crate::telemetry::Network::pipe);
    }
    peer
}

/// One peer and its calls.
pub(super) struct Session<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) peer: &'a Peer,
    /// True where a task could not run beside this one: then calls that are done at their first poll need none.
    one_thread: bool,
    /// Session of the handshake eras.
    #[cfg(feature = "legacy")]
    pub(super) legacy: StdioSession,
    pub(super) calls: Arc<Calls>,
    pub(super) outgoing: Arc<Outgoing>,
}

impl Session<'_> {
    /// Reads lines until the input ends. Lines wait while their answers are not read; reading goes on until the
    /// buffer is full, so that the end of the input is noticed.
    async fn read(&self, mut input: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut lines = Lines::new(MAX_LINE);
        let mut buffer = vec![0; CHUNK];
        let (mut start, mut end, mut ended) = (0, 0, false);
        let mut answers = Vec::new();
        while !ended || start < end {
            tokio::select! {
                biased;
                () = self.ready(), if start < end => {
                    start += lines.feed_while(&buffer[start..end], |line| {
                        self.line(line, &mut answers);
                        answers.len() < HIGH_WATER && self.has_room()
                    });
                    self.send(&mut answers);
                    if start == end {
                        (start, end) = (0, 0);
                    }
                }
                read = input.read(&mut buffer[end..]), if !ended && end < CHUNK => match read? {
                    0 => {
                        ended = true;
                        self.outgoing.hurry();
                    }
                    size => end += size,
                },
            }
        }
        Ok(())
    }

    /// Waits until the peer has read most answers, and one more call may start.
    async fn ready(&self) {
        self.calls.started_until(|| self.has_room()).await;
        self.outgoing.calm().await;
    }

    /// Sends answers that are ready.
    pub(super) fn send(&self, answers: &mut Vec<u8>) {
        self.outgoing.push(answers);
        answers.clear();
        answers.shrink_to(CHUNK);
    }

    /// Handles one line. Answers that are ready at once are appended to `answers`.
    pub(super) fn line(&self, line: Line<'_>, answers: &mut Vec<u8>) {
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
            // The only notification with a meaning for a modern call.
            Ok(Message::Notification(notification)) if notification.method == CancelledNotification::NAME => {
                self.cancel(&notification);
            }
            #[cfg(feature = "legacy")]
            other if self.legacy.has_begun() => self.session_line(line, other, answers),
            Ok(Message::Notification(_)) => {}
            Ok(Message::Response(_)) => {
                tracing::debug!("a response is ignored: the server has sent no request");
            }
            Err(malformed) => refuse(answers, malformed.id.as_ref(), &malformed.error),
        }
    }

    pub(super) fn request(&self, request: Request<'_>, answers: &mut Vec<u8>) {
        // Lines are handled one after the other, and only a line adds a call: the id stays free meanwhile.
        if self.calls.running().contains_key(&request.id) {
            let error = ErrorObject::invalid_request("a request of this id is still running");
            return refuse(answers, Some(&request.id), &error);
        }
        #[cfg(feature = "legacy")]
        if self.legacy.takes(&request) {
            return self.legacy_request(&request, answers);
        }
        let decoded = match self.endpoint.decode(&request) {
            Ok(decoded) => decoded,
            Err(error) => {
                #[cfg(feature = "legacy")]
                let error = self.legacy.explain(&request, error);
                return refuse(answers, Some(&request.id), &error);
            }
        };
        let size = request.params.map_or(0, |params| params.get().len());
        let mut call = self.endpoint.begin_sized(request.id, &decoded, self.peer, size);
        if self.one_thread || call.is_settled() {
            let mut cx = Context::from_waker(Waker::noop());
            while answers.len() < HIGH_WATER
                && let Poll::Ready(event) = call.poll_event(&mut cx)
            {
                if write(self.endpoint, &call, event, answers) {
                    return;
                }
            }
        }
        let listening = matches!(decoded, ClientRequest::SubscriptionsListen(_));
        let waits = listening || wants_parts(&decoded);
        let place = self.place(call.id());
        let starting = self.calls.start();
        let run = run(self.endpoint.clone(), call, waits, place.clone(), starting);
        self.spawn(&place, listening, run, answers);
    }

    /// Returns whether one more call may start. One that comes back at once is never the reason to refuse the next.
    fn has_room(&self) -> bool {
        match self.calls.starting() {
            0 => true,
            starting => starting < MAX_STARTING && self.endpoint.has_place(),
        }
    }

    /// Creates the registration of a call that does not finish at once.
    pub(super) fn place(&self, id: &RequestId) -> Place {
        Place {
            calls: Arc::clone(&self.calls),
            outgoing: Arc::clone(&self.outgoing),
            id: id.clone(),
            number: self.calls.next_number.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Spawns a call. Its first lines are sent before: it may send more at once.
    pub(super) fn spawn(
        &self,
        place: &Place,
        listening: bool,
        call: impl Future<Output = ()> + Send + 'static,
        answers: &mut Vec<u8>,
    ) {
        self.send(answers);
        let mut running = self.calls.running();
        let task = tokio::spawn(call).abort_handle();
        running.insert(place.id.clone(), Running { number: place.number, task, listening });
    }

    /// Cancels a call.
    fn cancel(&self, notification: &Notification<'_>) {
        let params =
            decode_params::<<CancelledNotification as NotificationMethod>::Params>(notification.params);
        let Ok(params) = params else { return };
        if self.calls.cancel(&params.request_id) {
            tracing::debug!(id = %params.request_id, reason = params.reason.as_deref().map(clip).as_deref(), "cancelled");
        }
    }

    /// Ends the remaining calls: subscriptions at once, others if they do not finish in time.
    async fn drain(&self) {
        #[cfg(feature = "legacy")]
        self.legacy.hang_up();
        self.calls.end_listening();
        if tokio::time::timeout(GRACE, self.calls.all_ended()).await.is_err() {
            self.calls.abort_all();
        }
        // Rounds are recorded whether or not the client still reads (M6).
        let _ = tokio::time::timeout(GRACE, self.endpoint.finished()).await;
    }
}

/// Returns whether a request wants its result in parts.
fn wants_parts(request: &ClientRequest<'_>) -> bool {
    matches!(request, ClientRequest::CallTool(params) if params.stream.is_some())
}

/// Drives a call to its end. Notifications may be dropped if the reader does not keep up; changes and parts of a result must
/// not be, and the call `waits` until it does.
///
/// It counts as starting until it waits for the first time, or its answer is among those to be read.
// A block, and not an `async fn`, whose future would have the call twice: as a parameter and as a variable.
fn run(
    endpoint: Endpoint,
    mut call: InFlight,
    waits: bool,
    place: Place,
    starting: Starting,
) -> impl Future<Output = ()> + Send + 'static {
    let (mut line, mut starting) = (Vec::with_capacity(USUAL_LINE), Some(starting));
    async move {
        loop {
            if waits {
                place.outgoing.calm().await;
            }
            let event = poll_fn(|cx| {
                let event = call.poll_event(cx);
                if event.is_pending() {
                    starting = None;
                }
                event
            });
            let event = event.await;
            if write(&endpoint, &call, event, &mut line) {
                // Its place among the running calls is free before it no longer counts as starting.
                drop(call);
                return place.end(&line);
            }
            if waits {
                place.send(&line);
            } else {
                place.send_hint(&line);
            }
            line.clear();
        }
    }
}

/// Writes an event as a line; returns whether it was the last.
fn write(endpoint: &Endpoint, call: &InFlight, event: Event, out: &mut Vec<u8>) -> bool {
    let start = out.len();
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
    end_line(out, start);
    last
}

pub(super) fn refuse(answers: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    let start = answers.len();
    encode_error(answers, id, error);
    end_line(answers, start);
}
