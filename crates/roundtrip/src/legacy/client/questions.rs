//! Requests of the server's own that come beside a call, and the call they are for.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use roundtrip_core::wire::{Message, RequestId};
use tokio::sync::mpsc;

use super::call::given_up;
use super::link::Link;
use super::request::Hello;
use super::session::{Session, in_background};
use crate::client::Responder;

/// How many of them may wait for a call to take them up.
const CAPACITY: usize = 64;

/// The calls of a session that may be asked something.
pub(super) type AskableCalls = HashMap<RequestId, Call>;

/// One of them.
pub(super) struct Call {
    sender: mpsc::Sender<Bytes>,
    /// Who made it.
    hello: Hello,
    /// Whether it waits for answers, and not for the server.
    waits: bool,
}

fn asked<L: Link>(session: &Session<L>) -> MutexGuard<'_, AskableCalls> {
    session.asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a call finds the questions that came beside it.
pub(super) struct Delivery<L: Link> {
    session: Arc<Session<L>>,
    id: RequestId,
    receiver: mpsc::Receiver<Bytes>,
}

impl<L: Link> Delivery<L> {
    pub(super) fn of(session: &Arc<Session<L>>, id: &RequestId, hello: &Hello) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        asked(session).insert(id.clone(), Call { sender, hello: hello.clone(), waits: false });
        Self { session: Arc::clone(session), id: id.clone(), receiver }
    }

    /// Says whether the call waits for answers.
    pub(super) fn waits(&self, waits: bool) {
        if let Some(call) = asked(&self.session).get_mut(&self.id) {
            call.waits = waits;
        }
    }

    /// The next one, for as long as the call is open.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.receiver.recv().await
    }
}

impl<L: Link> Drop for Delivery<L> {
    fn drop(&mut self) {
        asked(&self.session).remove(&self.id);
        // What came too late to be taken up must not keep the server waiting.
        while let Ok(message) = self.receiver.try_recv() {
            let Ok(Message::Request(request)) = Message::decode(&message) else { continue };
            let (session, id) = (Arc::clone(&self.session), request.id);
            in_background(async move { drop(session.respond(&id, Err(&given_up())).await) });
        }
    }
}

/// The caller of a call under way, who may well be who is asked; otherwise who called last.
pub(super) fn responder_outside_calls<L: Link>(session: &Session<L>) -> (Hello, Option<Responder>) {
    let calling = |call: &Call| Some((call.hello.clone(), Some(call.hello.asker.responder()?)));
    let found = asked(session).values().find_map(calling);
    found.unwrap_or_else(|| {
        let hello = session.caller();
        let responder = hello.asker.responder();
        (hello, responder)
    })
}

/// Gives a request of the server's own to the one call it can be for: the only one that waits for the server, or the only
/// one there is. Otherwise, and where that call has too many already, it is for nobody.
pub(super) fn belongs_to_a_call<L: Link>(session: &Session<L>, request: &Bytes) -> bool {
    let asked = asked(session);
    let mut active = asked.values().filter(|call| !call.waits);
    let only = match (active.next(), active.next()) {
        (Some(call), None) => Some(call),
        (None, _) if asked.len() == 1 => asked.values().next(),
        _ => None,
    };
    only.is_some_and(|call| call.sender.try_send(request.clone()).is_ok())
}
