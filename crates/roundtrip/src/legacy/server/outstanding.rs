//! Server-to-client requests of one call that await a response.

use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use roundtrip_core::wire::{InputRequest, InputRequests, Raw, encode_cancelled};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::question;
use super::session::{Reply, Session, Sink, Weight};

/// Questions of one call that await an answer.
pub(super) struct Outstanding {
    session: Arc<Session>,
    sink: Arc<dyn Sink>,
    open: Vec<Open>,
}

/// A question that awaits an answer.
struct Open {
    key: String,
    id: i64,
    reply: oneshot::Receiver<Reply>,
    within: Duration,
    until: Instant,
}

/// An answer, or the reason why there is none.
pub(super) type Answer = Result<Raw, String>;

impl Outstanding {
    pub(super) fn new(session: &Arc<Session>, sink: &Arc<dyn Sink>) -> Self {
        Self { session: Arc::clone(session), sink: Arc::clone(sink), open: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Sends a question to the client.
    pub(super) fn put(&mut self, key: &str, request: InputRequest) {
        self.put_within(key, request, self.session.settings.answer_within);
    }

    fn put_within(&mut self, key: &str, request: InputRequest, within: Duration) {
        let (id, reply) = self.session.expect_reply();
        match question::message(id, request, self.session.negotiated.version) {
            Ok(message) => self.sink.send(message, Weight::Must),
            // A question that was not sent gets no answer: its waiter gets the error.
            Err(error) => self.session.reply(id, Err(error)),
        }
        self.open.push(Open { key: key.to_owned(), id, reply, within, until: Instant::now() + within });
    }

    /// Cancels all open questions.
    pub(super) fn clear(&mut self, reason: &str) {
        for open in std::mem::take(&mut self.open) {
            self.cancel(open.id, reason);
        }
    }

    /// Cancels one question.
    pub(super) fn withdraw(&mut self, key: &str) {
        if let Some(index) = self.open.iter().position(|open| open.key == key) {
            let open = self.open.swap_remove(index);
            self.cancel(open.id, "the answer is no longer needed");
        }
    }

    fn cancel(&self, id: i64, reason: &str) {
        self.session.forget_reply(id);
        if let Ok(message) = encode_cancelled(&id.into(), Some(reason)) {
            self.sink.send(message, Weight::TakeBack);
        }
    }

    /// Waits for the next question that is answered, refused or timed out. Without a question it never completes.
    pub(super) async fn next(&mut self) -> (String, Answer) {
        let Some(until) = self.open.iter().map(|open| open.until).min() else { return pending().await };
        let open = &mut self.open;
        let settled = poll_fn(|cx| {
            for (index, open) in open.iter_mut().enumerate() {
                if let Poll::Ready(reply) = Pin::new(&mut open.reply).poll(cx) {
                    return Poll::Ready((index, reply));
                }
            }
            Poll::Pending
        });
        let settled = tokio::select! {
            biased;
            settled = settled => Some(settled),
            () = sleep_until(until) => None,
        };
        let Some((index, reply)) = settled else {
            let index = self.open.iter().position(|open| open.until <= until).unwrap_or(0);
            let open = self.open.swap_remove(index);
            self.cancel(open.id, "the time for an answer is over");
            return (open.key, Err(format!("the client did not answer within {:?}", open.within)));
        };
        let open = self.open.swap_remove(index);
        let answer = match reply {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the session has ended".to_owned()),
        };
        (open.key, answer)
    }

    /// Sends questions together, and waits for all of them. Malformed answers are left out: the handler asks for them
    /// again.
    pub(super) async fn ask_all(
        &mut self,
        questions: InputRequests,
    ) -> Result<BTreeMap<String, Raw>, (String, String)> {
        // The round's state is sealed by now, and valid for no longer.
        let within = self.session.settings.answer_within.min(self.session.endpoint.inner().flows.valid_for);
        for (key, request) in questions {
            self.put_within(&key, request, within);
        }
        let mut answers = BTreeMap::new();
        while !self.is_empty() {
            let (key, answer) = self.next().await;
            match answer {
                Ok(answer) if is_answer(&answer) => drop(answers.insert(key, answer)),
                Ok(_) => {}
                Err(reason) => return Err((key, reason)),
            }
        }
        Ok(answers)
    }
}

/// Cancels the open questions of a call that ends.
impl Drop for Outstanding {
    fn drop(&mut self) {
        self.clear("the call has ended");
    }
}

/// Returns whether a value can be an answer at all: an object, with a known `action` if it has any.
fn is_answer(answer: &Raw) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        action: Option<Value>,
    }
    let known = |action: &Value| ["accept", "decline", "cancel"].iter().any(|known| action == known);
    answer.get().starts_with('{')
        && answer.to::<Peek>().is_ok_and(|peek| peek.action.as_ref().is_none_or(known))
}
