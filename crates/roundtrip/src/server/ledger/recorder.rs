//! [`Recorder`]: claims a round before its handler is polled, records its reply before it is sent.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use roundtrip_core::error::{BUSY, needed_scope};
use roundtrip_core::seal::{CLOCK_SKEW, Digest, Reason, Rejected, Timestamp};
use roundtrip_core::wire::{ErrorObject, ServerResult};

use super::key::{self, IDEMPOTENCY_KEY, RoundKey};
use super::recorded::Recorded;
use super::{Claim, ClaimGuard, LedgerError, LedgerHandle};
use crate::server::budget::Owner;
use crate::server::clock::now;
use crate::server::handler::call::Call;
use crate::server::limits::Admission;
use crate::server::outcome::{Outcome, OutcomeFuture};
use crate::server::round::RoundState;
use crate::server::run::commitment::Commitment;
use crate::server::run::runner::{Runner, Work};

/// A server's ledger, and the time for which it remembers callers' keys.
#[derive(Debug, Clone)]
pub(crate) struct LedgerConfig {
    pub(crate) ledger: LedgerHandle,
    pub(crate) keys_for: Duration,
}

/// Wraps a run: claims the round in the ledger before the first poll, records the reply before it is sent.
pub(crate) struct Recorder {
    ledger: LedgerHandle,
    key: RoundKey,
    repeatable: Repeatable,
    /// State of the round, if its handler can ask. It is that of the call: a run that may become a task has none to show.
    round: Option<Arc<RoundState>>,
    admission: Arc<Admission>,
    /// The caller, in whose share of calls the round ends if the client hangs up.
    owner: Owner,
}

/// Time for which a round can be repeated.
#[derive(Clone, Copy)]
enum Repeatable {
    /// Until its token has expired. Other tokens stand for it too, if rounds before it were no progress: none made by now lives
    /// longer than this duration.
    Until(Timestamp, Duration),
    /// As long as its caller's key is remembered.
    For(Duration),
}

impl Repeatable {
    /// Returns the time until which to keep the reply. A request whose token has just not expired may take a while to get
    /// to the ledger, so the record stays a little longer.
    fn keep_until(self) -> Timestamp {
        match self {
            Self::Until(end, longest) => end.max(now().plus(longest)).plus(CLOCK_SKEW),
            Self::For(duration) => now().plus(duration),
        }
    }
}

impl Recorder {
    /// Creates the recorder of a call, if its round is to be recorded. A call that ended without its handler is not.
    pub(crate) fn of(
        config: &LedgerConfig,
        call: &Call<'_>,
        work: &Work,
    ) -> Result<Option<Self>, ErrorObject> {
        let input = &call.input;
        if matches!(work, Work::Ready(_)) {
            return Ok(None);
        }
        let own = call.meta.get(IDEMPOTENCY_KEY).map(key::read).transpose()?;
        let (key, repeatable) = match (input.claims(), own) {
            (Some(claims), _) => {
                let (stalled, skew) = (input.stalled(), input.flows.sealer.clock_skew());
                let until =
                    Repeatable::Until(claims.expires_at.plus(skew), stalled.longest.saturating_add(skew));
                (RoundKey::of_token(claims, stalled), until)
            }
            (None, Some(own)) => (RoundKey::of_caller(&own, input)?, Repeatable::For(config.keys_for)),
            (None, None) => return Ok(None),
        };
        let owner = Owner::of(call.peer);
        // Services that share a ledger do not share the shares of callers without a principal.
        let (audience, caller) = (input.flows.audience.as_bytes(), owner.digest());
        let key = key.owned_by(Digest::of("ledger share", &[audience, caller.as_bytes()]));
        let round = input.flow.as_ref().map(|flow| Arc::clone(&flow.round));
        let admission = Arc::clone(&input.flows.admission);
        Ok(Some(Self { ledger: config.ledger.clone(), key, repeatable, round, admission, owner }))
    }

    /// Wraps a run: claims the round before it, records the reply after it. `commitment` is that of the run, where it may become
    /// a task.
    pub(crate) fn around(self, run: Runner, commitment: Commitment) -> Runner {
        let (round, admission, owner) = (self.round.clone(), Arc::clone(&self.admission), self.owner.clone());
        let work: OutcomeFuture = Box::pin(self.fulfil(run, commitment.clone()));
        Work::Other(Box::pin(RecordedRun { work: Some(work), round, commitment, admission, owner })).into()
    }

