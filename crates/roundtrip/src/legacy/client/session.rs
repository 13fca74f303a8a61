//! A session with a legacy server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    ClientCapabilities, ErrorObject, Implementation, LoggingLevel, ProtocolVersion, Raw, RequestId,
    encode_error, encode_request, encode_result,
};
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::call::{Event, OpenCall};
use super::link::{SessionFailure, SessionLink};
use super::listen::SharedStreamSlot;
use super::questions::{AskableCalls, Delivery};
use super::request::{Hello, Request, encoded};
use super::revisions::plain;
use super::server_request::Answering;
use super::task_support::{TASK, TaskTools};
use crate::client::{Closed, Error, Sent, Unreachable};
use crate::legacy::handshake::{InitializeResult, NEWEST, SET_LEVEL, within_revision};
use crate::lock::lock;
#[cfg(feature = "opentelemetry")]
use crate::telemetry::SessionTimer;

/// Longest time for a request of the session's own.
const ASIDE: Duration = Duration::from_secs(30);
/// Longest time for the server to end a session.
const ENDING: Duration = Duration::from_secs(5);
/// Longest time for work in the background.
const BACKGROUND: Duration = Duration::from_secs(60);

/// State that a session shares with its client.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) closed: Closed,
    pub(super) answering: Answering,
}

/// A session: begun by `initialize`, and shared by all its calls.
pub(super) struct Session<L: SessionLink> {
    pub(super) link: L,
    pub(super) at: L::At,
    pub(super) version: ProtocolVersion,
    /// Revision named in `initialize`: the capabilities declared are those it knows.
    offered: ProtocolVersion,
    /// True if the caller pinned that revision.
    pinned: bool,
    /// Capabilities declared in `initialize`.
    pub(super) declared: ClientCapabilities,
    pub(super) server: InitializeResult,
    /// Name of the server, by its own account.
    pub(super) name: Arc<Implementation>,
    /// The last caller, who is asked questions outside of any call.
    caller: Mutex<Hello>,
    /// Log level that the server was last sent.
    level: tokio::sync::Mutex<Option<LoggingLevel>>,
    /// Counts the session's own requests.
    asides: AtomicU64,
    /// Stream of messages that belong to no call.
    pub(super) shared_stream: tokio::sync::Mutex<SharedStreamSlot>,
    /// Number of listeners of each resource.
    pub(super) watched: Mutex<HashMap<String, usize>>,
    pub(super) asked: Mutex<AskableCalls>,
    /// True if tools of the server may be called as tasks.
    pub(super) has_tasks: bool,
    /// Tools that may be called as tasks, once they were listed.
    pub(super) task_tools: tokio::sync::Mutex<Option<TaskTools>>,
    /// Counter of the questions outside of any call.
    pub(super) answering: Answering,
    /// Signal that the session's client is closed.
    pub(super) closed: Closed,
    ended: AtomicBool,
    #[cfg(feature = "opentelemetry")]
    _timer: Option<SessionTimer>,
}

impl<L: SessionLink> Session<L> {
    pub(super) fn new(
        link: L,
        at: L::At,
        (offered, version): (ProtocolVersion, ProtocolVersion),
        hello: Hello,
        server: InitializeResult,
        life: Life,
    ) -> Self {
        Self {
            #[cfg(feature = "opentelemetry")]
            _timer: hello
                .caller
                .telemetry
                .as_ref()
                .map(|(telemetry, network)| SessionTimer::client(telemetry, version, network)),
            link,
            at,
            version,
            offered,
            pinned: hello.caller.pinned.is_some(),
            declared: within_revision(hello.capabilities.clone(), offered),
            name: Arc::new(server.server_info.clone()),
            server,
            caller: Mutex::new(hello),
            level: tokio::sync::Mutex::default(),
            asides: AtomicU64::new(0),
            shared_stream: tokio::sync::Mutex::default(),
            watched: Mutex::default(),
            asked: Mutex::default(),
            has_tasks: false,
            task_tools: tokio::sync::Mutex::default(),
            answering: life.answering,
            closed: life.closed,
            ended: AtomicBool::new(false),
        }
    }

    /// Returns whether a request can be made in this session: at its revision, and with all that it declares.
    pub(super) fn suits(&self, hello: &Hello) -> bool {
        let at_its_revision = match hello.caller.pinned {
            Some(pinned) => pinned == self.version && pinned == self.offered,
            // A pin of another caller does not bind a caller without one.
            None => !self.pinned || self.version == NEWEST,
        };
        at_its_revision && self.declared.covers(&self.askable(hello))
    }

