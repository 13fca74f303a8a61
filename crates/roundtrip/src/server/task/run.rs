//! Runs the handler of a task under its lease, to its end or its next question.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use roundtrip_core::wire::{Raw, ServerResult};
use tokio::time::{sleep, timeout};

use super::errors::{over, unwritable};
use super::held::Stop;
use super::lease::Lease;
use crate::server::notify::status::StatusSlot;
use crate::server::notify::subscription::Hub;
use crate::server::outcome::Outcome;
use crate::server::round::RoundState;
use crate::server::run::runner::Runner;
use crate::task::{Ended, Millis};

/// Shortest time between two descriptions of a task's state that are stored.
const PACE: Duration = Duration::from_millis(500);
/// Longest time that a step has to end after its task was stopped.
const LAST_STEP: Duration = Duration::from_secs(30);

/// End of a run.
pub(crate) enum Ran {
    /// The task has ended, asks, or is another's.
    Ended,
    /// The task waits for something outside, and is run again after this pause.
    Waits(Duration),
    /// The handler cannot read what another version has stored.
    Misfit(String),
}

/// A task that is being run by this process.
pub(crate) struct Run {
    pub(crate) hub: Arc<Hub>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) runner: Runner,
    pub(crate) status: Arc<StatusSlot>,
    /// True if processes have left the task to others before.
    pub(crate) was_left: bool,
}

impl Run {
    /// Runs the handler until it ends, asks, or has to stop.
    pub(crate) async fn drive(self) -> Ran {
        let Self { hub, lease, mut runner, status, was_left } = self;
        let round = runner.round_state().map(Arc::clone);
        if let Some(round) = &round {
            round.keep_in(Arc::clone(&lease) as _);
            lease.keeps(Arc::clone(round) as _);
        }
        let left = lease.with(|record| record.expires().map(|end| end.since(Millis::now()))).await;
        // A handler that is told to stop is not polled again before that is seen to.
        let ended = {
            let mut handler = pin!(poll_fn(|cx| runner.poll(cx)));
            tokio::select! {
                biased;
                stop = lease.stopped() => Err(stop),
                () = elapsed(left) => Err(Stop::Expired),
                outcome = &mut handler => Ok(outcome),
                () = attend(&hub, &lease, &status, was_left) => Err(Stop::Lost),
                () = lease.follow() => Err(Stop::Lost),
                () = lease.show_questions() => Err(Stop::Lost),
                () = pulse(&lease) => Err(Stop::Lost),
            }
        };
        match ended {
            // What the handler has made of a journal that it cannot read does not count.
            Ok(_) if lease.is_misfit() => return Ran::Misfit(lease.misfit()),
            Ok(outcome) => {
                describe(&hub, &lease, &status).await;
                return tokio::select! {
                    ran = conclude(&lease, outcome) => ran,
                    () = pulse(&lease) => Ran::Ended,
                };
            }
            Err(stop @ (Stop::Cancelled | Stop::Misfit)) => {
                tokio::select! {
                    biased;
                    () = lease.lost() => {}
                    () = finish_steps(&mut runner, round.as_deref()) => {}
                    () = attend(&hub, &lease, &status, false) => {}
                    () = pulse(&lease) => {}
                }
                drop(runner);
                if stop == Stop::Misfit {
                    return Ran::Misfit(lease.misfit());
                }
                describe(&hub, &lease, &status).await;
                lease.end(|| Ended::Cancelled).await;
            }
            Err(Stop::Expired) => {
                drop(runner);
                lease.end(|| Ended::Failed(over())).await;
            }
            // Nothing may be written any more, or has to be.
            Err(Stop::Lost | Stop::Released) => {}
        }
        Ran::Ended
    }
}

async fn elapsed(left: Option<Duration>) {
    match left {
        Some(left) => sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Stores descriptions of the task's state and parts of its result, and announces its progress, for as long as it is polled. Clients
/// see that a task is not left any more once its handler has run for a moment: one that does not fit ends before that.
async fn attend(hub: &Hub, lease: &Lease, status: &StatusSlot, was_left: bool) {
    if was_left {
        sleep(PACE).await;
        lease.store().await;
    }
    loop {
        status.is_set().await;
        if describe(hub, lease, status).await {
            lease.store().await;
        }
        sleep(PACE).await;
    }
}

/// Notes that the run is polled, for as long as it is.
async fn pulse(lease: &Lease) {
    loop {
        lease.is_polled();
        sleep(lease.length()).await;
    }
}

/// Announces the task's progress, and takes the description of its state and the new parts of its result into the record. Returns
/// whether there is something to store.
async fn describe(hub: &Hub, lease: &Lease, status: &StatusSlot) -> bool {
    if let Some(progress) = status.take_progress() {
        hub.announce_progress(lease.id().as_str(), &progress);
    }
    lease.note(status).await
}

/// Lets the steps that are running end and be stored, within a bound.
async fn finish_steps(runner: &mut Runner, round: Option<&RoundState>) {
    let Some(round) = round else { return };
    if timeout(LAST_STEP, leave_step(runner, round)).await.is_err() {
        tracing::warn!("a step of a task that was stopped did not end, and was dropped");
    }
}

/// Runs a handler until none of its steps runs: it may be dropped then. Returns its outcome if it ends before.
pub(super) async fn leave_step(runner: &mut Runner, round: &RoundState) -> Option<Outcome> {
    poll_fn(|cx| {
        if !round.is_in_a_step() {
            return Poll::Ready(None);
        }
        match runner.poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if round.is_in_a_step() => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}

/// Stores the outcome of a run.
async fn conclude(lease: &Lease, outcome: Outcome) -> Ran {
    match outcome {
        Ok(ServerResult::InputRequired(_)) => match lease.take_parked() {
            Some(parked) => return Ran::Waits(lease.release(parked).await),
            None => lease.give_back().await,
        },
        Ok(result) => match Raw::of(&result) {
            Ok(result) => lease.end(|| Ended::Completed(result.clone())).await,
            Err(error) => lease.end(|| Ended::Failed(unwritable(&error))).await,
        },
        Err(error) => lease.end(|| Ended::Failed(error.clone())).await,
    }
    Ran::Ended
}
