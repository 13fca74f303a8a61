//! Calls by hand, one request at a time: the caller answers, now or in another process.

use std::fmt;

use roundtrip_core::error::{Error, RequestName};
use roundtrip_core::exchange::{Action, Exchange, Pending, Task};
use roundtrip_core::wire::{CallTool, ContentBlock, MayAsk, Method};
use tokio::time::sleep;

use super::builder::Client;
use super::flow::{Rounds, leg};
use super::options::{Options, options, rounds_options};
use super::request::Request;
use super::send::bounded;
use super::transport::BoxFuture;

/// Outcome of one request.
#[must_use = "a call that was asked something is not over"]
#[non_exhaustive]
pub enum Turn<M: Method = CallTool> {
    /// The call is over, and this is its result.
    Done(M::Result),
    /// The server asks something, or only wants to be called again: answer what is in here, and
    /// [`resume`](Client::resume).
    Asked(Pending<M>),
    /// The call goes on as a task: look after it with [`Client::task`].
    Task(Task<M>),
}

/// Derived, this would want a method to be shown that has nothing to show.
impl<M: Method> fmt::Debug for Turn<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Self::Asked(pending) => f.debug_tuple("Asked").field(pending).finish(),
            Self::Task(task) => f.debug_tuple("Task").field(task).finish(),
        }
    }
}

/// One request, to be awaited for its [`Turn`].
#[derive(Debug)]
#[must_use = "a turn is not taken until it is awaited"]
pub struct OneRound<M: Method> {
    client: Client,
    start: Start<M>,
    options: Options,
    rounds: Rounds<M>,
}

/// Start of a turn: a new call, or answered questions.
#[derive(Debug)]
enum Start<M: Method> {
    Call(Request<'static>),
    Pending(Box<Pending<M>>),
}

impl<M: Method> Start<M> {
    fn name(&self) -> RequestName {
        match self {
            Self::Call(request) => request.name(),
            Self::Pending(pending) => pending.request_name(),
        }
    }
}

impl<M: MayAsk> OneRound<M> {
    pub(super) fn new(
        client: Client,
        request: Request<'static>,
        options: Options,
        rounds: Rounds<M>,
    ) -> Self {
        Self { client, start: Start::Call(request), options, rounds }
    }

    options!();
    rounds_options!();

    async fn take(mut self) -> Result<Turn<M>, Error> {
        self.options.by_hand = true;
        let exchange = match self.start {
            Start::Call(request) => self.rounds.begin(&self.client, request, &self.options),
            Start::Pending(pending) => {
                let pause = pending.pause();
                let exchange = pending.resume()?;
                self.options.keep_meta(exchange.meta());
                sleep(pause).await;
                exchange
            }
        };
        turn(&self.client, exchange, &mut self.options, &mut self.rounds).await
    }
}

/// Turns of tools, whose results may come in parts.
impl OneRound<CallTool> {
    /// Asks for the parts of the result, and calls the hook with each as it comes. Those of earlier rounds do not come again, and
    /// a call that is resumed sends parts only if it asked for them at its beginning.
    ///
    /// ```no_run
    /// # async fn example(client: roundtrip::Client, answered: roundtrip::Pending) -> Result<(), roundtrip::Error> {
    /// let show = |part: roundtrip::wire::ContentBlock| print!("{}", part.as_text().unwrap_or_default());
    /// let turn = client.resume(answered).on_part(show).await?;
    /// # drop(turn);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_part(mut self, hook: impl FnMut(ContentBlock) + Send + 'static) -> Self {
        match &mut self.start {
            Start::Call(request) => request.set("stream", Some(serde_json::json!({}).into())),
            // Numbers go on over the rounds, and those of the rounds before are not known here.
            Start::Pending(_) => self.options.part_numbers.begin_again(),
        }
        self.options.on_part = Some(Box::new(hook));
        self
    }
}

async fn turn<M: Method>(
    client: &Client,
    exchange: Exchange<M>,
    options: &mut Options,
    rounds: &mut Rounds<M>,
) -> Result<Turn<M>, Error> {
    let (step, begun) = leg(client, exchange, options).await?;
    match step {
        Action::Done(result) => Ok(Turn::Done(result)),
        Action::Ask(pending) | Action::Pause(_, pending) => {
            rounds.see(&pending)?;
            begun.goes_on();
            Ok(Turn::Asked(pending))
        }
        Action::Wait(task) => Ok(Turn::Task(task)),
    }
}

impl<M: MayAsk> IntoFuture for OneRound<M> {
    type Output = Result<Turn<M>, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let deadline = self.rounds.deadline.map(|deadline| (deadline, self.start.name()));
            bounded(deadline, self.take()).await
        })
    }
}

impl Client {
    /// Goes on with a call that was asked something, in this process or in another one: no handlers are needed, and
    /// the client that began it may be gone. Where the server only wants to be called again, a short
    /// pause comes first, longer each time.
    ///
    /// A question that has no answer yet is [`ApiMisuse::Unanswered`](super::ApiMisuse::Unanswered), and nothing is
    /// sent. A task can be answered in part; the next [turn](super::TaskHandle::turn) asks the rest again.
    pub fn resume<M: MayAsk>(&self, pending: Pending<M>) -> OneRound<M> {
        OneRound {
            client: self.clone(),
            start: Start::Pending(Box::new(pending)),
            options: Options::default(),
            rounds: Rounds::default(),
        }
    }
}
