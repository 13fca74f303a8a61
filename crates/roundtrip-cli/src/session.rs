//! A call and its rounds: asked, answered, saved, followed as a task.

use std::path::PathBuf;

use clap::Args;
use roundtrip::client::{OneRound, TaskHandle};
use roundtrip::wire::{CallTool, Era, GetPrompt, MayAsk, ReadResource};
use roundtrip::{Client, Error, Pending, Task, Turn};
use serde::Serialize;

use crate::ask::{self, AskOptions, Asker, By, terminal};
use crate::exit::{Exit, Failure};
use crate::interrupt::{self, Deadline};
use crate::progress::Progress;
use crate::saved;
use crate::server::{Connect, Connection, Endpoint, quoted};
use crate::trace::Trace;

/// Options of calls that may be asked something.
#[derive(Args, Clone, Debug)]
pub(crate) struct SessionOptions {
    /// Stop at the first question, and keep the call in this file for `roundtrip resume`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Longest time for the whole call, in seconds: requests, pauses and people together
    #[arg(long, value_name = "SECONDS", value_parser = interrupt::deadline)]
    pub(crate) deadline: Option<Deadline>,
    /// Show every round on standard error
    #[arg(long)]
    trace: bool,
    /// Print the result as JSON and nothing else, and errors as one JSON object on standard error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: Connect,
    #[command(flatten)]
    ask: AskOptions,
}

/// Methods whose calls are driven here.
pub(crate) trait Driven: MayAsk {
    /// Prints parts of the result as they come, where the method has parts.
    fn with_parts(turn: OneRound<Self>, _: &Progress) -> OneRound<Self>
    where
        Self: Sized,
    {
        turn
    }

    /// Prints parts of a task's result as they come.
    fn task_with_parts(task: TaskHandle<Self>, _: &Progress) -> TaskHandle<Self>
    where
        Self: Sized,
    {
        task
    }
}

impl Driven for GetPrompt {}
impl Driven for ReadResource {}

impl Driven for CallTool {
    fn with_parts(turn: OneRound<Self>, progress: &Progress) -> OneRound<Self> {
        match progress.on_part() {
            Some(hook) => turn.on_part(hook),
            None => turn,
        }
    }

    fn task_with_parts(task: TaskHandle<Self>, progress: &Progress) -> TaskHandle<Self> {
        match progress.on_part() {
            // A task tells its parts from the first on, again after each question: the rest is printed with the result.
            Some(hook) if progress.printed().is_empty() => task.on_part(hook),
            _ => task,
        }
    }
}

/// A client with all that a call of the command needs.
pub(crate) struct Session {
    pub(crate) client: Client,
    connection: Connection,
    pub(crate) asker: Asker,
    pub(crate) progress: Progress,
    trace: Trace,
    save: Option<PathBuf>,
    pub(crate) json: bool,
    /// Identifier of the task that the call has become.
    task: Option<String>,
}

impl Session {
    /// Builds the client. Nothing is sent yet.
    pub(crate) async fn open(endpoint: Endpoint, options: &SessionOptions) -> Result<Self, Failure> {
        let (ask, label) = (options.ask.clone(), endpoint.label());
        // Answers may come from standard input, which may be late.
        let asker = terminal::blocking(move || Asker::new(&ask, label));
        let asker = interrupt::until(options.deadline, asker).await?;
        let progress = Progress::new(options.json);
        let mut connection =
            Connection::open(endpoint, &options.connect, options.deadline, &progress).await?;
        connection.client = connection.client.capabilities(asker.capabilities());
        Ok(Self {
            client: connection.client.clone(),
            connection,
            asker,
            progress,
            trace: Trace::new(options.trace),
            save: options.save.clone(),
            json: options.json,
            task: None,
        })
    }

    /// Runs work of this session, and closes its client however the work ends. Ctrl-C and the deadline end it.
    pub(crate) async fn run<T>(
        mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.connection.clone();
        let result = connection.run(work(&mut self)).await;
        if result.is_err() {
            self.progress.end_line();
        }
        result.map_err(|failure| self.with_task(failure))
    }

    /// Adds how to go on with a task that has not ended with the command.
    fn with_task(&self, failure: Failure) -> Failure {
        let Some(id) = &self.task else { return failure };
        if !matches!(failure.exit, Exit::Interrupted | Exit::GaveUp | Exit::Asked | Exit::Transport) {
            return failure;
        }
        let wait = self.connection.endpoint.words(&format!("task wait --id {}", quoted(id)));
        failure
            .note_with(id, format!("the call goes on as a task of the server: `{wait}`"))
            .with("taskId", id.as_str())
    }

