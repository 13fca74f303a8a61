//! Live questions: sent to the client while the handler waits.

use std::task::Context;

use super::{AskError, Delivery, RoundState, wake_all};
use crate::server::delivery::TakesAnswers;

impl RoundState {
    /// Returns whether questions are sent to the client while the handler waits.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.questions, Delivery::Live(_))
    }

    /// Returns whether a question that was sent or shown while the handler waits has been answered, or the client failed to answer
    /// it.
    pub(crate) fn is_answered(&self, key: &str) -> bool {
        (self.is_live() || self.keeper().is_some()) && !self.lock().asked.iter().any(|asked| asked.key == key)
    }

    /// Waits for the answer to a question, like [`wait`](Self::wait). One that has come meanwhile is seen at once: another thread may
    /// have brought it.
    pub(crate) fn wait_for_answer(&self, key: &str, cx: &mut Context<'_>) -> Result<(), AskError> {
        self.wait(key, cx)?;
        if self.is_answered(key) {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }
}

impl TakesAnswers for RoundState {
    fn answer(&self, key: &str, answer: Result<&str, String>) {
        let mut inner = self.lock();
        let Some(index) = inner.asked.iter().position(|asked| asked.key == key) else { return };
        let asked = inner.asked.swap_remove(index);
        match answer {
            Ok(json) => inner.journal.give(key, asked.pin, json),
            Err(reason) => inner.unanswered.push((asked.key, reason)),
        }
        wake_all(inner);
    }
}
