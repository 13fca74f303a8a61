//! State of a flow between requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{FlowLimits, pause};
use super::params::Params;
use crate::error::{Error, GaveUp, PeerMisbehaved, RequestName};

/// State of a flow between requests, stored or not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Flow {
    /// The parameters of the next request.
    pub(super) params: Params,
    /// The caller's additions to `_meta`.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub(super) meta: Params,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idempotency_key: Option<String>,
    #[serde(default)]
    pub(super) limits: FlowLimits,
    /// Number of rounds so far: one for each request.
    pub(super) rounds: u32,
    /// Number of rounds so far that asked a question.
    pub(super) asking_rounds: u32,
    /// Number of consecutive rounds that asked nothing.
    #[serde(default)]
    pub(super) polls: u32,
    /// Total time spent in rounds that asked nothing.
    #[serde(default)]
    pub(super) polled: Duration,
}

impl Flow {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            meta: Params::default(),
            idempotency_key: None,
            limits: FlowLimits::default(),
            rounds: 1,
            asking_rounds: 0,
            polls: 0,
            polled: Duration::ZERO,
        }
    }

    /// Counts a round that asks. The limits are checked here, before the user is asked: an answer that could not be
    /// sent any more must not be asked for (C6), and one round must not ask more questions than the caller allows.
    pub(super) fn count_round(&mut self, method: &'static str, questions: usize) -> Result<(), Error> {
        let allowed = self.limits.questions;
        if questions > allowed {
            let request = self.request_name(method);
            return Err(PeerMisbehaved::TooManyQuestions { request, asked: questions, allowed }.into());
        }
        let (rounds, allowed) = (self.asking_rounds, self.limits.rounds);
        if rounds >= allowed {
            return Err(GaveUp::TooManyRounds { request: self.request_name(method), rounds, allowed }.into());
        }
        self.asking_rounds += 1;
        self.polls = 0;
        Ok(())
    }

    /// Counts a round that asks nothing, apart from those that ask (C5), and returns the pause after it.
    pub(super) fn count_poll(&mut self, method: &'static str, took: Duration) -> Result<Duration, Error> {
        let pause = pause(self.polls);
        self.polled = self.polled.saturating_add(took).saturating_add(pause);
        if self.polled > self.limits.polling {
            let (request, allowed) = (self.request_name(method), self.limits.polling);
            return Err(GaveUp::PolledTooLong { request, allowed }.into());
        }
        self.polls = self.polls.saturating_add(1);
        Ok(pause)
    }

    /// Returns the name of the flow's requests.
    pub(super) fn request_name(&self, method: &'static str) -> RequestName {
        RequestName::new(method, self.params.target(method))
    }

    /// Returns the pause before the next request.
    pub(super) fn pause(&self) -> Duration {
        self.polls.checked_sub(1).map_or(Duration::ZERO, pause)
    }
}
