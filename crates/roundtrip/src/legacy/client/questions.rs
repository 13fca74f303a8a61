//! Requests of the server's own that come beside a call, and the call they are for.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use roundtrip_core::wire::RequestId;
use tokio::sync::mpsc;

use super::link::Link;
use super::session::Session;

/// How many of them may wait for a call to take them up.
const CAPACITY: usize = 64;

type Asked = HashMap<RequestId, mpsc::Sender<Bytes>>;

fn asked<L: Link>(session: &Session<L>) -> MutexGuard<'_, Asked> {
    session.asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a call finds the questions that came beside it.
pub(super) struct Questions<L: Link> {
    session: Arc<Session<L>>,
    id: RequestId,
    receiver: mpsc::Receiver<Bytes>,
}

impl<L: Link> Questions<L> {
    pub(super) fn of(session: &Arc<Session<L>>, id: &RequestId) -> Self {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        asked(session).insert(id.clone(), sender);
        Self { session: Arc::clone(session), id: id.clone(), receiver }
    }

    /// The next one, for as long as the call is open.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.receiver.recv().await
    }
}

impl<L: Link> Drop for Questions<L> {
    fn drop(&mut self) {
        asked(&self.session).remove(&self.id);
    }
}

/// Gives a request of the server's own to the one call it can be for. Where there is none, or more than one, or the call
/// has too many already, it is for nobody.
pub(super) fn belongs_to_a_call<L: Link>(session: &Session<L>, request: &Bytes) -> bool {
    let asked = asked(session);
    let mut calls = asked.values();
    match (calls.next(), calls.next()) {
        (Some(call), None) => call.try_send(request.clone()).is_ok(),
        _ => false,
    }
}
