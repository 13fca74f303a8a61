//! Steps of `once`: effects that are not repeated by a replay.

use std::sync::Arc;

use roundtrip_core::round::Kind;
use roundtrip_core::wire::json;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tool_error::ToolError;
use crate::server::round::{AskError, Begun, Branch, Moment, RoundState, in_step};

/// A step of [`Ask::once`](super::Ask::once) that is being run.
#[derive(Debug)]
pub struct Step {
    round: Arc<RoundState>,
    key: String,
    idempotency_key: String,
}

impl Step {
    /// Returns a key for downstreams that deduplicate: the same for every attempt at this step after the same answers, and
    /// for no other.
    ///
    /// It is made of the flow, the step's key, and every answer that the handler had read when the step first began: a
    /// `requestState` that is presented again with other `inputResponses` gives the step another key. From then on it
    /// stays with the step; later answers do not change it. Resolvers ([`Resolve`](crate::Resolve))
    /// run side by side, so in one only those answers of this round count that it has read, or a resolver that it needs.
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// Returns an idempotency key made of the answers with these keys alone: for a step that is to keep its key although
    /// other answers differ.
    ///
    /// Name every answer that the effect depends on, and read it before the step; one that has not been read counts as not
    /// given.
    pub fn idempotency_key_from<'a>(&self, answers: impl IntoIterator<Item = &'a str>) -> String {
        let answers: Vec<&str> = answers.into_iter().collect();
        self.round.idempotency_key(&self.key, &answers)
    }
}

pub(super) async fn run<T, E, F, Fut>(
    (round, branch): (&Arc<RoundState>, Branch),
    key: &str,
    effect: F,
) -> Result<T, ToolError>
where
    T: Serialize + DeserializeOwned,
    E: Into<ToolError>,
    F: FnOnce(Step) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let (running, idempotency_key) = match round.begin_step(branch, key)? {
        Begun::Remembered(Ok(json)) => return read(round, key, &json).await,
        Begun::Remembered(Err(failure)) => return Err(ToolError::recall(&failure)),
        Begun::Run(begun) => begun,
        Begun::Left => return std::future::pending().await,
    };
    let step = Step { round: Arc::clone(round), key: key.to_owned(), idempotency_key };
    // In a task, a worker that replaces this one knows the step and its idempotency key.
    let running = round.keep(Moment::Before, running).await;
    let result = match running.run(in_step(effect(step))).await.map_err(Into::into) {
        Ok(value) => Ok(keep(round, key, &value)?.0),
        Err(failure) => {
            if let Some(failure) = failure.to_remember() {
                round.remember(Kind::Failed, key, &failure)?;
            }
            Err(failure)
        }
    };
    drop(round.keep(Moment::After, running).await);
    result
}

pub(super) async fn look<T, E, F, Fut>(
    (round, branch): (&Arc<RoundState>, Branch),
    key: &str,
    look: F,
) -> Result<Option<T>, ToolError>
where
    T: Serialize + DeserializeOwned,
    E: Into<ToolError>,
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<Option<T>, E>>,
{
    let running = match round.begin_look(branch, key)? {
        Begun::Remembered(Ok(json)) => return read(round, key, &json).await.map(Some),
        Begun::Remembered(Err(failure)) => return Err(ToolError::recall(&failure)),
        Begun::Run(running) => running,
        Begun::Left => return std::future::pending().await,
    };
    let found = running.run(look()).await.map_err(Into::into)?;
    found.map(|value| keep(round, key, &value).map(|(kept, _)| kept)).transpose()
}

/// Remembers a value, and returns it as every later round will read it, and as JSON. One that cannot be read back (an infinite
/// number is written as `null`) fails here, where its author sees it, and not in the next round.
pub(super) fn keep<T: Serialize + DeserializeOwned>(
    round: &RoundState,
    key: &str,
    value: &T,
) -> Result<(T, String), ToolError> {
    let written = serde_json::to_string(value)
        .map_err(|error| AskError::Misuse(format!("the result of `{key}` cannot be remembered: {error}")))?;
    let kept = json::from_str(&written).map_err(|error| {
        AskError::Misuse(format!("the result of `{key}` cannot be read back once it is remembered: {error}"))
    })?;
    round.remember(Kind::Step, key, &written)?;
    Ok((kept, written))
}

/// Reads a remembered value. In a task, a value of another type leaves the task to a process that reads it (T16): this does not
/// return then.
pub(super) async fn read<T: DeserializeOwned>(
    round: &RoundState,
    key: &str,
    json: &str,
) -> Result<T, ToolError> {
    let read = parse(key, json);
    if read.is_err() && round.leave(&format!("the remembered result of `{key}` is of another type")) {
        return std::future::pending().await;
    }
    Ok(read?)
}

/// Reads a remembered value. The reason of a failure may quote the value, and is for the log.
pub(super) fn parse<T: DeserializeOwned>(key: &str, json: &str) -> Result<T, AskError> {
    json::from_str(json).map_err(|error| {
        tracing::debug!(%error, key, "a remembered result is of another type");
        AskError::Misuse(format!("the remembered result of `{key}` is not of the type that the step has now"))
    })
}
