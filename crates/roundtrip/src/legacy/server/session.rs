//! A session: its negotiated terms, the questions its client was asked, and its subscription to changes.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
#[cfg(feature = "opentelemetry")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use roundtrip_core::wire::{
    CancelTask, Discover, ErrorObject, GetTask, ListTasks, LoggingLevel, Method as _, Raw, Request,
    RequestId, SubscriptionFilter, SubscriptionsListen, TaskPayload, decode_params, encode_error,
    encode_result,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::calling::Calling;
use super::negotiated::Negotiated;
use super::outstanding::{Answer, Questions};
use crate::legacy::handshake::{INITIALIZE, PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE};
use crate::lock::lock;
use crate::server::{Endpoint, Handshake, Owner, Peer, Subscription, random};
#[cfg(feature = "opentelemetry")]
use crate::telemetry::{Network, SessionTimer};

/// Most messages in one batch.
pub(crate) const LONGEST_BATCH: usize = 100;

/// Longest URI of a watched resource: a session keeps it.
const LONGEST_URI: usize = 8 * 1024;

/// One client of the handshake eras.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) endpoint: Endpoint,
    pub(super) negotiated: Negotiated,
    pub(super) settings: Handshake,
    /// True if the client can be asked. Without a session it cannot.
    pub(super) can_be_asked: bool,
    /// True if other instances serve the session as well: its id is sealed.
    pub(super) shared: bool,
    /// True if the stream of messages outside of any call is, or can only be, at this process.
    has_stream: AtomicBool,
    /// Owner whose share of the server it takes.
    pub(super) owner: Owner,
    level: Mutex<LoggingLevel>,
    /// First id of the session's requests. It is random, so that an answer meant for another session finds nothing
    /// here.
    first_id: i64,
    next_id: AtomicI64,
    /// Calls that await a response, by the ids of their requests.
    waiting: Mutex<HashMap<i64, Weak<Questions>>>,
    subscription: Mutex<Option<Arc<Subscription>>>,
    #[cfg(feature = "opentelemetry")]
    timer: OnceLock<SessionTimer>,
}

/// Importance of a message if a client does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Progress and logs, which may be dropped.
    Hint,
    /// Questions.
    Must,
    /// Cancellation of a question. It is sent even if the call itself may send nothing more.
    TakeBack,
    /// The answer.
    Answer,
}

/// Receiver of JSON-RPC messages for the client.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Sends one message.
    fn send(&self, message: Vec<u8>, weight: Weight);
}

/// Outcome of a request.
pub(crate) enum Handled {
    /// The answer is ready.
    Now(Vec<u8>),
    /// A future that gives the answer.
    Call(Pin<Box<dyn Future<Output = Vec<u8>> + Send>>),
}

impl Session {
    pub(super) fn new(
        endpoint: &Endpoint,
        settings: Handshake,
        negotiated: Negotiated,
        owner: Owner,
    ) -> Result<Arc<Self>, ErrorObject> {
        Ok(Self::with(endpoint, settings, negotiated, owner, Some(first_id()?), false))
    }

    /// Creates the state that one process has of a session with a sealed id.
    pub(super) fn shared(
        endpoint: &Endpoint,
        settings: Handshake,
        negotiated: Negotiated,
        owner: Owner,
    ) -> Result<Arc<Self>, ErrorObject> {
        Ok(Self::with(endpoint, settings, negotiated, owner, Some(first_id()?), true))
    }

    /// Creates the context of a single call without a session.
    pub(super) fn none(
        endpoint: &Endpoint,
        settings: Handshake,
        negotiated: Negotiated,
        owner: Owner,
    ) -> Arc<Self> {
        Self::with(endpoint, settings, negotiated, owner, None, false)
    }