    /// Reads a list that the call needs. The display is clear then, for questions about arguments.
    pub(crate) async fn listed<T: Serialize>(
        &mut self,
        method: &str,
        list: impl AsyncFnOnce(&Client) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Failure> {
        self.trace.request(method);
        let listed = list(&self.client).await;
        self.progress.clear();
        match &listed {
            Ok(listed) => self.trace.done(listed),
            Err(error) => self.trace.failed(error),
        }
        Ok(listed?)
    }

    /// Makes a call through all its rounds, and as a task if it becomes one.
    pub(crate) async fn drive<M: Driven>(
        &mut self,
        first: OneRound<M>,
        what: &str,
    ) -> Result<M::Result, Failure> {
        match self.start(first, what).await? {
            Turn::Task(task) => self.follow(task).await,
            turn => self.go_on(turn).await,
        }
    }

    /// Sends the first request of a call.
    pub(crate) async fn start<M: Driven>(
        &mut self,
        first: OneRound<M>,
        what: &str,
    ) -> Result<Turn<M>, Failure> {
        self.trace.request(what);
        self.progress.wait_for(what);
        let first = M::with_parts(first.on_progress(self.progress.on_progress()), &self.progress);
        let turn = first.await;
        self.seen(turn)
    }

    /// Goes on with a task that the call has become.
    pub(crate) async fn follow<M: Driven>(&mut self, task: Task<M>) -> Result<M::Result, Failure> {
        let turn = self.next_of_task(task).await?;
        self.go_on(turn).await
    }

    /// Goes on with a flow that waits for answers. These are given now, and later questions are saved if that is wanted. The file
    /// that asks is named, unless its questions are known to be the server's.
    pub(crate) async fn resume<M: Driven>(
        &mut self,
        pending: Pending<M>,
        file: Option<String>,
    ) -> Result<M::Result, Failure> {
        let by = file.map_or(By::Server, By::File);
        let answered = self.asker.answer(pending, by).await?;
        let turn = self.send(answered).await?;
        self.go_on(turn).await
    }

    /// Goes on from a turn to the end of the call.
    pub(crate) async fn go_on<M: Driven>(&mut self, mut turn: Turn<M>) -> Result<M::Result, Failure> {
        loop {
            turn = match turn {
                Turn::Done(result) => return Ok(result),
                Turn::Asked(pending) => {
                    let answered = self.answered(pending).await?;
                    self.send(answered).await?
                }
                Turn::Task(task) => self.next_of_task(task).await?,
                _ => {
                    return Err(Failure::new(
                        Exit::Transport,
                        "the server answered in a way that is not known here",
                    ));
                }
            }
        }
    }

    /// Answers the questions of a round, or saves it.
    pub(crate) async fn answered<M: Driven>(&mut self, pending: Pending<M>) -> Result<Pending<M>, Failure> {
        if pending.open().next().is_none() {
            return Ok(pending);
        }
        self.progress.end_line();
        if let Some(file) = &self.save {
            if self.client.protocol_version().is_some_and(|version| version.era() != Era::Modern) {
                return Err(ask::unanswered(&pending).note(
                    "it cannot be saved: this server speaks a revision that keeps the call open in this process",
                ));
            }
            saved::write(file, &self.connection.endpoint, &pending)?;
            return Err(saved::stopped(file, &self.connection.endpoint, &pending));
        }
        self.asker.answer(pending, By::Server).await
    }

    /// Sends the answers of a round.
    pub(crate) async fn send<M: Driven>(&mut self, answered: Pending<M>) -> Result<Turn<M>, Failure> {
        let what = self.trace.next(&answered);
        self.trace.request(&what);
        self.progress.wait_for(&what);
        let turn = self.client.resume(answered).on_progress(self.progress.on_progress());
        let turn = M::with_parts(turn, &self.progress).await;
        self.seen(turn)
    }

    /// Waits until a task asks or ends.
    pub(crate) async fn next_of_task<M: Driven>(&mut self, task: Task<M>) -> Result<Turn<M>, Failure> {
        let what = format!("task {}", task.id());
        self.trace.request(&what);
        self.progress.wait_for(&what);
        let handle = self.client.task(task).on_status(self.progress.on_status());
        let turn = M::task_with_parts(handle, &self.progress).turn().await;
        self.seen(turn).map_err(Failure::of_task)
    }

    fn seen<M: Driven>(&mut self, turn: Result<Turn<M>, Error>) -> Result<Turn<M>, Failure> {
        self.progress.clear();
        if self.trace.is_on() {
            self.progress.end_line();
        }
        match &turn {
            Ok(Turn::Done(result)) => self.trace.done(result),
            Ok(Turn::Asked(pending)) => self.trace.asked(pending),
            Ok(Turn::Task(task)) => {
                self.trace.task(task);
                self.task = Some(task.id().to_owned());
            }
            Ok(_) => {}
            Err(error) => self.trace.failed(error),
        }
        Ok(turn?)
    }

    /// Returns the verdict on a call that has ended: a tool that failed because the user said no is no failure of the tool.
    pub(crate) fn concluded(&self, printed: Result<(), Failure>) -> Result<(), Failure> {
        match printed {
            Err(mut failure) if failure.exit == Exit::Failed && self.asker.has_declined() => {
                failure.exit = Exit::Declined;
                Err(failure)
            }
            Err(failure) => Err(failure),
            Ok(()) => self.asker.all_used(),
        }
    }
}
