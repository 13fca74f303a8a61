//! Session of the handshake eras on stdio: the connection is the session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use roundtrip_core::wire::{
    ErrorObject, INVALID_PARAMS, Notification, ProtocolVersion, Raw, Request, Response, decode_batch,
    peek_version,
};
use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use super::negotiated::Negotiated;
use super::session::{Handled, LONGEST_BATCH, Session, Sink, answer};
use crate::legacy::handshake::{INITIALIZE, INITIALIZED, PING};
use crate::server::{Endpoint, Handshake, Owner, Peer, Served, Subscription};

/// Changes sent to the client outside of any call. A change that was not sent yet is sent once, however often it
/// occurs.
pub(crate) struct Changes(Arc<Subscription>);

impl Changes {
    /// Returns the next message; `None` once the server has ended.
    pub(crate) async fn next(&self) -> Option<Vec<u8>> {
        Session::change(&self.0).await
    }
}

/// Session of the handshake eras on one connection. It begins with `initialize`.
pub(crate) struct StdioSession {
    endpoint: Endpoint,
    settings: Handshake,
    session: OnceLock<Arc<Session>>,
    /// True once the client gets changes.
    listening: AtomicBool,
    /// Task that sends them.
    telling: OnceLock<AbortHandle>,
}

impl StdioSession {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            settings: endpoint.inner().handshake,
            session: OnceLock::new(),
            listening: AtomicBool::new(false),
            telling: OnceLock::new(),
        }
    }

    /// Returns whether a session has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.session.get().is_some()
    }

    /// Returns whether a request belongs to a handshake revision: it begins a session or is within one, and names no
    /// modern revision.
    pub(crate) fn takes(&self, request: &Request<'_>) -> bool {
        let begins = matches!(&*request.method, INITIALIZE | PING) && self.settings.served != Served::Refused;
        (begins || self.has_begun()) && peek_version(request.params).is_none()
    }

    /// Explains the refusal of a request that is neither modern nor in a session: the client can do either.
    pub(crate) fn explain(&self, request: &Request<'_>, mut error: ErrorObject) -> ErrorObject {
        let lost = self.settings.served != Served::Refused && !self.has_begun();
        if lost && error.code == INVALID_PARAMS && peek_version(request.params).is_none() {
            error.message =
                format!("{}; a client of an earlier revision begins with `initialize`", error.message).into();
        }
        error
    }

    /// Handles a request. Its messages, but not its answer, go to `sink`.
    pub(crate) fn request(&self, request: &Request<'_>, peer: &Peer, sink: &Arc<dyn Sink>) -> Handled {
        match self.session.get() {
            Some(session) => session.request(request, peer, sink),
            None if request.method == PING => Handled::Now(answer(&request.id, Ok(serde_json::json!({})))),
            None => Handled::Now(answer(&request.id, self.initialize(request, peer))),
        }
    }

    fn initialize(&self, request: &Request<'_>, peer: &Peer) -> Result<Raw, ErrorObject> {
        let lists_tasks = peer.principal.is_some() || peer.is_only;
        let (negotiated, agreed) =
            Negotiated::agree(&self.endpoint, request.params, ProtocolVersion::V2024_11_05, lists_tasks)?;
        let session = Session::new(&self.endpoint, self.settings, negotiated, Owner::of(peer))?;
        #[cfg(feature = "opentelemetry")]
        session.measure(peer.extensions.get());
        // Lines are read one after the other: no other request sets this meanwhile.
        let _ = self.session.set(session);
        Ok(agreed)
    }

    /// Handles a notification. The returned changes are to be sent as long as the connection is open.
    pub(crate) fn notification(&self, notification: &Notification<'_>) -> Option<Changes> {
        if notification.method != INITIALIZED || self.listening.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.session.get()?.subscription().ok().map(Changes)
    }

    /// Splits a batch into its messages, which 2025-03-26 has and no other revision.
    pub(crate) fn batch<'a>(&self, line: &'a [u8]) -> Option<Vec<&'a RawValue>> {
        let version = self.session.get()?.negotiated.version;
        if version != ProtocolVersion::V2025_03_26 {
            return None;
        }
        let messages = decode_batch(line, LONGEST_BATCH).ok()?;
        // A batch within a batch is not a message, and would be split without end.
        let flat = messages.iter().all(|message| !message.get().starts_with('['));
        (flat && !messages.is_empty()).then_some(messages)
    }

    /// Keeps the task that sends changes, to end it with the session.
    pub(crate) fn tells(&self, task: AbortHandle) {
        // Changes are given out once, so there is one task.
        let _ = self.telling.set(task);
    }

    /// Ends the session: no more changes are sent, and waiting requests fail because no more responses arrive.
    pub(crate) fn hang_up(&self) {
        self.telling.get().into_iter().for_each(AbortHandle::abort);
        if let Some(session) = self.session.get() {
            session.hang_up();
        }
    }

    /// Handles a response of the client.
    pub(crate) fn response(&self, response: Response<'_>) {
        if let Some(Err(error)) = self.session.get().map(|session| session.response(response)) {
            tracing::debug!(%error, "a response is ignored");
        }
    }
}