    fn caller_place(&self) -> MutexGuard<'_, Hello> {
        lock(&self.caller)
    }

    /// Returns the last caller.
    pub(super) fn caller(&self) -> Hello {
        self.caller_place().clone()
    }

    pub(super) fn called_by(&self, hello: &Hello) {
        *self.caller_place() = hello.clone();
    }

    /// Returns the capabilities with which a caller can be asked in this session. A server that agreed on an earlier
    /// revision than offered was declared more than that revision knows: the declaration counts.
    pub(super) fn askable(&self, hello: &Hello) -> ClientCapabilities {
        within_revision(hello.capabilities.clone(), self.offered)
    }

    /// Sends a request; returns the open call.
    pub(super) async fn call(self: &Arc<Self>, request: &Request) -> Result<OpenCall<L>, SessionFailure> {
        self.called_by(&request.hello);
        self.set_level(request.log_level).await?;
        // A question may arrive before anything else.
        let questions = request.may_ask().then(|| Delivery::of(self, request));
        let message = request.legacy_message()?;
        self.listen_again();
        let mut call = OpenCall::new(self, request.id.clone(), request.hello.clone(), questions);
        call.is_task = request.params.get(TASK).is_some();
        if request.task().is_some() {
            call.asks_for_task()?;
        }
        call.send(self.link.request(&self.at, request.id.clone(), message)).await?;
        Ok(call)
    }

    /// Sets the log level: chosen per call in the modern era, and per session in the handshake eras.
    async fn set_level(self: &Arc<Self>, level: Option<LoggingLevel>) -> Result<(), SessionFailure> {
        let Some(level) = level.filter(|_| self.server.capabilities.logging.is_some()) else { return Ok(()) };
        let mut told = self.level.lock().await;
        if *told != Some(level) {
            match self.aside(SET_LEVEL, json!({ "level": level })).await {
                Ok(_) => {
                    *told = Some(level);
                    self.listen_if_offered().await;
                }
                Err(SessionFailure::Gone) => return Err(SessionFailure::Gone),
                Err(_) => tracing::debug!(?level, "the server refused the log level"),
            }
        }
        Ok(())
    }

    /// Sends a request of the session's own, and waits for its answer.
    pub(super) async fn aside(
        self: &Arc<Self>,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<Raw, SessionFailure> {
        let number = self.asides.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::from(format!("aside-{number}").as_str());
        let message = encoded(encode_request(&id, method, &params))?.into();
        let hello = self.caller();
        let work = async {
            let mut call = OpenCall::new(self, id.clone(), hello, None);
            call.send(self.link.request(&self.at, id, message)).await?;
            loop {
                match call.event().await? {
                    Event::Answer(answer) => return answer.map_err(|error| Error::from(error).into()),
                    Event::Notification(_) | Event::Asks(_) => {}
                }
            }
        };
        timeout(ASIDE, work).await.unwrap_or_else(|_| Err(Error::timeout(method, ASIDE).into()))
    }

    pub(super) async fn tell(&self, message: Bytes) -> Result<(), SessionFailure> {
        self.link.tell(&self.at, message).await
    }

    /// Responds to a request of the server.
    pub(super) async fn respond(
        &self,
        id: &RequestId,
        answer: Result<&Raw, &ErrorObject>,
    ) -> Result<(), SessionFailure> {
        let plain = answer.map(|answer| plain(answer, self.version));
        self.tell(response(id, plain.as_ref().map_err(|error| *error))).await
    }

    /// Ends the session, once.
    pub(super) async fn end(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            // A slow server is not waited for.
            let _ = timeout(ENDING, self.link.end(&self.at)).await;
        }
    }

    /// Marks the session as ended: there is nothing left to end.
    pub(super) fn lost(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl<L: SessionLink> Drop for Session<L> {
    fn drop(&mut self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            let (link, at) = (self.link.clone(), self.at.clone());
            in_background(async move { link.end(&at).await });
        }
    }
}

fn response(id: &RequestId, answer: Result<&Raw, &ErrorObject>) -> Bytes {
    let mut message = Vec::new();
    let refused = match answer {
        Ok(result) => {
            encode_result(&mut message, id, result).is_err().then(|| ErrorObject::internal("no answer"))
        }
        Err(error) => Some(error.clone()),
    };
    if let Some(error) = refused {
        encode_error(&mut message, Some(id), &error);
    }
    message.into()
}

/// Builds the error for a session that ended during a call.
pub(super) fn ended() -> Error {
    let why = "the session with the server ended while the call was under way";
    Error::unreachable(Unreachable::SessionEnded(why.to_owned()), Sent::Maybe)
}

/// Returns parameters that name one resource.
pub(super) fn named(uri: &str) -> Params {
    Params::from_iter([("uri", Raw::from(json!(uri)))])
}

/// Runs a future in the background, if there is a runtime.
pub(super) fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(timeout(BACKGROUND, work).await) });
    }
}
