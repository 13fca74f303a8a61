//! The door to the handshake eras: what is not a modern message, and how its answer goes out.

use std::sync::Arc;

use roundtrip_core::wire::{Notification, Request, RequestId};

use super::lines::end_line;
use super::outgoing::Outgoing;
use super::serve::{Calls, Session};
pub(super) use crate::legacy::server::Pipe;
use crate::legacy::server::{Handled, Sink, Weight};

impl Session<'_> {
    /// A request of an old revision.
    pub(super) fn old_request(&self, request: &Request<'_>, answers: &mut Vec<u8>) {
        let (calls, outgoing, id) = (Arc::clone(&self.calls), Arc::clone(&self.outgoing), request.id.clone());
        let lines = CallLines { calls: Arc::clone(&calls), outgoing: Arc::clone(&outgoing), id: id.clone() };
        let sink: Arc<dyn Sink> = Arc::new(lines);
        match self.old.request(request, self.peer, &sink) {
            Handled::Now(answer) => {
                answers.extend_from_slice(&line(answer));
            }
            Handled::Call(call) => {
                let own = id.clone();
                let run = async move {
                    let line = line(call.await);
                    calls.end(&own, &outgoing, &line);
                };
                self.spawn(id, false, run, answers);
            }
        }
    }

    /// A notification of an old revision: what it sets going goes on for as long as the pipe is open.
    pub(super) fn old_notification(&self, notification: &Notification<'_>) {
        let Some(changes) = self.old.notification(notification) else { return };
        let outgoing = Arc::clone(&self.outgoing);
        let telling = tokio::spawn(async move {
            loop {
                // Changes must not be left out: they are taken when somebody keeps up.
                outgoing.calm().await;
                let Some(change) = changes.next().await else { return };
                outgoing.push(&line(change));
            }
        });
        self.calls.listen(Some(telling.abort_handle()));
    }
}

/// A message as a line.
fn line(mut message: Vec<u8>) -> Vec<u8> {
    end_line(&mut message, 0);
    message
}

/// The lines of one call, for as long as it has not been cancelled (I2).
struct CallLines {
    calls: Arc<Calls>,
    outgoing: Arc<Outgoing>,
    id: RequestId,
}

impl Sink for CallLines {
    fn send(&self, message: Vec<u8>, weight: Weight) {
        let line = line(message);
        let running = self.calls.running();
        if weight != Weight::TakeBack && !running.contains_key(&self.id) {
            return;
        }
        match weight {
            Weight::Hint => self.outgoing.push_hint(&line),
            _ => self.outgoing.push(&line),
        }
    }
}
