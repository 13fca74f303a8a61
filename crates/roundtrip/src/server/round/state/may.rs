//! Questions that the client of a round can be asked.

use roundtrip_core::round::Question;
use roundtrip_core::wire::{ErrorObject, InputRequest, clip};

use super::{AskError, Delivery, RoundState};
use crate::server::delivery::{AskKind, CannotAsk};

impl RoundState {
    /// Checks that a kind of question can be delivered, and that its capability is declared.
    pub(crate) fn may(&self, kind: AskKind) -> Result<(), CannotAsk> {
        self.questions.carries(|| kind)?;
        kind.declared(&self.capabilities)
    }

    /// Builds the entry of `inputRequests` for a question, if the client can be asked that.
    pub(super) fn request(
        &self,
        question: &Question,
        problem: Option<&str>,
    ) -> Result<InputRequest, AskError> {
        question.asks.check().map_err(|why| AskError::Misuse(format!("`{}`: {why}", clip(&question.key))))?;
        if let Some(host) = question.asks.insecure_host() {
            tracing::warn!(key = %clip(&question.key), host, "people are sent to a page by plain http: use https");
        }
        let request = question.to_request(problem);
        match self.refusal(question, &request) {
            None => Ok(request),
            Some(error) => Err(AskError::CannotAsk { key: question.key.to_string(), error }),
        }
    }

    /// Returns the error for a question that the client cannot be asked. A revision that has no such question comes before
    /// a capability that the client could not have declared.
    fn refusal(&self, question: &Question, request: &InputRequest) -> Option<ErrorObject> {
        let subject = || format!("this question (`{}`)", clip(&question.key));
        if let Err(why) = self.questions.carries(|| AskKind::of(request)) {
            let own = match &self.questions {
                Delivery::Refuse { error, .. } => error(request),
                _ => None,
            };
            let usual = || ErrorObject::invalid_request(format!("{} cannot be asked: {why}", subject()));
            return Some(own.unwrap_or_else(usual));
        }
        let needs = question.needs();
        (!self.capabilities.covers(&needs))
            .then(|| ErrorObject::missing_capability(subject(), &self.capabilities, &needs))
    }
}
