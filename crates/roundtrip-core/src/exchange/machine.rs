//! From a request to what its reply makes of the flow.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::value::RawValue;

use super::flow::Flow;
use super::limits::Limits;
use super::params::Params;
use super::pending::Pending;
use crate::error::{Error, PeerMisbehaved};
use crate::wire::{
    CallTool, GetPrompt, InputRequiredResult, MayAsk, Method, ReadResource, Reply, ResultError,
    decode_complete, decode_reply,
};

/// A request that is to be sent, of a flow that may take several.
#[derive(Debug, Clone)]
#[must_use = "an exchange does nothing until its request is sent"]
pub struct Exchange<M> {
    pub(super) flow: Flow,
    pub(super) method: PhantomData<fn() -> M>,
}

/// What a reply makes of a flow.
#[derive(Debug)]
#[must_use = "somebody has to take the step"]
pub enum Step<M: Method> {
    /// The flow is over, and this is its result.
    Done(M::Result),
    /// Answer every question in here, at once where you can, and go on with [`Pending::resume`].
    Ask(Pending<M>),
    /// Wait this long, and go on with [`Pending::resume`]: there is nothing to answer.
    Pause(Duration, Pending<M>),
}

impl<M: Method> Exchange<M> {
    /// The first request of a flow. The parameters are those of the method, without `_meta`.
    pub fn new(params: Params) -> Self {
        Self { flow: Flow::new(params), method: PhantomData }
    }

    /// How far the flow may go.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.flow.limits = limits;
        self
    }

    /// What the caller adds to the `_meta` of every request of the flow.
    pub fn with_meta(mut self, meta: Params) -> Self {
        self.flow.meta = meta;
        self
    }

    /// Names the flow, so that a server can tell a request that is sent twice from two requests.
    pub fn idempotency_key(mut self, key: Option<String>) -> Self {
        self.flow.idempotency_key = key;
        self
    }

    /// The parameters to send: the original ones, and in a retry the answers and the state of the round before. What
    /// the round before did not have is not in here.
    pub fn params(&self) -> &Params {
        &self.flow.params
    }

    /// What the caller adds to `_meta`.
    pub fn meta(&self) -> &Params {
        &self.flow.meta
    }

    /// Names this request: the flow's key and the request's number in it. However often this request is sent, its
    /// name stays the same, and no other request of the flow has it.
    pub fn request_key(&self) -> Option<String> {
        let key = self.flow.idempotency_key.as_ref()?;
        Some(format!("{key}.{}", self.flow.legs))
    }

    /// Whether this request hands back a server's state.
    pub fn hands_back_state(&self) -> bool {
        self.flow.params.get("requestState").is_some()
    }

    /// Takes the result the request was answered with, and how long that took.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] for a result this method cannot have and for more questions than one round may ask,
    /// [`Error::GaveUp`] where the flow has gone as
    /// far as it may.
    pub fn reply(mut self, result: &RawValue, took: Duration) -> Result<Step<M>, Error> {
        let asks = match decode_complete::<M>(result) {
            Ok(result) => return Ok(Step::Done(result)),
            Err(ResultError::MayNotAsk { method }) => asks(method, result),
            Err(other) => Err(other),
        };
        let asks = asks.map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()))?;
        if asks.input_requests.is_empty() {
            let pause = self.flow.count_poll(M::NAME, took)?;
            Ok(Step::Pause(pause, Pending::new(self.flow, asks)))
        } else {
            self.flow.count_round(M::NAME, asks.input_requests.len())?;
            Ok(Step::Ask(Pending::new(self.flow, asks)))
        }
    }
}

/// What a method asks, where it may.
fn asks(method: &'static str, result: &RawValue) -> Result<InputRequiredResult, ResultError> {
    fn of<M: MayAsk>(result: &RawValue) -> Result<InputRequiredResult, ResultError> {
        match decode_reply::<M>(result)? {
            Reply::InputRequired(asks) => Ok(asks),
            Reply::Complete(_) => Err(ResultError::MayNotAsk { method: M::NAME }),
        }
    }
    match method {
        CallTool::NAME => of::<CallTool>(result),
        GetPrompt::NAME => of::<GetPrompt>(result),
        ReadResource::NAME => of::<ReadResource>(result),
        _ => Err(ResultError::MayNotAsk { method }),
    }
}