    async fn fulfil(self, run: Runner, commitment: Commitment) -> Outcome {
        // The token may have expired while hooks ran.
        if matches!(self.repeatable, Repeatable::Until(end, _) if now() > end) {
            let rejected = Rejected::from(Reason::Expired);
            tracing::warn!(reason = %rejected, "`requestState` refused");
            return Err(rejected.error_object());
        }
        let held = match self.ledger.0.claim(&self.key, self.repeatable.keep_until()).await {
            Ok(Claim::Run(held)) => held,
            Ok(Claim::Replay(reply)) => {
                tracing::debug!("this round has been run: its reply is sent again");
                return Recorded::read(&reply);
            }
            Ok(Claim::OtherCall) => {
                return Err(ErrorObject::invalid_params(format!(
                    "params._meta.{IDEMPOTENCY_KEY}: this key was used for another call: \
                     another method, another target or other arguments"
                )));
            }
            Err(error) => {
                let error_text = &error as &dyn std::error::Error;
                // Every caller past its share would fill the log.
                if matches!(error, LedgerError::Full) {
                    tracing::debug!(error = error_text, "a round cannot be claimed");
                } else {
                    tracing::error!(error = error_text, "a round cannot be claimed");
                }
                return Err(ErrorObject::new(BUSY, "the server is busy: try again later"));
            }
        };
        let _claimed = self.admission.claimed();
        // Moved here to be dropped first: the handler is gone before another request may run it.
        let mut run = run;
        let outcome = poll_fn(|cx| run.poll(cx)).await;
        if self.leaves_round_open(&outcome) {
            return outcome;
        }
        commitment.set(true);
        self.record(held, outcome).await
    }

    /// Returns whether a round only asked again or handed off: it settled no answer, began no step and kept no new state.
    /// Its token stays good, so that the answers that do count can still be given. So does that of a round whose caller lacks
    /// scopes: the caller comes back with more of them (O34).
    fn leaves_round_open(&self, outcome: &Outcome) -> bool {
        if outcome.as_ref().is_err_and(|error| needed_scope(error).is_some()) {
            return true;
        }
        matches!(self.repeatable, Repeatable::Until(..))
            && matches!(outcome, Ok(ServerResult::InputRequired(_)))
            && self.round.as_ref().is_some_and(|round| !round.has_advanced())
    }

    async fn record(&self, held: Box<dyn ClaimGuard>, outcome: Outcome) -> Outcome {
        let recorded = match Recorded::of(outcome) {
            Ok(recorded) => recorded,
            Err(outcome) => return outcome,
        };
        let reply = match recorded.write() {
            Ok(reply) => reply,
            Err(error) => {
                return Err(ErrorObject::internal(format!("the result does not serialise: {error}")));
            }
        };
        // The round has had its effects: its reply is better than none, even if there is no second copy of it.
        match held.record(reply, self.repeatable.keep_until()).await {
            Ok(()) => {}
            Err(LedgerError::Deferred(error)) => {
                tracing::debug!(error = &*error as &dyn std::error::Error, "a reply will be recorded later");
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a reply could not be recorded");
            }
        }
        recorded.into_outcome()
    }
}

/// A run under a claim. Dropped before its end, because the client hung up, it goes on by itself if its handler has begun a
/// step, it is becoming a task or its reply is being recorded: to drop it then would let the round run again, and its effects
/// with it (M6).
struct RecordedRun {
    /// `None` once it has ended.
    work: Option<OutcomeFuture>,
    round: Option<Arc<RoundState>>,
    commitment: Commitment,
    admission: Arc<Admission>,
    owner: Owner,
}

impl Future for RecordedRun {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let outcome = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(outcome)
    }
}

impl Drop for RecordedRun {
    fn drop(&mut self) {
        let stepped = self.round.as_ref().is_some_and(|round| round.has_stepped());
        if let Some(work) = self.work.take()
            && (stepped || self.commitment.is_made())
        {
            self.admission.finish(work, &self.owner);
        }
    }
}
