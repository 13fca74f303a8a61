//! A call under way at an old server: what comes of it, told apart.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::wire::{
    ElicitRequestParams, ErrorObject, InputRequest, InputRequests, InputResponses, Message,
    NotificationMethod as _, ProgressNotification, ProtocolVersion, Raw, Request, RequestId, decode_batch,
};
use serde_json::{Value, json};
use tokio::task::coop;
use tokio::time::{Instant, timeout_at};

use super::admit::{Asked, admit, small_enough};
use super::link::{Failure, Link};
use super::outside;
use super::questions::Delivery;
use super::request::Hello;
use super::session::{Session, ended, in_background};
use crate::client::{BoxFuture, Error, Incoming, Sent, nameless_error, unfold};
use crate::legacy::handshake::PING;

/// How many messages one batch may hold.
const BATCH: usize = 256;
/// How many messages are kept while people think.
const UNREAD: usize = 256;
/// How much of them.
const UNREAD_BYTES: usize = 1024 * 1024;
/// How long to wait for more questions once there is one: those asked together arrive together, or nearly so.
const GATHER: Duration = Duration::from_millis(20);
/// The code of an answer that will not come. It lies outside the range JSON-RPC reserves.
const GIVEN_UP: i64 = -1;

/// A call that has been made and not yet answered. Dropping it cancels it, and refuses what the server asked in it.
pub(super) struct OpenCall<L: Link> {
    session: Arc<Session<L>>,
    /// Its id at the server.
    id: RequestId,
    /// Who made it.
    hello: Hello,
    /// What is asked beside it; none where its answer may not be questions.
    questions: Option<Delivery<L>>,
    incoming: Incoming,
    /// What has come and was not read yet.
    unread: VecDeque<Bytes>,
    /// How what comes of it ended, where that was not read yet.
    broke: Option<Option<Result<Bytes, Error>>>,
    /// How many questions it has asked so far.
    asked: u32,
    /// The questions that wait for their answers.
    open: Vec<Open>,
    /// Until when more of them are waited for.
    gathers_until: Option<Instant>,
    over: bool,
}

/// A question that waits for its answer.
struct Open {
    key: String,
    /// The id of the server's request.
    id: RequestId,
    question: InputRequest,
}

/// What comes of a call.
pub(super) enum Event {
    Notification(Bytes),
    Answer(Result<Raw, ErrorObject>),
    /// Questions to be answered before there is more.
    Asks(InputRequests),
}

/// What one message says.
enum Read {
    Notification(Bytes),
    Answer(Result<Raw, ErrorObject>),
    /// It was dealt with.
    Nothing,
}

