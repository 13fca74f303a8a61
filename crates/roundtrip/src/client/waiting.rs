//! The client's loop over a task: looks at the server's pace, or as the server tells of changes; and the answers of the handlers.

use std::mem::take;
use std::time::Duration;

use roundtrip_core::error::{BUSY, Error, RATE_LIMITED};
use roundtrip_core::exchange::{Action, Exchange, Task};
use roundtrip_core::wire::{Method, Task as WireTask};
use tokio::time::{Instant, sleep};

use super::builder::Client;
use super::by_hand::Turn;
use super::flow::{Rounds, check, leg};
use super::handlers::ask;
use super::options::Options;
use super::task_watch::TaskWatch;

/// Longest time in which the server of a task is out of reach before the task is given up.
const OUTAGE: Duration = Duration::from_secs(120);
/// Bounds of the pause before a server that is out of reach is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// Drives a task to its end. `task` is its newest state, also after an error.
pub(super) async fn finish<M: Method>(
    client: &Client,
    task: &mut Task<M>,
    options: &mut Options,
    rounds: &mut Rounds<M>,
) -> Result<M::Result, Error> {
    let mut passed = Duration::ZERO;
    loop {
        match next_turn(client, task, options, rounds, take(&mut passed)).await? {
            Turn::Done(result) => return Ok(result),
            Turn::Task(seen) => *task = seen,
            Turn::Asked(pending) => {
                let asked = Instant::now();
                // No timeout here: how long people think is not the request's time (C8).
                let answered = ask(client.handlers(), pending, M::NAME).await?.resume()?;
                if let Turn::Task(seen) = request(client, answered, options).await? {
                    *task = seen;
                }
                passed = asked.elapsed();
            }
        }
    }
}

/// Waits until a task asks or ends. `passed` is the time since it was last looked at.
pub(super) async fn next_turn<M: Method>(
    client: &Client,
    task: &mut Task<M>,
    options: &mut Options,
    rounds: &mut Rounds<M>,
    mut passed: Duration,
) -> Result<Turn<M>, Error> {
    let mut watch = TaskWatch::default();
    loop {
        rounds.tell(task.last_seen());
        let pause = task.pause_after(take(&mut passed));
        let turn = match client.closed().unless(watch.wait(client, task, pause)).await? {
            // Its parts come with an answer alone.
            Some(news) if options.on_part.is_none() => told(client, task.clone(), news)?,
            _ => request(client, task.clone().poll(), options).await?,
        };
        match turn {
            Turn::Task(seen) => *task = seen,
            Turn::Asked(pending) => {
                if let Some(task) = pending.task() {
                    rounds.tell(task);
                }
                rounds.see(&pending)?;
                return Ok(Turn::Asked(pending));
            }
            done @ Turn::Done(_) => return Ok(done),
        }
    }
}

/// Takes a task that the server has told of.
fn told<M: Method>(client: &Client, task: Task<M>, news: WireTask) -> Result<Turn<M>, Error> {
    let (tool, result) = (task.target(), news.result.clone());
    let step = task.notified(news)?;
    check(client, &step, tool.as_deref(), result.as_ref())?;
    Ok(turn(step))
}

/// Sends a request about a task. A task outlives connections and servers that restart, so that these are waited for.
async fn request<M: Method>(
    client: &Client,
    exchange: Exchange<M>,
    options: &mut Options,
) -> Result<Turn<M>, Error> {
    let (begun, mut wait) = (Instant::now(), RETRY.0);
    let (step, begun) = loop {
        match leg(client, exchange.clone(), options).await {
            Err(error) if is_passing(&error) && begun.elapsed() + wait < OUTAGE => {
                tracing::debug!(%error, "the server of a task is out of reach: trying again");
                pause(client, error.retry_after().unwrap_or_default().clamp(wait, RETRY.1)).await?;
                wait = (wait * 2).min(RETRY.1);
            }
            outcome => break outcome?,
        }
    };
    begun.goes_on();
    Ok(turn(step))
}

fn turn<M: Method>(step: Action<M>) -> Turn<M> {
    match step {
        Action::Done(result) => Turn::Done(result),
        Action::Ask(pending) | Action::Pause(_, pending) => Turn::Asked(pending),
        Action::Wait(task) => Turn::Task(task),
    }
}

/// Waits, unless the client is closed first.
async fn pause(client: &Client, pause: Duration) -> Result<(), Error> {
    let waiting = async {
        sleep(pause).await;
        Ok(())
    };
    client.closed().unless(waiting).await
}

/// Returns whether an error may be over when the request is sent again. Those about tasks can be sent any number of times.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } | Error::Timeout { .. } => true,
        Error::Refused(refusal) => matches!(refusal.status.as_u16(), 429 | 502 | 503 | 504),
        Error::Rejected(refusal) => matches!(refusal.error().code, BUSY | RATE_LIMITED),
        _ => false,
    }
}
