//! [`TaskState`]: `requestState` of a task that asks by hand, in SEP-2322's dialect.

use std::sync::Arc;

use roundtrip_core::seal::{Binding, Claims, Digest, Reason, Rejected, digest_arguments};
use roundtrip_core::wire::{ErrorObject, Method as _, TaskInputResponse};

use crate::server::clock::{now, random};
use crate::server::round::FlowConfig;
use crate::task::{Millis, Record};

/// Seals and opens `requestState` of one caller's tasks. The handler's state stays in the store: a token is bound to the caller and
/// to the task, and says no more than that the client has seen the questions.
pub(crate) struct TaskState {
    pub(crate) flows: Arc<FlowConfig>,
    pub(crate) principal: Option<String>,
    /// OAuth client of the caller's token.
    pub(crate) client: Option<Digest>,
}

impl TaskState {
    /// Seals the state of a task, valid for as long as the task is kept.
    pub(super) async fn seal(&self, id: &str, record: &Record) -> Result<String, ErrorObject> {
        let left = record.expires().map_or(self.flows.valid_for, |end| end.since(Millis::now()));
        let claims = Claims::begin(record.flow(), self.binding(id)?, now(), left);
        let claims = Claims { round: record.rounds(), ..claims };
        self.flows.sealer.seal(&claims, &[], random()?).await.map_err(|error| {
            tracing::error!(%error, task = id, "the state of a task cannot be sealed");
            ErrorObject::internal("internal error")
        })
    }

    /// Checks that a state is one of this task. What is wrong with it is for the log (S6).
    pub(super) async fn open(&self, id: &str, token: &str) -> Result<(), ErrorObject> {
        let opened = self.flows.sealer.open(token, &self.binding(id)?, now()).await;
        opened.map(drop).map_err(|rejected| {
            tracing::warn!(reason = %rejected, "request state refused");
            rejected.error_object()
        })
    }

    /// Returns the error of answers without the state that they have to bring back.
    pub(super) fn missing() -> ErrorObject {
        Rejected::from(Reason::Malformed).error_object()
    }

    fn binding(&self, id: &str) -> Result<Binding, ErrorObject> {
        let arguments = digest_arguments(None).map_err(|error| ErrorObject::internal(error.to_string()))?;
        let target = Binding::target(TaskInputResponse::NAME, id);
        let binding = Binding::of(self.flows.known_audience, target, arguments, self.principal.as_deref());
        Ok(binding.through(self.client))
    }
}
