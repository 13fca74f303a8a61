//! The client's loop over the rounds of a call: the core decides each step, and this carries it out.

use std::fmt;

use roundtrip_core::error::{ApiMisuse, Error, ServerRejection};
use roundtrip_core::exchange::{Action, Exchange, Task};
use roundtrip_core::wire::{CallTool, Method};
use tokio::time::sleep;

use super::builder::Client;
use super::flow::{Rounds, leg};
use super::handlers::ask;
use super::options::Options;
use super::request::Request;
use super::send::bounded;
use super::waiting::finish;

/// Outcome of a call that may become a task.
#[must_use = "a call that became a task is not over"]
pub enum Started<M: Method = CallTool> {
    /// The call is over, and this is its result.
    Done(M::Result),
    /// The call goes on as a task: look after it with [`Client::task`].
    Task(Task<M>),
}

/// Derived, this would want a method to be shown that has nothing to show.
impl<M: Method> fmt::Debug for Started<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Self::Task(task) => f.debug_tuple("Task").field(task).finish(),
        }
    }
}

/// Makes a call, through as many rounds as it takes, and as a task if it becomes one. Nothing is spawned: dropping the future
/// ends the call (C12), but not its task.
pub(crate) async fn call<M: Method>(
    client: &Client,
    request: Request<'static>,
    options: &mut Options,
    mut rounds: Rounds<M>,
) -> Result<M::Result, Error> {
    let exchange = rounds.begin(client, request, options);
    let deadline = rounds.deadline.map(|deadline| (deadline, exchange.request_name()));
    let flow = async {
        match play(client, exchange, options, &mut rounds).await? {
            Started::Done(result) => Ok(result),
            Started::Task(mut task) => finish(client, &mut task, options, &mut rounds).await,
        }
    };
    bounded(deadline, flow).await
}

/// Makes a call up to its end, or until it becomes a task.
pub(crate) async fn start<M: Method>(
    client: &Client,
    request: Request<'static>,
    options: &mut Options,
    mut rounds: Rounds<M>,
) -> Result<Started<M>, Error> {
    let exchange = rounds.begin(client, request, options);
    let deadline = rounds.deadline.map(|deadline| (deadline, exchange.request_name()));
    bounded(deadline, play(client, exchange, options, &mut rounds)).await
}

/// Plays the rounds of a call.
async fn play<M: Method>(
    client: &Client,
    mut exchange: Exchange<M>,
    options: &mut Options,
    rounds: &mut Rounds<M>,
) -> Result<Started<M>, Error> {
    loop {
        let restart = rounds.restart_of(&exchange);
        let (step, begun) = match (leg(client, exchange, options).await, restart) {
            (Err(error), Some(restart)) if is_expired(&error) => {
                tracing::debug!(%error, "the state expired: the call begins anew");
                rounds.restarts = false;
                options.part_numbers.begin_again();
                exchange = restart;
                continue;
            }
            (outcome, _) => outcome?,
        };
        let pending = match step {
            Action::Done(result) => return Ok(Started::Done(result)),
            Action::Wait(task) => {
                rounds.tell(task.last_seen());
                return Ok(Started::Task(task));
            }
            Action::Ask(pending) => {
                rounds.see(&pending)?;
                // No timeout here: how long people think is not the request's time (C8).
                ask(client.handlers(), pending, M::NAME).await?
            }
            Action::Pause(pause, pending) => {
                rounds.see(&pending)?;
                sleep(pause).await;
                pending
            }
        };
        exchange = pending.resume()?;
        begun.goes_on();
    }
}

/// Returns whether a round failed because its state is too old, or was lost.
fn is_expired(error: &Error) -> bool {
    matches!(
        error,
        Error::Rejected(ServerRejection::StateRejected(_)) | Error::ApiMisuse(ApiMisuse::CallNotOpen(_))
    )
}
