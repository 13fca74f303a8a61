//! A call under way at a legacy server: its messages, read one by one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{
    ErrorObject, InputRequest, InputRequests, InputResponses, Message, ProtocolVersion, Raw, Request,
    RequestId,
};
use tokio::task::coop;
use tokio::time::{Instant, timeout_at};

use super::keys::{key, stem};
use super::link::{SessionFailure, SessionLink};
use super::questions::Delivery;
use super::request::Hello;
use super::revisions::batch;
use super::server_request::{ServerRequest, admit, answer_outside_call, small_enough};
use super::session::{Session, ended, in_background};
use super::unfold::unfold;
use crate::client::{ApiMisuse, BoxFuture, Error, Incoming, PeerMisbehaved, Sent, nameless_error};
use crate::legacy::handshake::PING;

/// Most messages kept while the user answers questions.
const UNREAD: usize = 256;
/// Most bytes of them.
const UNREAD_BYTES: usize = 1024 * 1024;
/// Time to wait for more questions after the first: questions asked together arrive almost together.
const GATHER: Duration = Duration::from_millis(20);
/// Error code for a question that will not be answered. It lies outside the range JSON-RPC reserves.
const GIVEN_UP: i64 = -1;

/// A call that has been sent and not yet answered. Dropping it cancels it, and refuses its open questions.
pub(super) struct OpenCall<L: SessionLink> {
    session: Arc<Session<L>>,
    /// Id of the request at the server.
    id: RequestId,
    /// Identity and settings of the caller.
    hello: Hello,
    /// Messages that arrive outside of the call's own stream; `None` if the call cannot be asked.
    questions: Option<Delivery<L>>,
    incoming: Incoming,
    /// Messages that have arrived and were not read yet.
    unread: VecDeque<Bytes>,
    /// End of the incoming messages, if that was not read yet.
    broke: Option<Option<Result<Bytes, Error>>>,
    /// Number of questions asked so far.
    asked: u32,
    /// End of the keys of a task's questions, so that no two have the same.
    suffix: Option<String>,
    /// True if the call asks for a task.
    pub(super) is_task: bool,
    /// Questions that wait for their answers.
    open: Vec<Open>,
    /// End of the wait for further questions.
    gathers_until: Option<Instant>,
    over: bool,
}

/// A question that waits for its answer.
struct Open {
    key: String,
    /// Id of the server's request.
    id: RequestId,
    question: InputRequest,
}

/// An event of a call.
pub(super) enum Event {
    Notification(Bytes),
    Answer(Result<Raw, ErrorObject>),
    /// Questions to answer before the call goes on.
    Asks(InputRequests),
}

/// Outcome of reading one message.
enum Read {
    Notification(Bytes),
    Answer(Result<Raw, ErrorObject>),
    /// The message was handled.
    Nothing,
}

impl<L: SessionLink> OpenCall<L> {
    pub(super) fn new(
        session: &Arc<Session<L>>,
        id: RequestId,
        hello: Hello,
        questions: Option<Delivery<L>>,
    ) -> Self {
        let session = Arc::clone(session);
        Self {
            session,
            id,
            hello,
            questions,
            incoming: nothing(),
            unread: VecDeque::new(),
            broke: None,
            asked: 0,
            suffix: None,
            is_task: false,
            open: Vec::new(),
            gathers_until: None,
            over: false,
        }
    }

