//! Requests of the server's own that belong to no call, or to one that cannot be asked: the client's handlers answer
//! them where they come.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use roundtrip_core::wire::{ErrorObject, InputRequest, Raw, RequestId};
use serde_json::json;

use super::admit::Asked;
use super::link::{Failure, Link};
use super::session::Session;
use crate::client::{Error, Responder};

/// Counts the questions outside of any call that are with the handlers, over all sessions of a client.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering(Arc<AtomicUsize>);

/// Place of one question among them; given back when dropped.
struct Place(Answering);

impl Answering {
    fn begin(&self, most: usize) -> Option<Place> {
        let more = |answering: usize| (answering < most).then_some(answering + 1);
        let begun = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        begun.ok().map(|_| Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a request of the server's own. A question is answered beside what it came with, which goes on: people may
/// take longer over it than a call has time.
pub(super) async fn answer<L: Link>(
    session: &Arc<Session<L>>,
    responder: Option<Responder>,
    most: usize,
    id: &RequestId,
    asked: Asked,
) -> Result<(), Failure> {
    let answer = match (asked, responder) {
        (Asked::Ping, _) => Ok(Raw::from(json!({}))),
        (Asked::Refused(error), _) => Err(error),
        (Asked::Question(_), None) => Err(ErrorObject::internal("the client is gone")),
        (Asked::Question(question), Some(responder)) => match session.answering.begin(most) {
            Some(place) => {
                tokio::spawn(put(Arc::clone(session), responder, id.clone(), question, place));
                return Ok(());
            }
            // The caller waits until this is told, so that a server that floods us waits for itself.
            None => Err(ErrorObject::internal("too many questions at once")),
        },
    };
    session.respond(id, answer.as_ref()).await
}

/// Puts a question to the handlers, unless the client is closed first.
async fn put<L: Link>(
    session: Arc<Session<L>>,
    responder: Responder,
    id: RequestId,
    question: InputRequest,
    place: Place,
) {
    let answering = async {
        let answering = caught(responder.answer(question, Some(Arc::clone(&session.name))));
        let answer = answering.await.map_err(|error| {
            // What went wrong in here is not the server's business.
            tracing::warn!(%error, "a question of the server was left without an answer");
            ErrorObject::internal("the client could not answer this")
        });
        session.respond(&id, answer.as_ref()).await
    };
    // Where it cannot be told, there is nobody left to tell.
    let _ = session.closed.unless(answering).await;
    drop(place);
}

/// Turns a panic of a handler into an error: no caller is there to see it, and the server waits for an answer.
async fn caught<T>(answering: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut answering = pin!(answering);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(Error::ApiMisuse("a handler panicked".to_owned()))))
    })
    .await
}
