//! A call that the ledger has to know of: claimed before its handler is polled, recorded before its reply is sent.

use std::future::poll_fn;
use std::time::Duration;

use roundtrip_core::error::BUSY;
use roundtrip_core::seal::{CLOCK_SKEW, Reason, Rejected, Timestamp};
use roundtrip_core::wire::ErrorObject;

use super::key::{self, IDEMPOTENCY_KEY, RoundKey};
use super::recorded::Recorded;
use super::{Book, Claim, Held};
use crate::server::ask::now;
use crate::server::budget::Owner;
use crate::server::call::Call;
use crate::server::hook::Outcome;
use crate::server::run::{Run, Work};

/// A server's ledger, and how long it remembers callers' keys.
#[derive(Debug, Clone)]
pub(crate) struct Keep {
    pub(crate) book: Book,
    pub(crate) keys_for: Duration,
}

/// What has to be done around a call.
pub(crate) struct Duty {
    book: Book,
    key: RoundKey,
    repeatable: Repeatable,
}

/// How long a round can be repeated.
#[derive(Clone, Copy)]
enum Repeatable {
    /// As long as its token is good.
    Until(Timestamp),
    /// As long as its caller's key is remembered.
    For(Duration),
}

impl Repeatable {
    /// Until when to keep the reply. What is still good when it is looked at may take a while to get to the ledger, so
    /// the record stays a little longer.
    fn keep_until(self) -> Timestamp {
        match self {
            Self::Until(end) => end.plus(CLOCK_SKEW),
            Self::For(duration) => now().plus(duration),
        }
    }
}

impl Duty {
    /// Whether a call has to do with the ledger. One that came to an end without its handler has not.
    pub(crate) fn of(call: &Call<'_>, work: &Work) -> Result<Option<Self>, ErrorObject> {
        let start = &call.start;
        let Some(keep) = &start.flows.keep else { return Ok(None) };
        if matches!(work, Work::Ready(_)) {
            return Ok(None);
        }
        let own = call.meta.get(IDEMPOTENCY_KEY).map(key::read).transpose()?;
        let (key, repeatable) = match (start.claims(), own) {
            (Some(claims), _) => {
                (RoundKey::of_token(claims), Repeatable::Until(claims.expires_at.plus(CLOCK_SKEW)))
            }
            (None, Some(own)) => (RoundKey::of_caller(&own, start)?, Repeatable::For(keep.keys_for)),
            (None, None) => return Ok(None),
        };
        let key = key.owned_by(Owner::of(call.peer).digest());
        Ok(Some(Self { book: keep.book.clone(), key, repeatable }))
    }

    /// Puts the claim before a run and the record behind it.
    pub(crate) fn around(self, run: Run) -> Run {
        Work::Other(Box::pin(self.fulfil(run))).into()
    }

    async fn fulfil(self, run: Run) -> Outcome {
        // Hooks may have taken their time.
        if matches!(self.repeatable, Repeatable::Until(end) if now() > end) {
            let rejected = Rejected::from(Reason::Expired);
            tracing::warn!(reason = %rejected, "request state refused");
            return Err(rejected.error_object());
        }
        let held = match self.book.0.claim(&self.key, self.repeatable.keep_until()).await {
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
                tracing::error!(error = &error as &dyn std::error::Error, "a round cannot be claimed");
                return Err(ErrorObject::new(BUSY, "the server is busy: try again later"));
            }
        };
        // Moved here to be dropped first: the handler is gone before somebody else may run it.
        let mut run = run;
        let outcome = poll_fn(|cx| run.poll(cx)).await;
        self.record(held, outcome).await
    }

    async fn record(&self, held: Box<dyn Held>, outcome: Outcome) -> Outcome {
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
        // What the round did is done: its reply is better than none, even if there is no second copy of it.
        if let Err(error) = held.record(reply, self.repeatable.keep_until()).await {
            tracing::error!(error = &error as &dyn std::error::Error, "a reply could not be recorded");
        }
        recorded.into_outcome()
    }
}
