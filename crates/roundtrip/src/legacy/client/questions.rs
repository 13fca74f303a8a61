//! Messages that a server sends outside of a call's stream, and the calls they are for: questions, and log messages.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use roundtrip_core::wire::{Message, RequestId, clip, json};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::call::given_up;
use super::link::SessionLink;
use super::request::{Hello, Request};
use super::session::{Session, in_background};
use crate::client::Handlers;
use crate::lock::lock;

/// Most messages that may wait for a call to take them.
const CAPACITY: usize = 64;
/// Places of these that log messages leave to questions.
const FOR_QUESTIONS: usize = 32;

/// Calls of a session that can be asked questions.
pub(super) type AskableCalls = HashMap<RequestId, Call>;

/// A call that can be asked questions.
pub(super) struct Call {
    sender: mpsc::Sender<Bytes>,
    /// Identity and settings of the caller.
    hello: Hello,
    /// True if it waits for answers, and not for the server.
    waits: bool,
    /// True if it asked for log messages.
    logs: bool,
    /// Task whose questions it waits for.
    task: Option<String>,
}

fn asked<L: SessionLink>(session: &Session<L>) -> MutexGuard<'_, AskableCalls> {
    lock(&session.asked)
}

/// Receiver for the messages of one call that arrive outside of its stream.
pub(super) struct Delivery<L: SessionLink> {
    session: Arc<Session<L>>,
    id: RequestId,
    receiver: mpsc::Receiver<Bytes>,
}

impl<L: SessionLink> Delivery<L> {
    pub(super) fn of(session: &Arc<Session<L>>, request: &Request) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let (hello, logs) = (request.hello.clone(), request.log_level.is_some());
        let call = Call { sender, hello, waits: false, logs, task: request.task() };
        asked(session).insert(request.id.clone(), call);
        Self { session: Arc::clone(session), id: request.id.clone(), receiver }
    }

    /// Sets whether the call waits for answers.
    pub(super) fn waits(&self, waits: bool) {
        if let Some(call) = asked(&self.session).get_mut(&self.id) {
            call.waits = waits;
        }
    }

    /// Returns the next message, as long as the call is open.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.receiver.recv().await
    }
}

impl<L: SessionLink> Drop for Delivery<L> {
    fn drop(&mut self) {
        let call = asked(&self.session).remove(&self.id);
        if call.is_some_and(|call| call.task.is_some()) {
            // A task asks again on its next stream.
            return;
        }
        // Questions that the call did not take must not keep the server waiting.
        while let Ok(message) = self.receiver.try_recv() {
            let Ok(Message::Request(request)) = Message::decode(&message) else { continue };
            tracing::debug!(
                method = &*clip(&request.method),
                "refused a question of the server: its call has ended"
            );
            let (session, id) = (Arc::clone(&self.session), request.id);
            in_background(async move { drop(session.respond(&id, Err(&given_up())).await) });
        }
    }
}

/// Returns the handlers for a question outside of calls: that of a call under way, which is likely the one meant;
/// otherwise of the last caller.
pub(super) fn handlers_outside_calls<L: SessionLink>(session: &Session<L>) -> (Hello, Option<Arc<Handlers>>) {
    let calling = |call: &Call| Some((call.hello.clone(), Some(call.hello.caller.handlers.upgrade()?)));
    let found = asked(session).values().find_map(calling);
    found.unwrap_or_else(|| {
        let hello = session.caller();
        let handlers = hello.caller.handlers.upgrade();
        (hello, handlers)
    })
}

/// Returns the number of calls that can be asked questions.
pub(super) fn calls_under_way<L: SessionLink>(session: &Session<L>) -> usize {
    asked(session).len()
}

/// Gives a question to the one call it can belong to: the one that waits for the task it names; the only one that waits for
/// the server, or the only one there is. Returns false if there is none, or that call has too many already.
pub(super) fn belongs_to_a_call<L: SessionLink>(session: &Session<L>, request: &Bytes) -> bool {
    let task = related_task(request);
    let asked = asked(session);
    let mut active = asked.values().filter(|call| call.task.is_none() && !call.waits);
    let only = match (active.next(), active.next()) {
        _ if task.is_some() => asked.values().find(|call| call.task == task),
        (Some(call), None) => Some(call),
        (None, _) if asked.len() == 1 => asked.values().next(),
        _ => None,
    };
    only.is_some_and(|call| call.sender.try_send(request.clone()).is_ok())
}

/// Returns the task that a question names in `_meta`.
fn related_task(request: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/related-task")]
        task: Related,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Related {
        task_id: String,
    }
    json::from_slice::<Asked>(request).ok().map(|asked| asked.params.meta.task.task_id)
}

/// Gives a log message, which does not name a call, to every call under way that asked for any.
pub(super) fn log_to_calls<L: SessionLink>(session: &Session<L>, message: &Bytes) {
    for call in asked(session).values().filter(|call| call.logs) {
        // A call that falls behind loses log messages, not questions.
        if call.sender.capacity() > FOR_QUESTIONS {
            let _ = call.sender.try_send(message.clone());
        }
    }
}