    /// Sends the request. A server may ask a question before its HTTP response begins: then the response is awaited
    /// while the question is answered.
    pub(super) async fn send(
        &mut self,
        mut sending: BoxFuture<Result<Incoming, SessionFailure>>,
    ) -> Result<(), SessionFailure> {
        let sent = loop {
            let Some(questions) = &mut self.questions else { break (&mut sending).await };
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                Some(message) = questions.next() => {
                    let asks = matches!(Message::decode(&message), Ok(Message::Request(_)));
                    if asks || self.has_room() {
                        self.unread.push_back(message);
                    }
                    if asks {
                        break Ok(later(sending));
                    }
                }
            }
        };
        match sent {
            Ok(incoming) => {
                self.incoming = incoming;
                Ok(())
            }
            Err(failure) => {
                // Nothing was sent that could be cancelled.
                self.over = true;
                Err(failure)
            }
        }
    }

    pub(super) fn session(&self) -> &Arc<Session<L>> {
        &self.session
    }

    /// Returns the id of the request at the server.
    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns whether the call can be asked questions.
    pub(super) fn may_ask(&self) -> bool {
        self.questions.is_some()
    }

    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Returns the next event. After an answer there is none.
    pub(super) async fn event(&mut self) -> Result<Event, Error> {
        loop {
            // A server that never pauses must not keep timeouts from firing.
            coop::consume_budget().await;
            let next = match self.gathers_until {
                None => self.message().await,
                // Questions asked together are answered in one round (C1).
                Some(until) => match timeout_at(until, self.message()).await {
                    Ok(next) => next,
                    Err(_) => return Ok(self.ask()),
                },
            };
            let message = match next {
                Some(Ok(message)) => message,
                // A call that is over asks nothing.
                Some(Err(error)) => return Err(error),
                None => {
                    let why = "the server ended the exchange";
                    return Err(Error::closed_by_server(why, Sent::Maybe));
                }
            };
            match self.read(&message).await? {
                Read::Notification(message) => return Ok(Event::Notification(message)),
                Read::Answer(answer) => {
                    self.over = true;
                    return Ok(Event::Answer(answer));
                }
                // Further questions are for the next round.
                Read::Nothing if self.open.len() >= self.hello.caller.limits.questions.max(1) => {
                    return Ok(self.ask());
                }
                Read::Nothing => {}
            }
        }
    }

    async fn message(&mut self) -> Option<Result<Bytes, Error>> {
        if let Some(message) = self.unread.pop_front() {
            return Some(Ok(message));
        }
        match self.broke.take() {
            Some(how) => how,
            None => self.incoming().await,
        }
    }

    async fn incoming(&mut self) -> Option<Result<Bytes, Error>> {
        let incoming = poll_fn(|cx| self.incoming.as_mut().poll_next(cx));
        let Some(questions) = &mut self.questions else { return incoming.await };
        tokio::select! {
            // A log message that came before the answer is not to be lost.
            biased;
            Some(message) = questions.next() => Some(Ok(message)),
            message = incoming => message,
        }
    }

    async fn read(&mut self, bytes: &Bytes) -> Result<Read, Error> {
        if self.session.version == ProtocolVersion::V2025_03_26 && bytes.trim_ascii_start().starts_with(b"[")
        {
            self.unread.extend(batch(bytes)?);
            return Ok(Read::Nothing);
        }
        match Message::decode(bytes) {
            Ok(Message::Notification(_)) => Ok(Read::Notification(bytes.clone())),
            Ok(Message::Request(request)) => self.asked(&request, bytes).await.map(|()| Read::Nothing),
            Ok(Message::Response(response)) => match response.id {
                Some(id) if id != self.id => {
                    tracing::debug!(%id, "ignored an answer to an unknown request");
                    Ok(Read::Nothing)
                }
                _ => Ok(Read::Answer(response.outcome.map(Raw::from))),
            },
            Err(malformed) => match nameless_error(bytes) {
                Some(error) => Ok(Read::Answer(Err(error))),
                None => Err(PeerMisbehaved::MalformedMessage(malformed.error.message.into_owned()).into()),
            },
        }
    }

    /// Handles a request of the server that arrives during the call.
    async fn asked(&mut self, request: &Request<'_>, bytes: &[u8]) -> Result<(), Error> {
        if self.open.iter().any(|open| open.id == request.id) {
            tracing::debug!(id = %request.id, "the server used an id twice; ignored");
            return Ok(());
        }
        let admitted = match small_enough(request, bytes) {
            Ok(()) => admit(request, &self.session.askable(&self.hello), &self.hello.caller.limits),
            Err(large) => ServerRequest::Refused(large),
        };
        let question = match admitted {
            ServerRequest::Question(question) if self.may_ask() => question,
            other => {
                let (handlers, most) =
                    (self.hello.caller.handlers.upgrade(), self.hello.caller.limits.questions_outside_calls);
                return answer_outside_call(&self.session, handlers, most, &request.id, other)
                    .await
                    .or_else(lost);
            }
        };
        self.asked = self.asked.saturating_add(1);
        let key = key(&question, self.asked, self.suffix.as_deref());
        self.open.push(Open { key, id: request.id.clone(), question });
        self.gathers_until.get_or_insert_with(|| Instant::now() + GATHER);
        Ok(())
    }

    /// Gives questions the keys of a task's.
    pub(super) fn asks_for_task(&mut self) -> Result<(), Error> {
        let mut random = [0; 4];
        getrandom::fill(&mut random)
            .map_err(|error| ApiMisuse::Other(format!("no randomness to be had: {error}")))?;
        self.suffix = Some(format!("{:08x}", u32::from_ne_bytes(random)));
        Ok(())
    }

    /// Returns the questions that wait for their answers.
    pub(super) fn questions(&self) -> InputRequests {
        self.open.iter().map(|open| (open.key.clone(), open.question.clone())).collect()
    }

    fn ask(&mut self) -> Event {
        self.gathers_until = None;
        self.waits(true);
        Event::Asks(self.questions())
    }

    fn waits(&self, waits: bool) {
        if let Some(questions) = &self.questions {
            questions.waits(waits);
        }
    }

    /// Returns whether another message can be kept unread.
    fn has_room(&self) -> bool {
        self.unread.len() < UNREAD && self.unread.iter().map(Bytes::len).sum::<usize>() < UNREAD_BYTES
    }

    /// Reads on while the user answers questions: answers `ping` and keeps everything else.
    pub(super) async fn watch(&mut self) -> Infallible {
        while self.has_room() && self.broke.is_none() {
            match self.incoming().await {
                Some(Ok(message)) => match Message::decode(&message) {
                    Ok(Message::Request(request)) if request.method == PING => {
                        drop(
                            answer_outside_call(&self.session, None, 0, &request.id, ServerRequest::Ping)
                                .await,
                        );
                    }
                    _ => self.unread.push_back(message),
                },
                how => self.broke = Some(how),
            }
        }
        pending().await
    }

    /// Sends the answers the server waits for.
    pub(super) async fn answer(&mut self, mut answers: InputResponses) -> Result<(), Error> {
        self.waits(false);
        for open in std::mem::take(&mut self.open) {
            let answer = answers.remove(&open.key);
            let refused = ErrorObject::new(GIVEN_UP, "this question was not answered");
            self.respond(&open.id, answer.as_ref().ok_or(&refused)).await?;
        }
        Ok(())
    }

    /// Sends the answers that there are to a task's questions, and keeps the others open. Answers that were given to another
    /// process go to the questions that say the same.
    pub(super) async fn answer_some(&mut self, answers: &InputResponses) -> Result<(), Error> {
        for open in std::mem::take(&mut self.open) {
            let alike =
                || answers.iter().find(|(key, _)| stem(key) == stem(&open.key)).map(|(_, answer)| answer);
            match answers.get(&open.key).or_else(alike) {
                Some(answer) => self.respond(&open.id, Ok(answer)).await?,
                None => self.open.push(open),
            }
        }
        self.waits(!self.open.is_empty());
        Ok(())
    }

    async fn respond(&mut self, id: &RequestId, answer: Result<&Raw, &ErrorObject>) -> Result<(), Error> {
        match self.session.respond(id, answer).await {
            Ok(()) => Ok(()),
            Err(SessionFailure::Gone) => {
                self.over = true;
                Err(ended())
            }
            Err(SessionFailure::Error(error)) => Err(error),
            Err(SessionFailure::Refused(refusal)) => Err(refusal.into_error()),
        }
    }
}

