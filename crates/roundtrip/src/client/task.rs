//! Tasks by hand: their status, answers to their questions, their end.

use std::time::Duration;

use roundtrip_core::error::{ApiMisuse, Error, RequestName, TaskError};
use roundtrip_core::exchange::{Action, Answer, Pending, Task};
use roundtrip_core::wire::{CallTool, CancelTask, MayAsk, Method as _, Task as WireTask, TaskStatus};
use serde::Serialize;

use super::builder::Client;
use super::by_hand::Turn;
use super::flow::{Rounds, leg, outcome};
use super::options::{Options, rounds_options, status_option};
use super::page::check_questions;
use super::request::Request;
use super::send::{bounded, complete, fetch};
use super::waiting::{finish, next_turn};

/// A task at its server, to be looked at, answered, cancelled, or waited for ([`Client::task`]).
///
/// Dropping it, or a future of it, leaves the task as it is: a task ends by itself, or by [`cancel`](Self::cancel).
#[derive(Debug)]
#[must_use = "a task is not looked at until it is asked for something"]
pub struct TaskHandle<M: MayAsk = CallTool> {
    client: Client,
    task: Task<M>,
    options: Options,
    rounds: Rounds<M>,
}

impl Client {
    /// Returns a handle to a task that this process or another one has started
    /// ([`Call::into_task`](super::Call::into_task)). A task of which only the identifier was kept is [`Task::new`].
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client, stored: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// use roundtrip::Task;
    ///
    /// let task: Task = serde_json::from_str(stored)?;
    /// let result = client.task(task).wait().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn task<M: MayAsk>(&self, task: Task<M>) -> TaskHandle<M> {
        let mut options = Options::default();
        options.keep_meta(task.meta());
        let task = task.max_questions(self.client_limits().questions).in_dialect(self.dialect());
        TaskHandle { client: self.clone(), task, options, rounds: Rounds::default() }
    }
}

impl<M: MayAsk> TaskHandle<M> {
    /// Limits each request in time, in place of the client's setting.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    rounds_options!();
    status_option!();

    /// Returns the task as this handle knows it, to be stored.
    pub fn task(&self) -> &Task<M> {
        &self.task
    }

    /// Returns the task as the server has it now (`tasks/get`), with its questions, its result or its error. Questions that were
    /// answered are among them until the server has seen the answer.
    ///
    /// # Errors
    /// [`Error::Task`] for a task that the server does not know, [`Error::PeerMisbehaved`] for a page that no user may be sent
    /// to, and those of any request.
    pub async fn status(&mut self) -> Result<WireTask, Error> {
        self.options.by_hand = true;
        let (_, result) = outcome(&self.client, &self.task.clone().look(), &mut self.options).await?;
        let mut task = self.task.observe((*result).as_ref())?;
        if self.task.payload_is_due() {
            self.add_payload(&mut task).await?;
        }
        let questions = task.input_requests.iter().map(|(key, question)| (key.as_str(), question));
        check_questions(questions, || self.task.request_name(), self.client.client_limits())?;
        Ok(task)
    }

    /// Adds what its status brings along to a task: in SEP-2322's dialect that takes a request of its own.
    async fn add_payload(&mut self, task: &mut WireTask) -> Result<(), Error> {
        match outcome(&self.client, &self.task.clone().poll(), &mut self.options).await {
            Ok((_, payload)) => self.task.observe_payload(task, Ok((*payload).as_ref())),
            Err(Error::Rejected(refusal)) if task.status == TaskStatus::Failed => {
                self.task.observe_payload(task, Err(refusal.error().clone()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Answers a question (`tasks/update`, or as its dialect has it): a form with its content, the others with their whole result. The task is looked
    /// at first, and the answer checked against its question.
    ///
    /// # Errors
    /// [`Error::ApiMisuse`] for a key that is not asked or was answered, and for an answer that does not fit; the error that
    /// the task has ended with; those of any request.
    pub async fn answer(&mut self, key: &str, value: impl Serialize) -> Result<(), Error> {
        let answered = self.asked(key).await?.answer(key, value)?;
        self.send_answers(answered).await
    }

    /// Answers a question of any kind, as [`answer`](Self::answer) does: [`Answer::decline`] and [`Answer::consent`] too.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub async fn give(&mut self, key: &str, answer: Answer) -> Result<(), Error> {
        let answered = self.asked(key).await?.give(key, answer)?;
        self.send_answers(answered).await
    }

    /// Cancels the task (`tasks/cancel`). The server has heard of it when this returns; the task may still end otherwise, or have
    /// ended already.
    ///
    /// # Errors
    /// [`Error::Task`] for a task that the server does not know, and those of any request.
    pub async fn cancel(&mut self) -> Result<(), Error> {
        let exchange = self.task.clone().look();
        self.options.dialect = exchange.dialect();
        let request = Request::borrowing(CancelTask::NAME, exchange.params()).about(self.task.target());
        let sent = fetch(&self.client, &request, &mut self.options).await;
        match sent.map_err(|error| exchange.failed(error)) {
            Ok(result) => complete::<CancelTask>(&result).map(drop),
            // Outside of the extension, a task that has ended is refused in the same way as one that is not known.
            Err(error @ Error::Task(TaskError::Unknown { .. })) => {
                let seen = outcome(&self.client, &exchange, &mut self.options).await;
                seen.map(drop).map_err(|_| error)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the result of the task's call. Its questions go to the client's handlers, as those of a call do.
    ///
    /// # Errors
    /// Those of the call; [`Error::Task`] for a task that was cancelled, and for one that the server does not know. The handle
    /// can be asked again after any of them.
    pub async fn wait(&mut self) -> Result<M::Result, Error> {
        let deadline = self.bound();
        self.options.by_hand = false;
        let Self { client, task, options, rounds } = self;
        bounded(deadline, finish(client, task, options, rounds)).await
    }

    /// Waits until the task asks or ends: [`Turn::Asked`] is to be answered and [resumed](Client::resume), [`Turn::Done`] has the
    /// result. The client's handlers are left alone.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub async fn turn(&mut self) -> Result<Turn<M>, Error> {
        let deadline = self.bound();
        self.options.by_hand = true;
        let Self { client, task, options, rounds } = self;
        bounded(deadline, next_turn(client, task, options, rounds, Duration::ZERO)).await
    }

    fn bound(&self) -> Option<(Duration, RequestName)> {
        self.rounds.deadline.map(|deadline| (deadline, self.task.request_name()))
    }

    /// Returns the open questions of the task, `key` among them.
    async fn asked(&mut self, key: &str) -> Result<Pending<M>, Error> {
        self.options.by_hand = true;
        let mut looked = leg(&self.client, self.task.clone().look(), &mut self.options).await?;
        if let (Action::Wait(task), _) = &looked
            && task.payload_is_due()
        {
            looked = leg(&self.client, task.clone().poll(), &mut self.options).await?;
        }
        match looked {
            (Action::Ask(pending), begun) => {
                begun.goes_on();
                Ok(pending)
            }
            _ => Err(ApiMisuse::NotAsked { method: M::NAME, key: key.to_owned() }.into()),
        }
    }

    async fn send_answers(&mut self, answered: Pending<M>) -> Result<(), Error> {
        let (step, _) = leg(&self.client, answered.resume()?, &mut self.options).await?;
        if let Action::Wait(task) = step {
            self.task = task;
        }
        Ok(())
    }
}
