//! Session of the handshake eras on stdio: the connection is the session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use roundtrip_core::wire::{
    ErrorObject, INVALID_PARAMS, Notification, ProtocolVersion, Raw, Request, Response, decode_batch,
    peek_version,
};

use serde_json::value::RawValue;

use super::negotiated::Negotiated;
use super::session::{Handled, LONGEST_BATCH, Session, Sink, answer};
use super::settings::{Handshake, Served};
use crate::legacy::handshake::{INITIALIZE, INITIALIZED, PING, refusal};
use crate::server::{Endpoint, Owner, Peer, Subscription};

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
}

impl StdioSession {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            settings: Handshake::of(endpoint),
            session: OnceLock::new(),
            listening: AtomicBool::new(false),
        }
    }

    /// Returns whether a request that is not modern belongs to a handshake revision: it names no modern one.
    pub(crate) fn takes(&self, request: &Request<'_>) -> bool {
        let begins = match &*request.method {
            INITIALIZE => true,
            PING => self.settings.served != Served::Refused,
            _ => false,
        };
        peek_version(request.params).is_none() && (begins || self.session.get().is_some())
    }

    /// Explains the refusal of a request that is neither modern nor in a session: the client can do either.
    pub(crate) fn explain(&self, request: &Request<'_>, mut error: ErrorObject) -> ErrorObject {
        let lost = self.settings.served != Served::Refused && self.session.get().is_none();
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
        if self.settings.served == Served::Refused {
            return Err(refusal(request.params));
        }
        let (negotiated, agreed) =
            Negotiated::agree(&self.endpoint, request.params, ProtocolVersion::V2024_11_05)?;
        let session = Session::new(&self.endpoint, self.settings, negotiated, Owner::of(peer))?;
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

    /// Fails all waiting requests: the client sends no more responses.
    pub(crate) fn hang_up(&self) {
        if let Some(session) = self.session.get() {
            session.hang_up();
        }
    }

    /// Handles a response of the client.
    pub(crate) fn response(&self, response: Response<'_>) {
        let taken = match self.session.get() {
            Some(session) => session.response(response),
            None => Err(ErrorObject::invalid_request("the server has sent no request")),
        };
        if let Err(error) = taken {
            tracing::debug!(%error, "a response is ignored");
        }
    }
}
