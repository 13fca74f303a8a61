//! Opens `requestState` at the start of a round, and seals it at the end.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use roundtrip_core::round::{Journal, Stalled};
use roundtrip_core::seal::{Binding, Claims, Digest, FlowId, Opened, Rejected, SealError, Sealer};
use roundtrip_core::wire::{ErrorObject, InputRequiredResult, ServerResult};
use tokio::time::Sleep;

use super::keeper::ParkedRound;
use super::state::{Asked, RoundState, Suspended, Suspension};
use super::trace::Trace;
use crate::server::clock::{now, random};
use crate::server::limits::Admission;
use crate::server::notify::outbox::Outbox;
use crate::server::outcome::{Conclusion, Outcome, given_up};

/// Claims and journal of an opened `requestState`.
pub(crate) type OpenedState = (Claims, Journal);

/// Settings of a server's flows.
pub(crate) struct FlowConfig {
    pub(crate) sealer: Sealer,
    pub(crate) audience: String,
    /// Its digest.
    pub(crate) known_audience: Digest,
    /// Time for an answer, unless its question says otherwise.
    pub(crate) valid_for: Duration,
    /// True if parts of results are for clients that do not declare the extension, too.
    pub(crate) stream_undeclared: bool,
    /// Most rounds of a flow that may ask (M21).
    pub(crate) max_rounds: u32,
    /// Admission control, which knows whether the server drains or sheds load.
    pub(crate) admission: Arc<Admission>,
    /// Set by tests that look at how keys are used.
    pub(crate) trace: Option<Arc<Trace>>,
    /// True if the server has telemetry. The context around a call may be another server's.
    #[cfg(feature = "opentelemetry")]
    pub(crate) reports: bool,
}

/// One call's place in its flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) round: Arc<RoundState>,
    pub(crate) flow: FlowId,
    pub(crate) method: &'static str,
    pub(crate) binding: Binding,
    /// Claims of the token that this round began with.
    pub(crate) claims: Option<Claims>,
    /// Rounds before this one that were no progress.
    pub(crate) stalled: Stalled,
    pub(crate) flows: Arc<FlowConfig>,
    /// Runs while a question waits for a step to end.
    pub(crate) behind_step: Option<Pin<Box<Sleep>>>,
    /// Notifications of the handler, if it can send any.
    pub(crate) outbox: Option<Arc<Outbox>>,
}

impl FlowConfig {
    /// Opens a state that came with a request. What is wrong with it is for the log (S6).
    pub(crate) async fn open(&self, token: &str, binding: &Binding) -> Result<OpenedState, ErrorObject> {
        opened(self.sealer.open(token, binding, now()).await)
    }

    /// The same with a key ring, where nothing has to be waited for.
    pub(crate) fn open_now(&self, token: &str, binding: &Binding) -> Result<OpenedState, ErrorObject> {
        match self.sealer.open_now(token, binding, now()) {
            Some(result) => opened(result),
            None => Err(ErrorObject::internal("the codec of `requestState` has to be waited for")),
        }
    }

    /// Builds the `InputRequiredResult` of a suspended round: its questions, and the sealed journal.
    pub(crate) async fn conclude(&self, flow: &Flow, suspended: Suspended) -> Outcome {
        let Suspended { mut journal, asked, misuse, stateless, advanced, waits, stepped } = suspended;
        if let Some(misuse) = misuse {
            return Err(misuse.into());
        }
        let keeper = flow.round.keeper();
        let max_rounds = self.max_rounds;
        // A task counts what it shows.
        if let Some(keeper) = keeper {
            let pins = asked.iter().map(|asked| (&*asked.key, asked.pin));
            let (stateful, journal) = (journal.state().is_some(), journal.last_piece(pins));
            let asked = asked.into_iter().map(|asked| (asked.key, asked.pin, asked.request)).collect();
            keeper.park(ParkedRound { journal, asked, stateful, waits, stepped, max_rounds });
            return Ok(ServerResult::InputRequired(Box::default()));
        }
        if !asked.is_empty() && journal.count_round() > max_rounds {
            return given_up(
                flow.method,
                format!("this call has asked {max_rounds} times without coming to an end"),
            );
        }
        let claims = self.next_claims(flow, &asked);
        if flow.claims.is_some() {
            // A token that lives longer than all that stand for this round before it begins a round of its own: a ledger could
            // not tell how long to remember this one.
            if advanced || claims.lifetime() > flow.stalled.longest {
                flow.round.set_advanced();
            } else {
                journal.count_stalled(flow.stalled.longest);
            }
        }
        if let Some(outbox) = &flow.outbox {
            journal.set_sent(outbox.take_sent());
        }
        #[cfg(feature = "opentelemetry")]
        if let Some(trace) = self.reports.then(crate::telemetry::trace_of_round).flatten() {
            journal.set_trace(trace);
        }
        let request_state = if stateless { None } else { Some(self.seal(&claims, &journal, &asked).await?) };
        Ok(ServerResult::InputRequired(Box::new(InputRequiredResult {
            input_requests: asked.into_iter().map(|asked| (asked.key.into_owned(), asked.request)).collect(),
            request_state,
            ..InputRequiredResult::default()
        })))
    }

