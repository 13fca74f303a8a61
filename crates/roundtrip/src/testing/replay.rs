//! Plays a flow with scripted answers, with or without injected faults.

use std::collections::BTreeMap;
use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use roundtrip_core::error::debug_as_text;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::effects::Effects;
use super::flow::{Flow, RoundReply, meta};
use crate::server::{Disagreement, Endpoint, Server, SetupError, Trace};

/// Most rounds of a scripted flow, and most drops of a handler in one of them.
const MAX_ROUNDS: usize = 100;
const MAX_DROPS: usize = 200;

/// A scripted flow. Choose the call, script the answers, and await it.
#[must_use = "a flow is played when it is awaited"]
pub struct Replay {
    server: Result<Endpoint, SetupError>,
    trace: Arc<Trace>,
    faults: bool,
    flow: Flow,
    answers: BTreeMap<String, Vec<Value>>,
    effects: Option<Effects>,
}

/// Mistake in a handler, or in the script.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The server's setup has a mistake.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The script has no answer to a question.
    #[error("the script has no answer to `{0}`")]
    NoAnswer(String),
    /// An answer of the script does not fit its question.
    #[error("the scripted answer to `{key}` does not fit: {message}")]
    Unfit {
        /// The question's key.
        key: String,
        /// The server's message when it asked again.
        message: String,
    },
    /// The call failed with a JSON-RPC error.
    #[error("the call failed: {0}")]
    Failed(String),
    /// An effect happened more than once.
    #[error(
        "`{what}` happened {times} times outside `once` ({place}): a handler that asks runs again, so put it into `ask.once(..)`"
    )]
    Repeated {
        /// The name of the effect.
        what: String,
        /// The number of times it happened.
        times: usize,
        /// The place in the source that reported it.
        place: String,
    },
    /// A key is not the same in every run.
    #[error(
        "the key `{before}` of one run is `{now}` in another: a key must not depend on time, randomness or state"
    )]
    VolatileKey {
        /// The key that was expected.
        before: String,
        /// The key that was used instead.
        now: String,
    },
    /// The handler uses its keys in another order.
    #[error(
        "`{then}` comes before `{first}` in one run and after it in another: a handler must use its keys in the same order in every run"
    )]
    ChangedOrder {
        /// The key that comes first in most runs.
        first: String,
        /// The key that came first this time.
        then: String,
    },
    /// A round that was repeated gave another reply.
    #[error("round {round} gave another reply when it was repeated: {first} and then {then}")]
    ChangedReply {
        /// The round, counted from 1.
        round: usize,
        /// The first reply, in short.
        first: String,
        /// The reply when it was repeated, in short.
        then: String,
    },
    /// The flow does not end.
    #[error("the flow has not ended after {MAX_ROUNDS} rounds")]
    Endless,
}

impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_as_text(self, f)
    }
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
        Self { server, trace, faults, flow, answers: BTreeMap::new(), effects: None }
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
        self.target("tools/call", json!({ "name": name, "arguments": arguments }))
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

    /// Answers a form with this content, or consents to a web page with `{}`.
    pub fn accept(self, key: &str, content: impl Serialize) -> Self {
        let content = serde_json::to_value(content).unwrap_or_default();
        self.result(key, json!({ "action": "accept", "content": content }))
    }

    /// Declines a question.
    pub fn decline(self, key: &str) -> Self {
        self.result(key, json!({ "action": "decline" }))
    }

    /// Dismisses a question.
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

    /// Answers a question with any result. A question that is scripted several times gets its answers in this order, one
    /// each time it is asked, and the last from then on.
    pub fn result(mut self, key: &str, result: Value) -> Self {
        self.answers.entry(key.to_owned()).or_default().push(result);
        self
    }

    /// Checks effects: none may happen twice outside `once`.
    pub fn effects(mut self, effects: &Effects) -> Self {
        self.effects = Some(effects.clone());
        self
    }

    async fn run(self) -> Result<Value, ReplayError> {
        let endpoint = self.server.clone()?;
        let mut flow = self.flow.clone();
        let (mut last_asked, mut times) = (Vec::<String>::new(), BTreeMap::<String, usize>::new());
        for round in 1..=MAX_ROUNDS {
            let reply = self.round(&endpoint, &flow, round).await?;
            let (questions, state) = match reply {
                RoundReply::Done(result) => return Ok(result),
                RoundReply::Failed(message) => return Err(ReplayError::Failed(message)),
                RoundReply::Asked { questions, state } => (questions, state),
            };
            let mut answers = Map::new();
            for (key, question) in &questions {
                let asked = times.entry(key.clone()).or_default();
                let script = self.answers.get(key).map_or(&[][..], Vec::as_slice);
                if last_asked.contains(key) && *asked >= script.len() {
                    let message = question["params"]["message"].as_str().unwrap_or_default().to_owned();
                    return Err(ReplayError::Unfit { key: key.clone(), message });
                }
                let answer = script.get(*asked).or(script.last());
                let answer = answer.ok_or_else(|| ReplayError::NoAnswer(key.clone()))?;
                answers.insert(key.clone(), answer.clone());
                *asked += 1;
            }
            last_asked = questions.into_keys().collect();
            flow = flow.next(answers, state);
        }
        Err(ReplayError::Endless)
    }

    /// Plays one round, with all its faults if there are to be any.
    async fn round(&self, endpoint: &Endpoint, flow: &Flow, round: usize) -> Result<RoundReply, ReplayError> {
        if self.faults {
            // Dropped after the first poll, after the second, and so on until it gets to its end.
            for polls in 1..=MAX_DROPS {
                if self.attempt(endpoint, flow, Some(polls)).await?.is_some() {
                    break;
                }
            }
        }
        let Some(reply) = self.attempt(endpoint, flow, None).await? else { return Err(ReplayError::Endless) };
        if self.faults {
            // The reply was lost: the client sends the same once more.
            let Some(again) = self.attempt(endpoint, flow, None).await? else {
                return Err(ReplayError::Endless);
            };
            if shape(&again) != shape(&reply) {
                return Err(ReplayError::ChangedReply { round, first: shape(&reply), then: shape(&again) });
            }
        }
        Ok(reply)
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        flow: &Flow,
        polls: Option<usize>,
    ) -> Result<Option<RoundReply>, ReplayError> {
        self.trace.begin_run();
        let reply = flow.round(endpoint, polls).await;
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

/// Describes what two replies to the same round must have in common. Sealed states differ by their nonce.
fn shape(reply: &RoundReply) -> String {
    match reply {
        RoundReply::Done(result) => result.to_string(),
        RoundReply::Failed(message) => message.clone(),
        RoundReply::Asked { questions, state } => {
            let keys: Vec<&str> = questions.keys().map(String::as_str).collect();
            format!("questions {keys:?}, state {}", state.is_some())
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
