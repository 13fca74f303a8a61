//! Live questions: sent to a client of the handshake eras while the handler waits.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};

use roundtrip_core::wire::{ErrorObject, InputRequest};

use super::state::RoundState;
use crate::lock::lock;

/// Delivery of questions that have no answer yet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// A question ends the round with `input_required`, and the client answers by a retry.
    #[default]
    EndRound,
    /// A question is sent to the client while the handler waits.
    Live(Arc<LiveQuestions>),
    /// The client cannot be asked: the function makes the error that says what is missing.
    Refuse(fn(&InputRequest) -> ErrorObject),
}

/// Event of a live question, for the transport.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveEvent {
    /// Send the question to the client.
    Ask {
        /// The question's key.
        key: Cow<'static, str>,
        /// The question.
        request: Box<InputRequest>,
    },
    /// Withdraw the question: the handler no longer waits for its answer.
    Withdraw {
        /// The question's key.
        key: Cow<'static, str>,
    },
}

/// Queue of one call's questions that are sent to the client while the handler waits.
///
/// Poll it after the call itself: then questions that were asked together are sent together.
#[derive(Debug, Default)]
pub struct LiveQuestions(Mutex<Talk>);

#[derive(Debug, Default)]
struct Talk {
    events: VecDeque<LiveEvent>,
    /// The keys of questions that wait for their answer.
    open: Vec<Cow<'static, str>>,
    round: Weak<RoundState>,
    waker: Option<Waker>,
}

impl LiveQuestions {
    fn talk(&self) -> MutexGuard<'_, Talk> {
        lock(&self.0)
    }

    /// Connects the round whose questions these are.
    pub(super) fn connect(&self, round: &Arc<RoundState>) {
        self.talk().round = Arc::downgrade(round);
    }

    pub(super) fn ask(&self, key: Cow<'static, str>, request: InputRequest) {
        let mut talk = self.talk();
        talk.open.push(key.clone());
        talk.push(LiveEvent::Ask { key, request: Box::new(request) });
    }

    pub(super) fn withdraw(&self, key: &str) {
        let mut talk = self.talk();
        let Some(index) = talk.open.iter().position(|open| open == key) else { return };
        let key = talk.open.swap_remove(index);
        talk.push(LiveEvent::Withdraw { key });
    }

    /// Polls for the next event.
    pub fn poll_query(&self, cx: &mut Context<'_>) -> Poll<LiveEvent> {
        let mut talk = self.talk();
        match talk.events.pop_front() {
            Some(event) => Poll::Ready(event),
            None => {
                talk.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits for the next event.
    pub async fn query(&self) -> LiveEvent {
        poll_fn(|cx| self.poll_query(cx)).await
    }

    /// Takes the answer to a question: the result as JSON text, or the reason why there is none. If it does not fit, the
    /// question is sent again.
    pub fn answer(&self, key: &str, answer: Result<&str, String>) {
        let mut talk = self.talk();
        let Some(index) = talk.open.iter().position(|open| open == key) else { return };
        talk.open.swap_remove(index);
        let round = talk.round.upgrade();
        drop(talk);
        if let Some(round) = round {
            round.answer(key, answer);
        }
    }
}

impl Talk {
    fn push(&mut self, event: LiveEvent) {
        self.events.push_back(event);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
