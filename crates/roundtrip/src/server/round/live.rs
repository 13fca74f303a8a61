//! Peers that can be asked while a call runs: questions go out, and the handler waits where it stands.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use roundtrip_core::wire::{ErrorObject, InputRequest};

use super::state::RoundState;

/// What becomes of a question that has no answer yet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// It ends the round, and the client answers by a retry.
    #[default]
    EndRound,
    /// It goes out, and the handler waits where it stands.
    Live(Arc<LiveQuestions>),
    /// This peer cannot be asked: the error says what it would take.
    Refuse(fn(&InputRequest) -> ErrorObject),
}

/// What a transport has to do about a question.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveEvent {
    /// Put it to the peer.
    Ask {
        /// What its answer is found by.
        key: Cow<'static, str>,
        /// The question.
        request: Box<InputRequest>,
    },
    /// Take it back: nobody waits for its answer any more.
    Withdraw {
        /// What its answer would have been found by.
        key: Cow<'static, str>,
    },
}

/// A line to the peer that is open for as long as a call runs.
///
/// Poll it after the call itself: then questions that were asked together come out together.
#[derive(Debug, Default)]
pub struct LiveQuestions(Mutex<Talk>);

#[derive(Debug, Default)]
struct Talk {
    queries: VecDeque<LiveEvent>,
    /// The keys of questions that wait for their answer.
    open: Vec<Cow<'static, str>>,
    table: Weak<RoundState>,
    waker: Option<Waker>,
}

impl LiveQuestions {
    fn talk(&self) -> MutexGuard<'_, Talk> {
        // Every change is made in one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose questions these are.
    pub(super) fn connect(&self, table: &Arc<RoundState>) {
        self.talk().table = Arc::downgrade(table);
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

    /// What there is to do next.
    pub fn poll_query(&self, cx: &mut Context<'_>) -> Poll<LiveEvent> {
        let mut talk = self.talk();
        match talk.queries.pop_front() {
            Some(query) => Poll::Ready(query),
            None => {
                talk.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// What there is to do next, as a future.
    pub async fn query(&self) -> LiveEvent {
        poll_fn(|cx| self.poll_query(cx)).await
    }

    /// Hands over an answer: the result as JSON text, or why there is none. One that does not fit its question makes
    /// the question go out again.
    pub fn answer(&self, key: &str, answer: Result<&str, String>) {
        let mut talk = self.talk();
        let Some(index) = talk.open.iter().position(|open| open == key) else { return };
        talk.open.swap_remove(index);
        let table = talk.table.upgrade();
        drop(talk);
        if let Some(table) = table {
            table.answer(key, answer);
        }
    }
}

impl Talk {
    fn push(&mut self, query: LiveEvent) {
        self.queries.push_back(query);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
