//! Batches of messages (2025-03-26).

use std::sync::Arc;

use http::StatusCode;
use roundtrip_core::wire::{ErrorObject, Message, decode_batch};

use super::endpoint::{LegacyHttp, peer, tell, weight};
use super::event_body::{EventBody, Owner};
use super::head::{Arrival, UNSAID};
use super::reply::{Refusal, Reply, events, refuse};
use super::sessions::Present;
use super::stream::Finish;
use crate::legacy::server::session::{Handled, LONGEST_BATCH, Sink, Weight, answer};

impl LegacyHttp {
    /// Handles a batch, which 2025-03-26 has and no other revision.
    pub(super) fn batch(&self, arrival: &Arrival<'_>, bytes: &[u8]) -> Result<Reply, Refusal> {
        let wrong =
            |why: &'static str| refuse(StatusCode::BAD_REQUEST, None, &ErrorObject::invalid_request(why));
        let session =
            self.session(arrival, None)?.filter(|session| session.session.negotiated.version == UNSAID);
        let Some(session) = session else {
            return Err(wrong("this revision has no batches: send one message"));
        };
        let messages = decode_batch(bytes, LONGEST_BATCH);
        let messages = messages.map_err(|_| wrong("a batch is a list of at most 100 messages"))?;
        if messages.is_empty() {
            return Err(wrong("a batch has at least one message, and at most 100"));
        }
        // All messages are decoded before any is handled.
        let messages: Vec<Message<'_>> = messages
            .into_iter()
            .map(|message| Message::decode(message.get().as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("every entry of a batch is a message"))?;
        if !arrival.streams {
            let error =
                ErrorObject::invalid_request("a batch is answered by a stream: accept text/event-stream");
            return Err(refuse(StatusCode::NOT_ACCEPTABLE, None, &error));
        }
        let stream = session.stream();
        let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
        let finish = Arc::new(Finish(Arc::clone(&stream)));
        let mut asked = false;
        for message in messages {
            let request = match message {
                Message::Request(request) => request,
                other => {
                    // A refused message does not stop the others.
                    let _ = tell(&session, other);
                    continue;
                }
            };
            asked = true;
            let call = match session.session.request(&request, &peer(arrival, &session, &stream), &sink) {
                Handled::Now(answer) => {
                    stream.send(answer, Weight::Answer);
                    continue;
                }
                Handled::Call(call) => call,
            };
            match session.reserve(&request.id, stream.number, weight(&request)) {
                Ok(()) => session.spawn(&request.id, Arc::clone(&finish), call),
                Err(error) => stream.send(answer(&request.id, Err::<(), _>(error)), Weight::Answer),
            }
        }
        drop(finish);
        if !asked {
            return Ok(Reply::Bare(StatusCode::ACCEPTED));
        }
        let owner = Owner::Session { _present: Present::new(&session), changes: None };
        Ok(events(EventBody::new(stream, Some(0), false, arrival.keep_alive, owner)))
    }
}
