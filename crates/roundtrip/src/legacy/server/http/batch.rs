//! Batches of messages (2025-03-26).

use std::sync::Arc;

use http::StatusCode;
use roundtrip_core::wire::{ErrorObject, Message};

use super::endpoint::{LegacyHttp, Taken, peer, tell, weight};
use super::event_body::{EventBody, Owner};
use super::head::{Arrival, UNSAID, stated_version};
use super::reply::{Refusal, Reply, events, refuse};
use super::stream::Finish;
use crate::legacy::server::session::{Handled, Sink, Weight, answer};

impl LegacyHttp {
    /// Handles a batch, which 2025-03-26 has and no other revision.
    pub(crate) fn batch(&self, arrival: &Arrival<'_>, messages: Vec<Message<'_>>) -> Taken {
        Taken::Reply(self.take_batch(arrival, messages).unwrap_or_else(|refused| refused))
    }

    fn take_batch(&self, arrival: &Arrival<'_>, messages: Vec<Message<'_>>) -> Result<Reply, Refusal> {
        stated_version(arrival.headers)?;
        let session =
            self.session(arrival, None)?.filter(|session| session.session.negotiated.version == UNSAID);
        let Some(session) = session else {
            let error = ErrorObject::invalid_request("this revision has no batches: send one message");
            return Err(refuse(StatusCode::BAD_REQUEST, None, &error));
        };
        if !arrival.accepts.streams {
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
        let owner = Owner::Session { _present: session, changes: None };
        Ok(events(EventBody::new(stream, Some(0), false, arrival.accepts.keep_alive, owner)))
    }
}
