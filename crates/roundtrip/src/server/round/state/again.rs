//! Questions that have been answered and are asked again: for the server's log, and for the trace of the replay harness.

use roundtrip_core::round::Unusable;

use super::RoundState;
use crate::server::round::trace::AskedAgain;

impl RoundState {
    /// Notes a question that is not the one that was answered. After an upgrade that is as it should be; a text that changes
    /// from round to round is asked without end, and neither its author nor the user sees why.
    pub(super) fn changed(&self, key: &str) {
        tracing::warn!(
            key,
            "a question is not the one that was answered under its key, and is asked again: take what changes from \
             round to round in a step (`ask.once(..)`), or name what stays (`.identity(..)`)"
        );
        if let Some(trace) = &self.trace {
            trace.ask_again(key, AskedAgain::Changed);
        }
    }

    /// Notes an answer that does not fit its question.
    pub(super) fn unfit(&self, key: &str, why: &Unusable) {
        if let Some(trace) = &self.trace {
            trace.ask_again(key, AskedAgain::Unfit(why.0.clone()));
        }
    }
}
