//! [`Promotion`]: a call that may become a task: at once, after a while, or where its handler says so.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use roundtrip_core::seal::Digest;
use tokio::time::sleep;

use super::dialect::Dialect;
use super::errors::read_view;
use super::run::leave_step;
use super::service::TaskService;
use crate::server::limits::Weight;
use crate::server::notify::status::StatusSlot;
use crate::server::outcome::Outcome;
use crate::server::round::{RoundState, Snapshot as _};
use crate::server::run::commitment::Commitment;
use crate::server::run::runner::{Runner, Work};
use crate::server::when::When;
use crate::task::{TaskCall, TaskOwner};

/// A call that may become a task.
pub(crate) struct Promotion {
    pub(crate) service: Arc<TaskService>,
    pub(crate) when: When,
    pub(crate) call: TaskCall,
    pub(crate) owner: TaskOwner,
    pub(crate) account: Digest,
    /// Room for the copy of the message in `call`.
    pub(crate) bytes: Weight,
    pub(crate) status: Arc<StatusSlot>,
    pub(crate) dialect: Dialect,
    /// Time to live of the task.
    pub(crate) ttl: Duration,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Made while the task is being created.
    pub(crate) commitment: Commitment,
}

impl Promotion {
    /// Wraps a run: its reply is the task, once it is one.
    pub(crate) fn around(self, runner: Runner) -> Runner {
        Work::Other(Box::pin(self.run(runner))).into()
    }

    async fn run(self, mut runner: Runner) -> Outcome {
        self.service.ensure_works();
        let When::After(duration) = self.when else { return self.promote_at_once(runner).await };
        let round = runner.round_state().map(Arc::clone);
        if let Some(round) = &round {
            round.allow_detaching(true);
        }
        if let Some(outcome) = wait(&mut runner, round.as_deref(), duration).await {
            return outcome;
        }
        let mut slot = self.service.slot();
        if slot.is_none() {
            // Without a place its handler must not go on past the call. One that can be replayed is left to a worker.
            let Some(round) = &round else { return poll_fn(|cx| runner.poll(cx)).await };
            if let Some(outcome) = leave_step(&mut runner, round).await {
                return outcome;
            }
            slot = self.service.slot();
        }
        let (flow, journal) = round.as_ref().map(|round| (round.flow(), round.snapshot())).unzip();
        let (call, owner) = ((self.tool.clone(), self.call), (self.owner, self.account));
        let lease = (self.ttl, slot.is_some());
        let created = self.service.create((call, flow, journal), owner, lease, &self.commitment);
        match created.await {
            Ok((record, stored)) => {
                let view = read_view(&stored.view)?;
                if let Some(slot) = slot {
                    self.service.run((stored, record), (runner, self.status), (slot, self.bytes));
                }
                Ok(self.dialect.created(view, &self.tool))
            }
            Err(error) => {
                tracing::warn!(%error, "a call cannot become a task, and goes on as it is");
                drop(slot);
                if let Some(round) = &round {
                    round.allow_detaching(false);
                }
                poll_fn(|cx| runner.poll(cx)).await
            }
        }
    }

    /// Makes a task of a call whose handler has not begun. Where this process has no place for it, another worker takes it.
    async fn promote_at_once(self, runner: Runner) -> Outcome {
        let slot = self.service.slot();
        let (flow, journal) = runner.round_state().map(|round| (round.flow(), round.snapshot())).unzip();
        let (call, owner) = ((self.tool.clone(), self.call), (self.owner, self.account));
        let lease = (self.ttl, slot.is_some());
        let created = self.service.create((call, flow, journal), owner, lease, &self.commitment);
        let (record, stored) = created.await?;
        let view = read_view(&stored.view)?;
        if let Some(slot) = slot {
            self.service.run((stored, record), (runner, self.status), (slot, self.bytes));
        }
        Ok(self.dialect.created(view, &self.tool))
    }
}

/// Runs a handler inside its call. Returns its outcome, or `None` once it is to become a task.
async fn wait(runner: &mut Runner, round: Option<&RoundState>, duration: Duration) -> Option<Outcome> {
    let mut elapsed = pin!(sleep(duration));
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = runner.poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        if round.is_some_and(RoundState::wants_to_detach) || elapsed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}
