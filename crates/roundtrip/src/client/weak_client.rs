//! Weak handle from a transport to the client's handlers, for questions outside of any call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use roundtrip_core::error::{ApiMisuse, Error, PeerMisbehaved};
use roundtrip_core::exchange::{Action, Exchange, Params};
use roundtrip_core::wire::{
    CallTool, ClientCapabilities, Implementation, InputRequest, InputRequiredResult, InputResponses, Raw,
    ResultMeta,
};

use super::builder::{Client, Inner};
use super::handlers::Handlers;
use super::request::raw;
use super::rounds::ask;

/// Key of a question that has none of its own.
const KEY: &str = "question";

/// Weak handle to the client's question handlers: it does not keep the client alive.
#[derive(Clone, Default)]
pub(crate) struct WeakClient(Weak<Inner>);

impl WeakClient {
    pub(super) fn new(inner: &Arc<Inner>) -> Self {
        Self(Arc::downgrade(inner))
    }

    /// Returns the handlers of the client, if it is still there.
    pub(crate) fn responder(&self) -> Option<Responder> {
        let client = Client::of(self.0.upgrade()?);
        Some(Responder { handlers: client.handlers().clone(), declared: client.declared(false) })
    }
}

/// Handlers of a client. They answer without keeping the client alive: a question without an answer must not keep its
/// connection open.
pub(crate) struct Responder {
    handlers: Handlers,
    declared: ClientCapabilities,
}

impl Responder {
    /// Puts one question to the handlers, and checks their answer against it.
    pub(crate) async fn answer(
        &self,
        request: InputRequest,
        server: Option<Arc<Implementation>>,
    ) -> Result<Raw, Error> {
        let method = request.method();
        let asks = InputRequiredResult {
            input_requests: BTreeMap::from([(KEY.to_owned(), request)]),
            meta: ResultMeta { server_info: server, ..ResultMeta::default() },
            ..InputRequiredResult::default()
        };
        // The same machine as for a call, so that answers are checked and filled in the same way.
        let exchange = Exchange::<CallTool>::new(Params::default());
        let step = exchange.reply(raw(&asks, "a question")?.as_ref(), Duration::ZERO)?;
        let Action::Ask(pending) = step else {
            return Err(PeerMisbehaved::MalformedMessage(format!("`{method}` asks nothing")).into());
        };
        let answered = ask(&self.handlers, &self.declared, pending, method).await?.resume()?;
        let answers = answered.params().get("inputResponses").and_then(|answers| answers.to().ok());
        answers
            .and_then(|mut answers: InputResponses| answers.remove(KEY))
            .ok_or_else(|| ApiMisuse::Unanswered { keys: vec![method.to_owned()] }.into())
    }
}

impl fmt::Debug for WeakClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakClient(..)")
    }
}
