//! Standard input and output: the pipe is the session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use roundtrip_core::wire::{
    ErrorObject, INVALID_PARAMS, Notification, ProtocolVersion, Raw, Request, Response, decode_batch,
    peek_version,
};

use serde_json::value::RawValue;

use super::negotiated::Negotiated;
use super::session::{Handled, LONGEST_BATCH, Session, answer};
use super::settings::{Handshake, Served};
use super::sink::Sink;
use crate::legacy::handshake::{INITIALIZE, INITIALIZED, PING, refusal};
use crate::server::{Endpoint, Owner, Peer, Subscription};

/// Changes that a client is told of outside of any call. What is not taken yet is told once, however often it changes.
pub(crate) struct Changes(Arc<Subscription>);

impl Changes {
    /// The next message; none once the server has ended.
    pub(crate) async fn next(&self) -> Option<Vec<u8>> {
        Session::change(&self.0).await
    }
}

/// The old side of a pipe, which begins with `initialize`.
pub(crate) struct StdioSession {
    endpoint: Endpoint,
    settings: Handshake,
    session: OnceLock<Arc<Session>>,
    /// Whether the client is told of changes already.
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

    /// Whether a request that is not one of ours speaks an old revision: it says nothing of a new one.
    pub(crate) fn takes(&self, request: &Request<'_>) -> bool {
        let begins = match &*request.method {
            INITIALIZE => true,
            PING => self.settings.served != Served::Refused,
            _ => false,
        };
        peek_version(request.params).is_none() && (begins || self.session.get().is_some())
    }

    /// A refusal of a request that is neither modern nor within a session: which of the two is up to the client.
    pub(crate) fn explain(&self, request: &Request<'_>, mut error: ErrorObject) -> ErrorObject {
        let lost = self.settings.served != Served::Refused && self.session.get().is_none();
        if lost && error.code == INVALID_PARAMS && peek_version(request.params).is_none() {
            error.message =
                format!("{}; a client of an earlier revision begins with `initialize`", error.message).into();
        }
        error
    }

    /// Takes a request. Its messages, but not its answer, go to `sink`.
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
        let (terms, agreed) =
            Negotiated::agree(&self.endpoint, request.params, ProtocolVersion::V2024_11_05)?;
        let session = Session::new(&self.endpoint, self.settings, terms, Owner::of(peer))?;
        // Lines are read one after the other: nobody else is about to set this.
        let _ = self.session.set(session);
        Ok(agreed)
    }

    /// Takes a notification. What comes back is to be told while the pipe is open.
    pub(crate) fn notification(&self, notification: &Notification<'_>) -> Option<Changes> {
        if notification.method != INITIALIZED || self.listening.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.session.get()?.subscription().ok().map(Changes)
    }

    /// The messages of a line that holds several, which 2025-03-26 has and no other revision.
    pub(crate) fn batch<'a>(&self, line: &'a [u8]) -> Option<Vec<&'a RawValue>> {
        let version = self.session.get()?.terms.version;
        if version != ProtocolVersion::V2025_03_26 {
            return None;
        }
        let messages = decode_batch(line, LONGEST_BATCH).ok()?;
        // One that holds another is not a message, and would be taken apart for ever.
        let flat = messages.iter().all(|message| !message.get().starts_with('['));
        (flat && !messages.is_empty()).then_some(messages)
    }

    /// Nobody answers any more.
    pub(crate) fn hang_up(&self) {
        if let Some(session) = self.session.get() {
            session.hang_up();
        }
    }

    /// Takes a response of the client.
    pub(crate) fn response(&self, response: Response<'_>) {
        let taken = match self.session.get() {
            Some(session) => session.response(response),
            None => Err(ErrorObject::invalid_request("nothing was asked")),
        };
        if let Err(error) = taken {
            tracing::debug!(%error, "a response is ignored");
        }
    }
}
