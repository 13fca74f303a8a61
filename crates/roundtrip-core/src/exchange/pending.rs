//! A flow between two requests.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::answer::{self, Answer, Misfit};
use super::flow::Flow;
use super::machine::Exchange;
use super::question::PendingQuestion;
use super::state::RequestState;
use super::task_request::TaskRequest;
use super::task_state::TaskState;
use crate::error::{ApiMisuse, Error, RequestName};
use crate::wire::{
    CallTool, ElicitRequestParams, Implementation, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, Method, Raw, Task as WireTask, json,
};

/// A flow between two requests: its questions, the answers so far, and all that the next request needs.
///
/// It serialises as JSON, so it can be stored until the server's state expires, and be resumed by another process. It
/// contains the arguments of the call, the answers and `requestState`: store it as safely as those.
///
/// Answering consumes the value and returns it with the answer in it; clone it first to keep the other answers when
/// one does not fit.
pub struct Pending<M = CallTool> {
    flow: Flow,
    server: Option<Arc<Implementation>>,
    questions: InputRequests,
    answers: InputResponses,
    state: Option<RequestState>,
    /// The task that asks.
    task: Option<Box<TaskState>>,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Pending<M> {
    pub(super) fn new(flow: Flow, asks: InputRequiredResult) -> Self {
        Self {
            flow,
            server: asks.meta.server_info,
            questions: asks.input_requests,
            answers: InputResponses::new(),
            state: asks.request_state.map(RequestState::new),
            task: None,
            method: PhantomData,
        }
    }

    pub(super) fn of_task(
        flow: Flow,
        server: Option<Arc<Implementation>>,
        questions: InputRequests,
        task: Box<TaskState>,
        request_state: Option<String>,
    ) -> Self {
        let (answers, state, task) =
            (InputResponses::new(), request_state.map(RequestState::new), Some(task));
        Self { flow, server, questions, answers, state, task, method: PhantomData }
    }

    /// Returns the method that was called.
    pub fn method(&self) -> &'static str {
        M::NAME
    }

    /// Returns the target of the call: a tool or prompt by name, a resource by URI.
    pub fn target(&self) -> Option<String> {
        self.flow.params.target(M::NAME)
    }

    /// Returns the name of the request, for errors.
    pub fn request_name(&self) -> RequestName {
        self.flow.request_name(M::NAME)
    }

    /// Returns whether the server gave a `requestState`. Without one it keeps what it needs itself, or starts over with
    /// the answers alone.
    pub fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the task that asks, without questions, result and error; `None` where the call itself does.
    pub fn task(&self) -> Option<&WireTask> {
        self.task.as_ref().map(|task| &task.seen)
    }

    /// Returns the server's `serverInfo` (self-reported).
    pub fn server(&self) -> Option<&Arc<Implementation>> {
        self.server.as_ref()
    }

    /// Returns the number of this round, counted from 1. Rounds that ask nothing count too, as they do on the server.
    pub fn round(&self) -> u32 {
        self.flow.rounds
    }

