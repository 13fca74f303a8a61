//! Plays a flow with scripted answers, with or without injected faults.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use roundtrip_core::wire::PartNotificationParams;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::difference::Difference;
use super::effects::Effects;
use super::error::ReplayError;
use super::flow::{Flow, RoundReply, meta};
use super::parts::{PartCheck, SentParts};
use super::script::{AskedSoFar, Script};
use crate::server::{Disagreement, Endpoint, Peer, Principal, Server, SetupError, Trace};

/// Most rounds of a scripted flow, and most drops of a handler in one of them.
pub(super) const MAX_ROUNDS: usize = 100;
const MAX_DROPS: usize = 200;

/// A scripted flow. Choose the call, script the answers, and await it.
///
/// Answers under one key are given in the order of the script, one for each time that the question is asked. Every answer
/// has to be asked for.
#[must_use = "a flow is played when it is awaited"]
pub struct Replay {
    server: Result<Endpoint, SetupError>,
    trace: Arc<Trace>,
    faults: bool,
    flow: Flow,
    peer: Peer,
    script: Script,
    effects: Option<Effects>,
    parts: Option<SentParts>,
}

/// Plays a flow while everything goes wrong: the handler is dropped at every await, every reply is lost once, and every
/// round is repeated.
pub fn replay(server: Server) -> Replay {
    Replay::new(server, true)
}

/// Plays a flow with scripted answers and without faults.
pub fn play(server: Server) -> Replay {
    Replay::new(server, false)
}

impl Replay {
    fn new(server: Server, faults: bool) -> Self {
        let trace = Arc::new(Trace::default());
        let flow = Flow { method: "tools/call", params: Map::new() };
        let server = server.traced(&trace).build();
        let (peer, script, effects, parts) = (Peer::default(), Script::default(), None, None);
        Self { server, trace, faults, flow, peer, script, effects, parts }
    }

    fn target(mut self, method: &'static str, params: Value) -> Self {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        self.flow = Flow { method, params };
        self.flow.params.insert("_meta".into(), meta());
        self
    }

    /// Calls a tool.
    pub fn tool(self, name: &str, arguments: impl Serialize) -> Self {
        let arguments = serde_json::to_value(arguments).unwrap_or_default();
        self.target("tools/call", json!({ "name": name, "arguments": arguments, "stream": {} }))
    }

    /// Gets a prompt.
    pub fn prompt(self, name: &str, arguments: impl Serialize) -> Self {
        let arguments = serde_json::to_value(arguments).unwrap_or_default();
        self.target("prompts/get", json!({ "name": name, "arguments": arguments }))
    }

    /// Reads a resource.
    pub fn resource(self, uri: &str) -> Self {
        self.target("resources/read", json!({ "uri": uri }))
    }