impl<L: SessionLink> Drop for OpenCall<L> {
    fn drop(&mut self) {
        if self.over && self.open.is_empty() {
            return;
        }
        let (session, id, over) = (Arc::clone(&self.session), self.id.clone(), self.over);
        // A task's questions are left for the next stream, of this process or another.
        let is_of_task = self.suffix.is_some();
        let asked: Vec<RequestId> = self.open.drain(..).filter(|_| !is_of_task).map(|open| open.id).collect();
        // The stream is closed only once the server knows why: some servers fail otherwise.
        let incoming = std::mem::replace(&mut self.incoming, nothing());
        in_background(async move {
            if !over {
                session.link.cancel(&session.at, &id).await;
            }
            drop(incoming);
            for id in asked {
                drop(session.respond(&id, Err(&given_up())).await);
            }
        });
    }
}

/// Builds the error for a question that will not be answered.
pub(super) fn given_up() -> ErrorObject {
    ErrorObject::new(GIVEN_UP, "the call was cancelled or has ended")
}

/// Returns the messages of a request that is still being sent.
fn later(sending: BoxFuture<Result<Incoming, SessionFailure>>) -> Incoming {
    enum Later {
        Sending(BoxFuture<Result<Incoming, SessionFailure>>),
        Sent(Incoming),
    }
    unfold(Later::Sending(sending), |later| async move {
        let mut incoming = match later {
            Later::Sent(incoming) => incoming,
            Later::Sending(sending) => match sending.await {
                Ok(incoming) => incoming,
                Err(SessionFailure::Error(error)) => return Some((Err(error), None)),
                Err(SessionFailure::Gone) => return Some((Err(ended()), None)),
                Err(SessionFailure::Refused(refusal)) => return Some((Err(refusal.into_error()), None)),
            },
        };
        match poll_fn(|cx| incoming.as_mut().poll_next(cx)).await? {
            Ok(message) => Some((Ok(message), Some(Later::Sent(incoming)))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

fn nothing() -> Incoming {
    unfold((), |()| async { None })
}

/// Handles a reply that could not be sent: it ends the call only if the session is gone.
fn lost(failure: SessionFailure) -> Result<(), Error> {
    match failure {
        SessionFailure::Gone => Err(ended()),
        SessionFailure::Error(error) => {
            tracing::debug!(%error, "a request of the server could not be answered");
            Ok(())
        }
        SessionFailure::Refused(refusal) => {
            tracing::debug!(status = refusal.status, "the server refused an answer");
            Ok(())
        }
    }
}
