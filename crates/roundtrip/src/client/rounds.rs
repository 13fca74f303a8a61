//! The client's loop over the rounds of a call: the core decides each step, and this carries it out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::error::{ApiMisuse, Error, ServerRejection};
use roundtrip_core::exchange::{Action, Exchange, FlowLimits, Params, Pending};
use roundtrip_core::wire::{CallTool, Method, Raw};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::builder::Client;
use super::handlers::ask;
use super::options::Options;
use super::page::check_pages;
use super::request::{Request, raw};
use super::send::{fetch, within};

type OnRound<M> = Box<dyn FnMut(&Pending<M>) -> Result<(), Error> + Send>;

/// Settings of a call for its rounds.
pub(crate) struct Rounds<M> {
    pub(crate) limits: FlowLimits,
    pub(crate) deadline: Option<Duration>,
    pub(crate) idempotency_key: Option<String>,
    /// True if the flow begins anew, once, when the server no longer accepts its state.
    pub(crate) restarts: bool,
    pub(crate) on_round: Option<OnRound<M>>,
}

impl<M: Method> Rounds<M> {
    /// Begins the flow with the first request of a call.
    pub(crate) fn begin(
        &mut self,
        client: &Client,
        request: Request<'static>,
        options: &Options,
    ) -> Exchange<M> {
        self.limits.questions = client.client_limits().questions;
        let meta: Params = options.extra.iter().cloned().collect();
        Exchange::new(request.into_params())
            .limits(self.limits)
            .with_meta(meta)
            .idempotency_key(self.idempotency_key.take())
    }

    /// Returns the flow begun anew, if it may begin anew where this request fails.
    fn restart_of(&self, exchange: &Exchange<M>) -> Option<Exchange<M>> {
        (self.restarts && exchange.has_state()).then(|| exchange.restart())
    }

    /// Calls the hook with a round, which it may refuse (C13).
    pub(crate) fn see(&mut self, pending: &Pending<M>) -> Result<(), Error> {
        self.on_round.as_mut().map_or(Ok(()), |on_round| on_round(pending))
    }
}

/// Derived, this would want `M` to have a default.
impl<M> Default for Rounds<M> {
    fn default() -> Self {
        Self {
            limits: FlowLimits::default(),
            deadline: None,
            idempotency_key: None,
            restarts: false,
            on_round: None,
        }
    }
}

impl<M> fmt::Debug for Rounds<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds")
            .field("limits", &self.limits)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Makes a call, through as many rounds as it takes. Nothing is spawned: dropping the future ends the call (C12).
pub(crate) async fn call<M: Method>(
    client: &Client,
    request: Request<'static>,
    options: &mut Options,
    mut rounds: Rounds<M>,
) -> Result<M::Result, Error> {
    let deadline = rounds.deadline;
    let mut exchange = rounds.begin(client, request, options);
    let name = deadline.map(|_| exchange.request_name());
    let flow = async {
        loop {
            let restart = rounds.restart_of(&exchange);
            let (step, begun) = match (leg(client, exchange, options).await, restart) {
                (Err(error), Some(restart)) if is_expired(&error) => {
                    tracing::debug!(%error, "the state expired: the call begins anew");
                    rounds.restarts = false;
                    exchange = restart;
                    continue;
                }
                (outcome, _) => outcome?,
            };
            let pending = match step {
                Action::Done(result) => return Ok(result),
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
    };
    match (deadline, name) {
        (Some(deadline), Some(name)) => within(deadline, || name, flow).await,
        _ => flow.await,
    }
}

/// Returns whether a round failed because its state is too old, or was lost.
fn is_expired(error: &Error) -> bool {
    matches!(
        error,
        Error::Rejected(ServerRejection::StateRejected(_)) | Error::ApiMisuse(ApiMisuse::CallNotOpen(_))
    )
}

/// Guard of a round that waits for its answers. Dropped without them, it tells the transport.
pub(crate) struct Begun<'a> {
    client: &'a Client,
    /// Result that asks; its `requestState` is read only where it is needed.
    result: Option<Arc<Raw>>,
}

impl Begun<'_> {
    /// Disarms the guard: the round goes on, or will.
    pub(crate) fn goes_on(mut self) {
        self.result = None;
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Peek {
            request_state: String,
        }
        if let Some(Peek { request_state }) = self.result.take().and_then(|result| result.to().ok()) {
            self.client.transport().abandon(&request_state);
        }
    }
}

/// Sends one request of a flow and returns the next step.
pub(crate) async fn leg<'a, M: Method>(
    client: &'a Client,
    exchange: Exchange<M>,
    options: &mut Options,
) -> Result<(Action<M>, Begun<'a>), Error> {
    options.request_key = exchange.request_key().map(|key| raw(&key, "an idempotency key")).transpose()?;
    let request = Request::borrowing(M::NAME, exchange.params());
    let (target, begun) = (request.target(), Instant::now());
    let result = fetch(client, &request, options).await?;
    // A flow that has gone as far as it may ends here, with a round that does not go on.
    let mut round = Begun { client, result: Some(Arc::clone(&result)) };
    let step = exchange.reply((*result).as_ref(), begun.elapsed())?;
    match &step {
        Action::Done(_) => {
            round.result = None;
            if M::NAME == CallTool::NAME {
                client.tools().check(&target.unwrap_or_default(), &result)?;
            }
        }
        Action::Ask(pending) => check_pages(pending, client.client_limits())?,
        Action::Pause(..) => {}
    }
    Ok((step, round))
}