    /// Returns the rounds before one that were no progress, with the longest time for which the tokens that stand for this
    /// round can be presented.
    pub(crate) fn stalled(&self, claims: Option<&Claims>, journal: &Journal) -> Stalled {
        let Stalled { rounds, longest } = journal.stalled();
        let own = claims.map_or(Duration::ZERO, Claims::lifetime);
        Stalled { rounds, longest: longest.max(own).max(self.valid_for) }
    }

    /// Returns the claims of the token that a round ends with.
    fn next_claims(&self, flow: &Flow, asked: &[Asked]) -> Claims {
        let valid_for = asked.iter().map(|asked| asked.valid_for.unwrap_or(self.valid_for)).max();
        let valid_for = valid_for.unwrap_or(self.valid_for);
        match &flow.claims {
            Some(claims) => claims.next_round(now(), valid_for),
            None => Claims::begin(flow.flow, flow.binding, now(), valid_for),
        }
    }

    async fn seal(&self, claims: &Claims, journal: &Journal, asked: &[Asked]) -> Result<String, ErrorObject> {
        let payload = journal.encode(asked.iter().map(|asked| (&*asked.key, asked.pin)));
        let token = self.sealer.seal(claims, &payload, random()?).await.map_err(|error| {
            let (key, size) = journal.largest().unwrap_or_default();
            tracing::error!(%error, flow = %claims.flow, key, size, "the round's state cannot be sealed");
            match error {
                SealError::TooLarge { .. } => {
                    ErrorObject::internal(format!("{error}; the most is {}, {size} bytes", place(key)))
                }
                _ => ErrorObject::internal("internal error"),
            }
        })?;
        if self.sealer.allowed().is_heavy(token.len()) {
            let (key, size) = journal.largest().unwrap_or_default();
            tracing::warn!(
                characters = token.len(),
                key,
                size,
                "the round's state has reached half of what is allowed"
            );
        }
        Ok(token)
    }
}

/// Reads the journal out of an opened `requestState`. The reason of a refusal is for the log (S6).
fn opened(opened: Result<Opened, Rejected>) -> Result<OpenedState, ErrorObject> {
    let Opened { claims, payload } = opened.map_err(|rejected| {
        tracing::warn!(reason = %rejected, "request state refused");
        rejected.error_object()
    })?;
    let journal = Journal::decode(&payload).map_err(|error| {
        tracing::warn!(%error, flow = %claims.flow, "request state refused");
        Rejected::from(roundtrip_core::seal::Reason::Malformed).error_object()
    })?;
    Ok((claims, journal))
}

impl Flow {
    /// Ends the round if the handler waits for nothing but answers, or has waited too long for a step to end.
    pub(crate) fn suspend(&mut self, cx: &mut Context<'_>) -> Option<Suspended> {
        match self.round.suspend(cx) {
            Suspension::Ended(suspended) => Some(suspended),
            // A task shows its questions, and runs on.
            Suspension::None | Suspension::BehindStep if self.round.keeper().is_some() => {
                self.behind_step = None;
                self.round.show(self.flows.max_rounds);
                None
            }
            Suspension::None => {
                self.behind_step = None;
                None
            }
            Suspension::BehindStep => {
                let bound = self.flows.admission.limits().question_behind_step;
                let waiting = self.behind_step.get_or_insert_with(|| Box::pin(tokio::time::sleep(bound)));
                waiting.as_mut().poll(cx).is_ready().then(|| self.round.give_up_on_steps(bound))
            }
        }
    }

    /// Ends a round whose handler has returned with its questions.
    pub(crate) fn returned(&self) -> Option<Suspended> {
        self.round.returned()
    }

    /// Ends a round whose handler was refused for lack of scopes, if there are steps to keep.
    pub(crate) fn refused(&self) -> Option<Suspended> {
        self.round.refused()
    }

    /// Concludes the round with its answer.
    pub(crate) fn conclude(self: Box<Self>, suspended: Suspended) -> Conclusion {
        if !self.flows.sealer.seals_now() {
            return Conclusion::Later(Box::pin(async move { self.flows.conclude(&self, suspended).await }));
        }
        // Nothing here waits for anything, so there is nothing to put into a box.
        let concluding = pin!(self.flows.conclude(&self, suspended));
        match concluding.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Conclusion::Now(outcome),
            Poll::Pending => Conclusion::Now(Err(ErrorObject::internal("internal error"))),
        }
    }
}

/// Names a place in a journal, for an error text. State of the author's own has no key.
fn place(key: &str) -> String {
    if key.is_empty() { "the round's own state".to_owned() } else { format!("under `{key}`") }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.round.close();
    }
}

impl fmt::Debug for FlowConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowConfig")
            .field("sealer", &self.sealer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}
