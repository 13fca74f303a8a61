//! The state machine: a request, and the action that its reply leads to.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::value::RawValue;

use super::flow::Flow;
use super::limits::FlowLimits;
use super::params::Params;
use super::pending::Pending;
use crate::error::{Error, PeerMisbehaved, RequestName};
use crate::wire::{
    CallTool, GetPrompt, InputRequiredResult, MayAsk, Method, ReadResource, ResultError, RoundResult,
    decode_complete, decode_round_result,
};

/// The next request of a flow.
#[derive(Debug, Clone)]
#[must_use = "an exchange does nothing until its request is sent"]
pub struct Exchange<M> {
    pub(super) flow: Flow,
    pub(super) method: PhantomData<fn() -> M>,
}

/// Next action of the client after a reply.
#[derive(Debug)]
#[must_use = "the flow goes on only when the action is taken"]
pub enum Action<M: Method> {
    /// The flow has ended with this result.
    Done(M::Result),
    /// The server asks: answer every question and continue with [`Pending::resume`].
    Ask(Pending<M>),
    /// The server asks nothing: wait this long and continue with [`Pending::resume`].
    Pause(Duration, Pending<M>),
}

impl<M: Method> Exchange<M> {
    /// Creates the first request of a flow. The parameters are those of the method, without `_meta`.
    pub fn new(params: Params) -> Self {
        Self { flow: Flow::new(params), method: PhantomData }
    }

    /// Sets the limits of the flow.
    pub fn limits(mut self, limits: FlowLimits) -> Self {
        self.flow.limits = limits;
        self
    }

    /// Adds members to the `_meta` of every request of the flow.
    pub fn with_meta(mut self, meta: Params) -> Self {
        self.flow.meta = meta;
        self
    }

    /// Sets the flow's idempotency key, by which a server tells a request sent twice from two requests.
    pub fn idempotency_key(mut self, key: Option<String>) -> Self {
        self.flow.idempotency_key = key;
        self
    }

    /// Returns the name of the request, for errors.
    pub fn request_name(&self) -> RequestName {
        self.flow.request_name(M::NAME)
    }

    /// Returns the parameters to send: the original ones, and in a retry the `inputResponses` and `requestState` of
    /// the round before, where that had any.
    pub fn params(&self) -> &Params {
        &self.flow.params
    }

    /// Returns the caller's additions to `_meta`.
    pub fn meta(&self) -> &Params {
        &self.flow.meta
    }

    /// Returns the idempotency key of this request: the flow's key and the number of the request. It is the same each
    /// time this request is sent, and differs from that of every other request of the flow.
    pub fn request_key(&self) -> Option<String> {
        let key = self.flow.idempotency_key.as_ref()?;
        Some(format!("{key}.{}", self.flow.rounds))
    }

    /// Returns whether the request hands a `requestState` back.
    pub fn has_state(&self) -> bool {
        self.flow.params.get("requestState").is_some()
    }

    /// Returns the first request of the flow begun anew: without answers and without `requestState`. Its rounds go on being
    /// counted, so that the limits hold for all of them and no two requests have the same key.
    pub fn restart(&self) -> Self {
        let mut flow = self.flow.clone();
        for member in ["inputResponses", "requestState"] {
            flow.params.set(member, None);
        }
        flow.rounds = flow.rounds.saturating_add(1);
        flow.polls = 0;
        Self { flow, method: PhantomData }
    }

    /// Takes the result of the request, and the time it took.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] for a result this method cannot have and for more questions than one round may ask,
    /// [`Error::GaveUp`] where the flow has gone as
    /// far as it may.
    pub fn reply(mut self, result: &RawValue, took: Duration) -> Result<Action<M>, Error> {
        let asks = match decode_complete::<M>(result) {
            Ok(result) => return Ok(Action::Done(result)),
            Err(ResultError::MayNotAsk { method }) => asks(method, result),
            Err(other) => Err(other),
        };
        let asks = asks.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))?;
        if asks.input_requests.is_empty() {
            let pause = self.flow.count_poll(M::NAME, took)?;
            Ok(Action::Pause(pause, Pending::new(self.flow, asks)))
        } else {
            self.flow.count_round(M::NAME, asks.input_requests.len())?;
            Ok(Action::Ask(Pending::new(self.flow, asks)))
        }
    }
}

/// Decodes an `input_required` result of a method that may ask.
fn asks(method: &'static str, result: &RawValue) -> Result<InputRequiredResult, ResultError> {
    fn of<M: MayAsk>(result: &RawValue) -> Result<InputRequiredResult, ResultError> {
        match decode_round_result::<M>(result)? {
            RoundResult::InputRequired(asks) => Ok(asks),
            RoundResult::Complete(_) | RoundResult::Task(_) => {
                Err(ResultError::MayNotAsk { method: M::NAME })
            }
        }
    }
    match method {
        CallTool::NAME => of::<CallTool>(result),
        GetPrompt::NAME => of::<GetPrompt>(result),
        ReadResource::NAME => of::<ReadResource>(result),
        _ => Err(ResultError::MayNotAsk { method }),
    }
}