    fn with(
        endpoint: &Endpoint,
        settings: Handshake,
        negotiated: Negotiated,
        owner: Owner,
        first_id: Option<i64>,
        shared: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoint: endpoint.clone(),
            negotiated,
            settings,
            can_be_asked: first_id.is_some(),
            shared,
            has_stream: AtomicBool::new(first_id.is_some() && !shared),
            owner,
            level: Mutex::new(LoggingLevel::Info),
            first_id: first_id.unwrap_or(0),
            next_id: AtomicI64::new(first_id.unwrap_or(0)),
            waiting: Mutex::default(),
            subscription: Mutex::default(),
            #[cfg(feature = "opentelemetry")]
            timer: OnceLock::new(),
        })
    }

    /// Measures the session until its end, if the server has telemetry.
    #[cfg(feature = "opentelemetry")]
    pub(super) fn measure(&self, network: Option<&Network>) {
        if let (Some(telemetry), Some(network)) = (self.endpoint.telemetry(), network) {
            self.timer.get_or_init(|| SessionTimer::server(telemetry, self.negotiated.version, network));
        }
    }

    /// Handles a request. Its messages, but not its answer, go to `sink`.
    pub(super) fn request(
        self: &Arc<Self>,
        request: &Request<'_>,
        peer: &Peer,
        sink: &Arc<dyn Sink>,
    ) -> Handled {
        let outcome = match &*request.method {
            PING => Ok(()),
            SET_LEVEL if self.endpoint.capabilities().logging.is_some() => {
                self.is_here().and_then(|()| self.set_level(request.params))
            }
            SUBSCRIBE if self.endpoint.capabilities().resources.is_some() => {
                self.is_here().and_then(|()| self.watch(request.params, peer))
            }
            UNSUBSCRIBE => self.is_here().and_then(|()| self.unwatch(request.params)),
            INITIALIZE => Err(ErrorObject::invalid_request("this session has been initialized already")),
            unknown @ (Discover::NAME | SubscriptionsListen::NAME | SET_LEVEL | SUBSCRIBE) => {
                Err(ErrorObject::method_not_found(unknown))
            }
            unknown if unknown.starts_with("tasks/") && !self.has_task_method(unknown) => {
                Err(ErrorObject::method_not_found(unknown))
            }
            _ => {
                let params = self.negotiated.modern(request.params, Some(*lock(&self.level)));
                match params {
                    Ok(params) => {
                        let calling = Calling::new(self, request, params, peer, sink);
                        return Handled::Call(Box::pin(calling.run()));
                    }
                    Err(error) => Err(error),
                }
            }
        };
        Handled::Now(answer(&request.id, outcome.map(|()| json!({}))))
    }

    /// Returns whether messages outside of any call can be sent from this process.
    pub(super) fn has_stream(&self) -> bool {
        self.has_stream.load(Ordering::Relaxed)
    }

    /// Takes note that the stream of messages outside of any call is opened at this process.
    pub(super) fn set_has_stream(&self) {
        self.has_stream.store(true, Ordering::Relaxed);
    }

    /// Checks that settings of the session count here: they do where its stream is.
    fn is_here(&self) -> Result<(), ErrorObject> {
        if self.shared && !self.has_stream() {
            return Err(affinity(
                "the stream of this session is not at this instance: open it here with GET",
            ));
        }
        Ok(())
    }

    /// Returns a random number of this state of the session, which tells its events from those of other instances.
    pub(super) fn tag(&self) -> i64 {
        self.first_id >> FIRST_ID_SHIFT
    }

    /// Returns whether the session has the tasks of 2025-11-25.
    pub(super) fn has_tasks(&self) -> bool {
        self.negotiated.version.has_experimental_tasks() && self.endpoint.inner().tasks.is_some()
    }

    fn has_task_method(&self, method: &str) -> bool {
        self.has_tasks()
            && [GetTask::NAME, TaskPayload::NAME, CancelTask::NAME, ListTasks::NAME].contains(&method)
    }

    /// Returns the id for a request of a call to the client.
    pub(super) fn expect_answer(&self, questions: &Arc<Questions>) -> i64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&self.waiting).insert(id, Arc::downgrade(questions));
        id
    }

    pub(super) fn forget_answer(&self, id: i64) {
        lock(&self.waiting).remove(&id);
    }

    /// Hands an answer to the call that waits for it. The call may have just ended.
    pub(super) fn answer(&self, id: i64, answer: Answer) {
        let questions = lock(&self.waiting).remove(&id);
        if let Some(questions) = questions.and_then(|questions| questions.upgrade()) {
            questions.settle(id, answer);
        }
    }

    /// Fails all waiting requests: there will be no more responses.
    pub(super) fn hang_up(&self) {
        let waiting: Vec<i64> = lock(&self.waiting).keys().copied().collect();
        waiting.into_iter().for_each(|id| self.answer(id, Err("the session has ended".to_owned())));
    }

    /// Handles a response of the client. A response to a request that was never sent is refused; a late one is not.
    pub(super) fn response(&self, response: roundtrip_core::wire::Response<'_>) -> Result<(), ErrorObject> {
        match response.id {
            Some(RequestId::Number(id))
                if (self.first_id..self.next_id.load(Ordering::Relaxed)).contains(&id) =>
            {
                self.answer(id, response.outcome.map(Raw::from).map_err(|error| error.to_string()));
                Ok(())
            }
            _ if self.shared => Err(asked_elsewhere()),
            _ => Err(ErrorObject::invalid_request("this session has not sent a request of this id")),
        }
    }

    fn set_level(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        #[derive(Deserialize)]
        struct Params {
            level: LoggingLevel,
        }
        let Params { level } = decode_params(params)?;
        *lock(&self.level) = level;
        Ok(())
    }

    fn watch(&self, params: Option<&RawValue>, peer: &Peer) -> Result<(), ErrorObject> {
        if !self.can_be_asked {
            return Err(ErrorObject::invalid_request(
                "without a session there is no stream to send changes on",
            ));
        }
        let uri = uri_of(params)?;
        if uri.len() > LONGEST_URI {
            return Err(ErrorObject::invalid_params(format!(
                "params.uri: at most {LONGEST_URI} bytes to be watched"
            )));
        }
        self.subscription()?.watch(&uri, self.negotiated.viewer(peer))
    }

    fn unwatch(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let uri = uri_of(params)?;
        if let Some(subscription) = &*lock(&self.subscription) {
            subscription.unwatch(&uri);
        }
        Ok(())
    }

    /// Returns the client's subscription: every list, and the resources it asks for.
    pub(super) fn subscription(&self) -> Result<Arc<Subscription>, ErrorObject> {
        let mut subscription = lock(&self.subscription);
        if let Some(open) = &*subscription {
            return Ok(Arc::clone(open));
        }
        let everything = SubscriptionFilter {
            tools_list_changed: Some(true),
            prompts_list_changed: Some(true),
            resources_list_changed: Some(true),
            ..SubscriptionFilter::default()
        };
        let hub = self.endpoint.catalog().hub();
        let open = Arc::new(hub.open(&self.owner, None, self.endpoint.honoured(&everything), None)?);
        *subscription = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Returns the next change; `None` once the server has ended.
    pub(super) async fn change(subscription: &Subscription) -> Option<Vec<u8>> {
        poll_fn(|cx| {
            if subscription.poll_closed(cx).is_ready() {
                return std::task::Poll::Ready(None);
            }
            subscription.poll_next(cx).map(Some)
        })
        .await
    }
}