    /// Makes the call as this principal.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.peer.principal = Some(principal);
        self
    }

    /// Attaches an [`Extension`](crate::Extension) to every request, as a layer of the HTTP stack would.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.peer.extensions.insert(extension);
        self
    }

    /// Answers a form with this content.
    pub fn accept(self, key: &str, content: impl Serialize) -> Self {
        let content = serde_json::to_value(content).unwrap_or_default();
        self.result(key, json!({ "action": "accept", "content": content }))
    }

    /// Consents to a web page.
    pub fn consent(self, key: &str) -> Self {
        self.result(key, json!({ "action": "accept" }))
    }

    /// Declines a form or a web page.
    pub fn decline(self, key: &str) -> Self {
        self.result(key, json!({ "action": "decline" }))
    }

    /// Dismisses a form or a web page.
    pub fn cancel(self, key: &str) -> Self {
        self.result(key, json!({ "action": "cancel" }))
    }

    /// Answers a sampling request with text of the model. Deprecated (SEP-2577).
    pub fn say(self, key: &str, text: &str) -> Self {
        self.result(
            key,
            json!({ "role": "assistant", "content": { "type": "text", "text": text }, "model": "script" }),
        )
    }

    /// Answers a request for roots. Deprecated (SEP-2577).
    pub fn roots(self, key: &str, uris: &[&str]) -> Self {
        let roots: Vec<Value> = uris.iter().map(|uri| json!({ "uri": uri })).collect();
        self.result(key, json!({ "roots": roots }))
    }

    /// Answers a question with a result as it is on the wire, such as a
    /// [`CreateMessageResult`](crate::wire::CreateMessageResult) that calls a tool.
    pub fn result(mut self, key: &str, result: impl Serialize) -> Self {
        self.script.add(key, serde_json::to_value(result).unwrap_or_default());
        self
    }

    /// Checks effects: none may happen twice outside `once`.
    pub fn effects(mut self, effects: &Effects) -> Self {
        self.effects = Some(effects.clone());
        self
    }

    /// Collects the [`Parts`](crate::Parts) of the result that are sent.
    pub fn parts(mut self, parts: &SentParts) -> Self {
        self.parts = Some(parts.clone());
        self
    }

    async fn run(self) -> Result<Value, ReplayError> {
        let endpoint = self.server.clone()?;
        let mut flow = self.flow.clone();
        let mut asked = AskedSoFar::default();
        let mut parts = PartCheck::new(self.parts.as_ref());
        for round in 1..=MAX_ROUNDS {
            let reply = self.round(&endpoint, &flow, round, &mut parts).await?;
            let (questions, state) = match reply {
                RoundReply::Done(result) => {
                    self.script.check_used_up(&asked, &result)?;
                    parts.check(&result)?;
                    return Ok(result);
                }
                RoundReply::Failed(message) => return Err(ReplayError::Failed(message)),
                RoundReply::Asked { questions, state } => (questions, state),
            };
            flow = flow.next(self.script.answer(questions, &mut asked, &self.trace)?, state);
        }
        Err(ReplayError::Endless)
    }

    /// Plays one round, with all its faults if there are to be any.
    async fn round(
        &self,
        endpoint: &Endpoint,
        flow: &Flow,
        round: usize,
        parts: &mut PartCheck,
    ) -> Result<RoundReply, ReplayError> {
        if self.faults {
            // Dropped after the first poll, after the second, and so on until it gets to its end.
            for polls in 1..=MAX_DROPS {
                if self.attempt(endpoint, flow, Some(polls), &mut Vec::new()).await?.is_some() {
                    break;
                }
            }
        }
        let mut sent = Vec::new();
        let Some(reply) = self.attempt(endpoint, flow, None, &mut sent).await? else {
            return Err(ReplayError::Endless);
        };
        parts.take(sent)?;
        if self.faults {
            // The reply was lost: the client sends the same once more.
            let Some(again) = self.attempt(endpoint, flow, None, &mut Vec::new()).await? else {
                return Err(ReplayError::Endless);
            };
            if let Some(Difference { place, first, then }) =
                Difference::between(&shape(&reply), &shape(&again))
            {
                let step = self.trace.changed_step();
                return Err(ReplayError::ChangedReply { round, step, place, first, then });
            }
        }
        Ok(reply)
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        flow: &Flow,
        polls: Option<usize>,
        parts: &mut Vec<PartNotificationParams>,
    ) -> Result<Option<RoundReply>, ReplayError> {
        self.trace.begin_run();
        let reply = flow.round(endpoint, &self.peer, polls, parts).await;
        if let Some((what, times, place)) = self.effects.as_ref().and_then(Effects::repeated) {
            return Err(ReplayError::Repeated { what, times, place: place.to_string() });
        }
        match self.trace.disagreement() {
            None => Ok(reply),
            Some(Disagreement::Volatile { before, now }) => Err(ReplayError::VolatileKey { before, now }),
            Some(Disagreement::Order { first, then }) => Err(ReplayError::ChangedOrder { first, then }),
        }
    }
}

/// Returns the parts that two replies to the same round must have in common. Sealed states differ by their nonce, and
/// questions may be made of steps, which a repeated round runs again.
fn shape(reply: &RoundReply) -> Value {
    match reply {
        RoundReply::Done(result) => result.clone(),
        RoundReply::Failed(message) => json!({ "error": message }),
        RoundReply::Asked { questions, state } => {
            let keys: Vec<&String> = questions.keys().collect();
            json!({ "resultType": "input_required", "inputRequests": keys, "requestState": state.is_some() })
        }
    }
}

impl IntoFuture for Replay {
    type Output = Result<Value, ReplayError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("flow", &self.flow).finish_non_exhaustive()
    }
}