impl<L: Link> OpenCall<L> {
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
            open: Vec::new(),
            gathers_until: None,
            over: false,
        }
    }

    /// Sends the request. A server may ask something before it says anything else, and wait for that with its answer: then
    /// what comes of the request is waited for while the question is answered.
    pub(super) async fn send(
        &mut self,
        mut sending: BoxFuture<Result<Incoming, Failure>>,
    ) -> Result<(), Failure> {
        let sent = match &mut self.questions {
            None => (&mut sending).await,
            Some(questions) => tokio::select! {
                biased;
                sent = &mut sending => sent,
                Some(question) = questions.next() => {
                    self.unread.push_back(question);
                    Ok(later(sending))
                }
            },
        };
        match sent {
            Ok(incoming) => {
                self.incoming = incoming;
                Ok(())
            }
            Err(failure) => {
                // There is nothing to cancel.
                self.over = true;
                Err(failure)
            }
        }
    }

    pub(super) fn session(&self) -> &Arc<Session<L>> {
        &self.session
    }

    /// Its id at the server.
    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Whether its answer may be questions.
    pub(super) fn may_ask(&self) -> bool {
        self.questions.is_some()
    }

    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The next thing that comes of it. After an answer nothing does.
    pub(super) async fn event(&mut self) -> Result<Event, Error> {
        loop {
            // A server that always has something to say must not keep timeouts from being noticed.
            coop::consume_budget().await;
            let next = match self.gathers_until {
                None => self.message().await,
                // Whoever asks several things at once wants them answered at once (C1).
                Some(until) => match timeout_at(until, self.message()).await {
                    Ok(next) => next,
                    Err(_) => return Ok(self.ask()),
                },
            };
            let message = match next {
                Some(Ok(message)) => message,
                // Nobody is asked on behalf of a call that is over.
                Some(Err(error)) => return Err(error),
                None => {
                    let why = "the server ended the exchange without an answer";
                    return Err(Error::unreachable(why, Sent::Maybe));
                }
            };
            match self.read(&message).await? {
                Read::Notification(message) => return Ok(Event::Notification(message)),
                Read::Answer(answer) => {
                    self.over = true;
                    return Ok(Event::Answer(answer));
                }
                // Those beyond are for the next round.
                Read::Nothing if self.open.len() >= self.hello.limits.questions.max(1) => {
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
            message = incoming => message,
            Some(question) = questions.next() => Some(Ok(question)),
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
                    tracing::debug!(%id, "an answer nobody waits for");
                    Ok(Read::Nothing)
                }
                _ => Ok(Read::Answer(response.outcome.map(Raw::from))),
            },
            Err(malformed) => match nameless_error(bytes) {
                Some(error) => Ok(Read::Answer(Err(error))),
                None => Err(Error::PeerMisbehaved(malformed.error.message.into_owned())),
            },
        }
    }

    /// A request of the server's own, in the midst of the call.
    async fn asked(&mut self, request: &Request<'_>, bytes: &[u8]) -> Result<(), Error> {
        if self.open.iter().any(|open| open.id == request.id) {
            tracing::debug!(id = %request.id, "the server used an id twice; passed over");
            return Ok(());
        }
        let admitted = match small_enough(bytes) {
            Ok(()) => admit(request, &self.session.askable(&self.hello), &self.hello.limits),
            Err(large) => Asked::Refused(large),
        };
        let question = match admitted {
            Asked::Question(question) if self.may_ask() => question,
            other => {
                let (responder, most) =
                    (self.hello.asker.responder(), self.hello.limits.questions_outside_calls);
                return outside::answer(&self.session, responder, most, &request.id, other)
                    .await
                    .or_else(lost);
            }
        };
        self.asked = self.asked.saturating_add(1);
        let key = format!("{}-{}", kind(&question), self.asked);
        self.open.push(Open { key, id: request.id.clone(), question });
        self.gathers_until.get_or_insert_with(|| Instant::now() + GATHER);
        Ok(())
    }

    fn ask(&mut self) -> Event {
        self.gathers_until = None;
        self.waits(true);
        Event::Asks(self.open.iter().map(|open| (open.key.clone(), open.question.clone())).collect())
    }

    fn waits(&self, waits: bool) {
        if let Some(questions) = &self.questions {
            questions.waits(waits);
        }
    }

    fn weighs(&self) -> usize {
        self.unread.iter().map(Bytes::len).sum()
    }

    /// Reads on while people think: a server that asks whether we are there is answered, and the rest is kept.
    pub(super) async fn watch(&mut self) -> Infallible {
        while self.unread.len() < UNREAD && self.weighs() < UNREAD_BYTES && self.broke.is_none() {
            match self.incoming().await {
                Some(Ok(message)) => match Message::decode(&message) {
                    Ok(Message::Request(request)) if request.method == PING => {
                        drop(outside::answer(&self.session, None, 0, &request.id, Asked::Ping).await);
                    }
                    _ => self.unread.push_back(message),
                },
                how => self.broke = Some(how),
            }
        }
        pending().await
    }

    /// Gives the server the answers it waits for.
    pub(super) async fn answer(&mut self, mut answers: InputResponses) -> Result<(), Error> {
        self.waits(false);
        for open in std::mem::take(&mut self.open) {
            let answer = answers.remove(&open.key);
            let refused = ErrorObject::new(GIVEN_UP, "this question was left without an answer");
            let answer = answer.as_ref().ok_or(&refused);
            match self.session.respond(&open.id, answer).await {
                Ok(()) => {}
                Err(Failure::Gone) => {
                    self.over = true;
                    return Err(ended());
                }
                Err(Failure::Error(error)) => return Err(error),
                Err(Failure::Refused(refusal)) => return Err(refusal.into_error()),
            }
        }
        Ok(())
    }
}