/// Bits of a request's id that count the requests of a session.
const FIRST_ID_SHIFT: u32 = 16;

fn first_id() -> Result<i64, ErrorObject> {
    Ok(i64::from(u32::from_le_bytes(random()?)) << FIRST_ID_SHIFT)
}

/// Returns the error for a message that has to reach another instance, with the remedy.
pub(super) fn affinity(why: &str) -> ErrorObject {
    ErrorObject::invalid_request(format!(
        "{why}; behind a load balancer, route each session to one instance (affinity by mcp-session-id)"
    ))
}

/// Returns the error for an answer to a question that this process has not asked.
pub(super) fn asked_elsewhere() -> ErrorObject {
    affinity("this instance has not sent a request of this id: the answer belongs to the instance that asked")
}

fn uri_of(params: Option<&RawValue>) -> Result<String, ErrorObject> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    decode_params::<Params>(params).map(|params| params.uri)
}

/// Encodes one answer.
pub(super) fn answer(id: &RequestId, outcome: Result<impl serde::Serialize, ErrorObject>) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    let failed = match outcome {
        Ok(result) => match encode_result(&mut message, id, &result) {
            Ok(()) => return message,
            Err(error) => ErrorObject::internal(format!("the result does not serialise: {error}")),
        },
        Err(error) => error,
    };
    encode_error(&mut message, Some(id), &failed);
    message
}