    /// Iterates over the questions of this round, answered or not. There are none where the server only wants to be
    /// called again.
    pub fn questions(&self) -> impl Iterator<Item = PendingQuestion<'_>> {
        self.questions.iter().map(|(key, request)| PendingQuestion {
            key,
            request,
            answered: self.answers.contains_key(key),
        })
    }

    /// Iterates over the questions that have no answer yet.
    pub fn open(&self) -> impl Iterator<Item = PendingQuestion<'_>> {
        self.questions().filter(|question| !question.is_answered())
    }

    /// Returns the pause before the next request: zero where a question was asked, growing where the server only
    /// wants to be called again.
    pub fn pause(&self) -> Duration {
        if self.questions.is_empty() { self.flow.pause() } else { Duration::ZERO }
    }

    /// Answers a question: a form with its content, the others with their whole result (a `CreateMessageResult`, a
    /// `ListRootsResult`). An answer given before is replaced.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] for a key that was not asked, and for an answer that does not fit its question.
    pub fn answer(self, key: &str, value: impl Serialize) -> Result<Self, Error> {
        let value = Raw::of(&value).map_err(|error| {
            ApiMisuse::Unserializable(format!("the answer to `{key}` does not serialise: {error}"))
        })?;
        self.take(key, |question| answer::read(question, &value))
    }

    /// Agrees to visit a web page.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] where that is not what was asked.
    pub fn consent(self, key: &str) -> Result<Self, Error> {
        self.take(key, |question| match question {
            InputRequest::Elicit(ElicitRequestParams::Url(_)) => Ok(Answer::consent()),
            _ => Err(Misfit::Kind("consent is for web pages".to_owned())),
        })
    }

    /// Declines a form or a web page.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] where that is not what was asked.
    pub fn decline(self, key: &str) -> Result<Self, Error> {
        self.take(key, |_| Ok(Answer::decline()))
    }

    /// Dismisses a form or a web page without an answer.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] where that is not what was asked.
    pub fn cancel(self, key: &str) -> Result<Self, Error> {
        self.take(key, |_| Ok(Answer::cancel()))
    }

    /// Answers a question of any kind.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] for a key that was not asked, and for an answer that does not fit its question.
    pub fn give(self, key: &str, answer: Answer) -> Result<Self, Error> {
        self.take(key, |_| Ok(answer))
    }

    fn take(
        mut self,
        key: &str,
        answer: impl FnOnce(&InputRequest) -> Result<Answer, Misfit>,
    ) -> Result<Self, Error> {
        let Some(question) = self.questions.get(key) else {
            return Err(ApiMisuse::NotAsked { method: M::NAME, key: key.to_owned() }.into());
        };
        let fitting =
            answer(question).and_then(|answer| answer::fit(question, answer)).map_err(|misfit| {
                ApiMisuse::UnfitAnswer(format!("the answer to `{key}` does not fit the question: {misfit}"))
            })?;
        self.answers.insert(key.to_owned(), fitting);
        Ok(self)
    }

    /// Returns the next request of the flow. Answers and `requestState` go into it and nowhere else. To a task, answers can be
    /// given a few at a time.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] that names the questions that have no answer.
    pub fn resume(self) -> Result<Exchange<M>, Error> {
        let keys: Vec<String> = self.open().map(|question| question.key().to_owned()).collect();
        if !keys.is_empty() && (self.task.is_none() || self.answers.is_empty()) {
            return Err(ApiMisuse::Unanswered { keys }.into());
        }
        let Self { mut flow, server, answers, state, task, .. } = self;
        let raw = |result: Result<Raw, serde_json::Error>| {
            result
                .map_err(|error| ApiMisuse::Unserializable(format!("the answers do not serialise: {error}")))
        };
        let responses = if answers.is_empty() { None } else { Some(raw(Raw::of(&answers))?) };
        flow.rounds = flow.rounds.saturating_add(1);
        let state = state.map(|state| raw(Raw::of(&state))).transpose()?;
        if let Some(task) = task {
            let mut params = task.params();
            params.set("inputResponses", responses);
            params.set("requestState", state);
            let request =
                TaskRequest { state: task, server, params, answered: answers.into_keys().collect() };
            return Ok(Exchange { flow, task: Some(request), method: PhantomData });
        }
        flow.params.set("inputResponses", responses);
        // Absent stays absent (mrtr, client 2).
        flow.params.set("requestState", state);
        Ok(Exchange { flow, task: None, method: PhantomData })
    }
}

impl<M> Clone for Pending<M> {
    fn clone(&self) -> Self {
        Self {
            flow: self.flow.clone(),
            server: self.server.clone(),
            questions: self.questions.clone(),
            answers: self.answers.clone(),
            state: self.state.clone(),
            task: self.task.clone(),
            method: PhantomData,
        }
    }
}

/// Shows neither answers nor `requestState`: the first are people's, the second is the server's.
impl<M: Method> fmt::Debug for Pending<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("method", &M::NAME)
            .field("target", &self.target())
            .field("round", &self.flow.rounds)
            .field("questions", &self.questions)
            .field("answered", &self.answers.keys())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The stored form of [`Pending`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<F, I, Q, A, S, T> {
    method: String,
    flow: F,
    server: I,
    questions: Q,
    answers: A,
    state: S,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    task: Option<T>,
}

impl<M: Method> Serialize for Pending<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            method: M::NAME.to_owned(),
            flow: &self.flow,
            server: self.server.as_deref(),
            questions: &self.questions,
            answers: &self.answers,
            state: &self.state,
            task: self.task.as_ref(),
        };
        stored.serialize(serializer)
    }
}

impl<'de, M: Method> Deserialize<'de> for Pending<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type Owned = Stored<
            Flow,
            Option<Implementation>,
            InputRequests,
            InputResponses,
            Option<RequestState>,
            Box<TaskState>,
        >;
        let stored = Owned::deserialize(json::ByName::new(deserializer))?;
        if stored.method != M::NAME {
            return Err(de::Error::custom(format!(
                "this is a call of `{}`, not of `{}`",
                stored.method,
                M::NAME
            )));
        }
        // Storage is trusted no more than a caller: stored answers are checked against the questions again.
        for (key, value) in &stored.answers {
            let fits = stored.questions.get(key).is_some_and(|question| {
                answer::restore(question, value).and_then(|answer| answer::fit(question, answer)).is_ok()
            });
            if !fits {
                return Err(de::Error::custom(format!("the answer to `{key}` does not fit the question")));
            }
        }
        Ok(Self {
            flow: stored.flow,
            server: stored.server.map(Arc::new),
            questions: stored.questions,
            answers: stored.answers,
            state: stored.state,
            task: stored.task,
            method: PhantomData,
        })
    }
}
