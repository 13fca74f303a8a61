//! Hand-over to the handshake eras: messages that are not modern, and their answers.

use std::sync::Arc;

use roundtrip_core::wire::{Malformed, Message, Notification, Request};

use super::calls::Place;
use super::lines::{Line, end_line};
use super::serve::{Session, refuse};
pub(super) use crate::legacy::server::StdioSession;
use crate::legacy::server::{Handled, Sink, Weight};

impl Session<'_> {
    /// Answers a request of the handshake eras.
    pub(super) fn legacy_request(&self, request: &Request<'_>, answers: &mut Vec<u8>) {
        let place = self.place(&request.id);
        let sink: Arc<dyn Sink> = Arc::new(place.clone());
        match self.legacy.request(request, self.peer, &sink) {
            Handled::Now(answer) => answers.extend_from_slice(&line(answer)),
            Handled::Call(call) => {
                let own = place.clone();
                self.spawn(&place, false, async move { own.end(&line(call.await)) }, answers);
            }
        }
    }

    /// Handles a line of a session that is not a request.
    pub(super) fn session_line(
        &self,
        line: &[u8],
        message: Result<Message<'_>, Malformed>,
        answers: &mut Vec<u8>,
    ) {
        match message {
            Ok(Message::Request(request)) => self.request(request, answers),
            Ok(Message::Notification(notification)) => self.legacy_notification(&notification, answers),
            Ok(Message::Response(response)) => self.legacy.response(response),
            Err(malformed) => match self.legacy.batch(line) {
                Some(messages) => {
                    for message in messages {
                        self.line(Line::Whole(message.get().as_bytes()), answers);
                    }
                }
                None => refuse(answers, malformed.id.as_ref(), &malformed.error),
            },
        }
    }

    /// Handles a notification of the handshake eras. A task it starts runs as long as the connection is open.
    fn legacy_notification(&self, notification: &Notification<'_>, answers: &mut Vec<u8>) {
        let Some(changes) = self.legacy.notification(notification) else { return };
        // The handshake's answer goes out before anything else.
        self.send(answers);
        let outgoing = Arc::clone(&self.outgoing);
        let telling = tokio::spawn(async move {
            loop {
                // Changes must not be dropped: they are taken once the reader has caught up.
                outgoing.calm().await;
                let Some(change) = changes.next().await else { return };
                outgoing.push(&line(change));
            }
        });
        self.legacy.tells(telling.abort_handle());
    }
}

/// Returns a message as a line.
fn line(mut message: Vec<u8>) -> Vec<u8> {
    end_line(&mut message, 0);
    message
}

/// Writes the lines of one call until it is cancelled (I2).
impl Sink for Place {
    fn send(&self, message: Vec<u8>, weight: Weight) {
        let line = line(message);
        match weight {
            Weight::Hint => self.send_hint(&line),
            Weight::TakeBack => self.outgoing.push(&line),
            Weight::Must | Weight::Answer => Self::send(self, &line),
        }
    }
}