impl<L: Link> Drop for OpenCall<L> {
    fn drop(&mut self) {
        if self.over && self.open.is_empty() {
            return;
        }
        let (session, id, over) = (Arc::clone(&self.session), self.id.clone(), self.over);
        let asked: Vec<RequestId> = self.open.drain(..).map(|open| open.id).collect();
        // The stream is closed once the server knows why: some do not take it well otherwise.
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

/// What a server is told whose question nobody will answer any more.
pub(super) fn given_up() -> ErrorObject {
    ErrorObject::new(GIVEN_UP, "the call was given up, or is over")
}

/// What comes of a request, once it has been sent.
fn later(sending: BoxFuture<Result<Incoming, Failure>>) -> Incoming {
    enum Later {
        Sending(BoxFuture<Result<Incoming, Failure>>),
        Sent(Incoming),
    }
    unfold(Later::Sending(sending), |later| async move {
        let mut incoming = match later {
            Later::Sent(incoming) => incoming,
            Later::Sending(sending) => match sending.await {
                Ok(incoming) => incoming,
                Err(Failure::Error(error)) => return Some((Err(error), None)),
                Err(Failure::Gone) => return Some((Err(ended()), None)),
                Err(Failure::Refused(refusal)) => return Some((Err(refusal.into_error()), None)),
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

/// A reply that could not be sent ends the call only where the session is gone.
fn lost(failure: Failure) -> Result<(), Error> {
    match failure {
        Failure::Gone => Err(ended()),
        Failure::Error(error) => {
            tracing::debug!(%error, "a request of the server's own could not be answered");
            Ok(())
        }
        Failure::Refused(refusal) => {
            tracing::debug!(status = refusal.status, "the server did not take an answer");
            Ok(())
        }
    }
}

fn kind(question: &InputRequest) -> &'static str {
    match question {
        InputRequest::Elicit(_) => "elicitation",
        InputRequest::CreateMessage(_) => "sampling",
        InputRequest::ListRoots(_) => "roots",
    }
}

/// The messages of a batch, which one revision has.
fn batch(bytes: &[u8]) -> Result<Vec<Bytes>, Error> {
    let messages = decode_batch(bytes, BATCH).map_err(|error| {
        Error::PeerMisbehaved(format!("not a batch of at most {BATCH} messages: {error}"))
    })?;
    // A batch in a batch would be read again and again.
    let messages = messages.into_iter().filter(|message| !message.get().starts_with('['));
    Ok(messages.map(|message| Bytes::copy_from_slice(message.get().as_bytes())).collect())
}

/// Before 2025-11-25 a model says one thing, never a list of them.
pub(super) fn plain(answer: &Raw, version: ProtocolVersion) -> Raw {
    if version >= ProtocolVersion::V2025_11_25 {
        return answer.clone();
    }
    let mut value = answer.to_value();
    match value.get_mut("content").map(Value::take) {
        Some(Value::Array(mut contents)) if contents.len() == 1 => {
            value["content"] = contents.remove(0);
            value.into()
        }
        _ => answer.clone(),
    }
}

/// Progress of a call, in the name of the leg that waits for it now.
pub(super) fn in_the_name_of(leg: &RequestId, call: &RequestId, message: Bytes) -> Bytes {
    if leg == call {
        return message;
    }
    match Message::decode(&message) {
        Ok(Message::Notification(notification)) if notification.method == ProgressNotification::NAME => {
            let Ok(mut value) = serde_json::from_slice::<Value>(&message) else { return message };
            if value["params"]["progressToken"] == json!(call) {
                value["params"]["progressToken"] = json!(leg);
            }
            value.to_string().into()
        }
        _ => message,
    }
}

/// The questions of an error that wants web pages visited first, by key; none where there are more than `most`.
pub(super) fn pages(error: &ErrorObject, most: usize) -> Option<InputRequests> {
    let pages = error.data.as_ref()?.get("elicitations")?.as_array()?;
    if pages.is_empty() || pages.len() > most {
        return None;
    }
    let mut questions = BTreeMap::new();
    for (index, page) in pages.iter().enumerate() {
        let shape = json!({ "method": "elicitation/create", "params": page });
        let question: InputRequest = serde_json::from_value(shape).ok()?;
        // Nothing but pages may be asked for like this.
        let InputRequest::Elicit(ElicitRequestParams::Url(_)) = question else { return None };
        questions.insert(format!("elicitation-{}", index + 1), question);
    }
    Some(questions)
}
