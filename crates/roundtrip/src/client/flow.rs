//! One request of a flow: it is sent, and the core decides what comes next. The flow's settings are here too.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::error::{Error, PeerMisbehaved};
use roundtrip_core::exchange::{Action, Exchange, FlowLimits, Params, Pending, TaskDialect};
use roundtrip_core::wire::{CallTool, Method, Raw, Task, TaskStatus};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::builder::Client;
use super::options::Options;
use super::page::check_pages;
use super::request::{Request, raw};
use super::send::fetch;

type OnRound<M> = Box<dyn FnMut(&Pending<M>) -> Result<(), Error> + Send>;
type OnStatus = Box<dyn FnMut(&Task) + Send>;

/// Settings of a call for its rounds.
pub(crate) struct Rounds<M> {
    pub(crate) limits: FlowLimits,
    pub(crate) deadline: Option<Duration>,
    pub(crate) idempotency_key: Option<String>,
    /// True if the flow begins anew, once, when the server no longer accepts its state.
    pub(crate) restarts: bool,
    pub(crate) on_round: Option<OnRound<M>>,
    pub(crate) on_status: Option<OnStatus>,
    /// Status and message that the hook was last called with.
    told: Option<(TaskStatus, Option<String>)>,
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
        let mut exchange = Exchange::new(request.into_params())
            .limits(self.limits)
            .with_meta(meta)
            .idempotency_key(self.idempotency_key.take());
        if M::NAME == CallTool::NAME && client.offers_tasks() && client.dialect() == TaskDialect::Sep2322 {
            exchange.ask_for_task(options.task.ttl);
        }
        exchange
    }

    /// Returns the flow begun anew, if it may begin anew where this request fails.
    pub(crate) fn restart_of(&self, exchange: &Exchange<M>) -> Option<Exchange<M>> {
        (self.restarts && exchange.has_state()).then(|| exchange.restart())
    }

    /// Calls the hook with a round, which it may refuse (C13).
    pub(crate) fn see(&mut self, pending: &Pending<M>) -> Result<(), Error> {
        self.on_round.as_mut().map_or(Ok(()), |on_round| on_round(pending))
    }

    /// Calls the hook with a task whose status or message is not the one it was last called with.
    pub(crate) fn tell(&mut self, task: &Task) {
        let Some(on_status) = &mut self.on_status else { return };
        let news = (task.status, task.status_message.clone());
        if self.told.as_ref() != Some(&news) {
            self.told = Some(news);
            on_status(task);
        }
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
            on_status: None,
            told: None,
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
    mut exchange: Exchange<M>,
    options: &mut Options,
) -> Result<(Action<M>, Begun<'a>), Error> {
    let (is_about_task, begun) = (exchange.is_about_task(), Instant::now());
    let sent = match outcome(client, &exchange, options).await {
        Err(error) if M::NAME == CallTool::NAME && !is_about_task && client.learns_from(&error) => {
            exchange.ask_for_task(options.task.ttl);
            outcome(client, &exchange, options).await
        }
        sent => sent,
    };
    let (target, result) = match sent {
        Ok(sent) => sent,
        Err(error) => return Ok((exchange.refused(error)?, Begun { client, result: None })),
    };
    // A flow that has gone as far as it may ends here, with a round that does not go on.
    let mut round = Begun { client, result: (!is_about_task).then(|| Arc::clone(&result)) };
    let is_bare = !is_about_task || exchange.is_for_payload();
    let step = exchange.reply((*result).as_ref(), begun.elapsed())?;
    if matches!(step, Action::Done(_) | Action::Wait(_)) {
        round.result = None;
    }
    match &step {
        Action::Done(_) if is_bare => check(client, &step, target.as_deref(), Some(&result))?,
        Action::Done(_) => check(client, &step, target.as_deref(), Some(&result_of_task(&result)?))?,
        Action::Wait(task) if !is_about_task && !client.offers_tasks() => {
            let why = format!("{} became a task, which this client did not offer", task.request_name());
            return Err(PeerMisbehaved::NotOffered(why).into());
        }
        _ => check(client, &step, None, None)?,
    }
    Ok((step, round))
}

/// Checks what a server has sent: the output of its tool, and the pages that it sends people to.
pub(crate) fn check<M: Method>(
    client: &Client,
    step: &Action<M>,
    tool: Option<&str>,
    result: Option<&Raw>,
) -> Result<(), Error> {
    match (step, result) {
        (Action::Done(_), Some(result)) if M::NAME == CallTool::NAME => {
            client.tools().check(tool.unwrap_or_default(), result)
        }
        (Action::Ask(pending), _) => check_pages(pending, client.client_limits()),
        _ => Ok(()),
    }
}

/// Sends one request of a flow. Returns the target of its call, and its result.
pub(crate) async fn outcome<M: Method>(
    client: &Client,
    exchange: &Exchange<M>,
    options: &mut Options,
) -> Result<(Option<String>, Arc<Raw>), Error> {
    options.request_key = exchange.request_key().map(|key| raw(&key, "an idempotency key")).transpose()?;
    options.dialect = exchange.dialect();
    options.related_task = exchange.related_task().map(|id| json!({ "taskId": id }).into());
    let target = exchange.request_name().target;
    let request = Request::borrowing(exchange.method(), exchange.params());
    // Errors name the tool: the identifier of a task may be all that it takes to reach the task.
    let request = if exchange.is_about_task() { request.about(target.clone()) } else { request };
    let result = fetch(client, &request, options).await.map_err(|error| exchange.failed(error))?;
    Ok((target, result))
}

/// Returns the result in a task that is `completed`.
fn result_of_task(task: &Raw) -> Result<Raw, Error> {
    #[derive(Deserialize)]
    struct Peek {
        result: Raw,
    }
    let peek: Peek =
        task.to().map_err(|error| PeerMisbehaved::MalformedResult(format!("`tasks/get`: {error}")))?;
    Ok(peek.result)
}
