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
use super::places::Place;
use super::run::leave_step;
use super::service::{Created, Creation, TaskService};
use crate::server::limits::Weight;
use crate::server::notify::status::StatusSlot;
use crate::server::outcome::Outcome;
use crate::server::round::RoundState;
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
    /// OAuth client that its answers have to come from.
    pub(crate) client: Option<Digest>,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Kind of its tasks.
    pub(crate) kind: Digest,
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
        let mut slot = self.service.slot(self.account);
        if slot.is_none() {
            // Without a place its handler must not go on past the call. One that can be replayed is left to a worker.
            let Some(round) = &round else { return poll_fn(|cx| runner.poll(cx)).await };
            if let Some(outcome) = leave_step(&mut runner, round).await {
                return outcome;
            }
            slot = self.service.slot(self.account);
        }
        let creation = self.creation(round.as_deref(), slot.is_some());
        match self.service.create(creation, &self.commitment).await {
            Ok(created) => self.created(created, runner, slot),
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
        let slot = self.service.slot(self.account);
        let creation = self.creation(runner.round_state().map(|round| &**round), slot.is_some());
        let created = self.service.create(creation, &self.commitment).await?;
        self.created(created, runner, slot)
    }

    /// Returns the task that the call becomes, with the journal of its round.
    fn creation(&self, round: Option<&RoundState>, is_held: bool) -> Creation<'_> {
        Creation {
            tool: self.tool.clone(),
            kind: self.kind,
            call: &self.call,
            flow: round.map(RoundState::flow),
            journal: round.map(RoundState::first_piece),
            owner: self.owner,
            account: self.account,
            ttl: self.ttl,
            client: self.client,
            is_held,
        }
    }

    /// Continues with a task that was created, and returns the reply to its call.
    fn created(self, created: Created, runner: Runner, slot: Option<Place>) -> Outcome {
        let view = read_view(&created.view)?;
        if let Some(slot) = slot {
            self.service.run(created, (runner, self.status), (slot, self.bytes));
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
