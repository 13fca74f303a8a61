//! Effects that are not repeated by a replay.

use std::fmt::Write as _;
use std::sync::Arc;

use roundtrip_core::round::Kind;
use roundtrip_core::seal::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::AskError;
use super::table::Table;
use super::trace::in_step;
use crate::server::reply::ToolError;

/// A step that is being run for the first time.
#[derive(Debug)]
pub struct Step {
    key: String,
}

impl Step {
    /// The same for every attempt at this step of this flow, and for no other: for downstreams that deduplicate.
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }

    fn new(table: &Table, key: &str) -> Self {
        let digest = Digest::of("step", &[table.flow().as_bytes(), key.as_bytes()]);
        let mut text = String::with_capacity(32);
        for byte in digest.as_bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        Self { key: text }
    }
}

pub(super) async fn run<T, E, F, Fut>(table: &Arc<Table>, key: &str, effect: F) -> Result<T, ToolError>
where
    T: Serialize + DeserializeOwned,
    E: Into<ToolError>,
    F: FnOnce(Step) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    match table.step(key)? {
        Some(Ok(json)) => return read(key, &json),
        Some(Err(failure)) => return Err(ToolError::recall(&failure)),
        None => {}
    }
    let running = table.begin_step(key);
    let result = running.run(in_step(effect(Step::new(table, key)))).await.map_err(Into::into);
    let kept = match &result {
        Ok(value) => Some((Kind::Step, write(key, value)?)),
        Err(failure) => failure.to_remember().map(|failure| (Kind::Failed, failure)),
    };
    if let Some((kind, value)) = kept {
        table.remember(kind, key, &value);
    }
    drop(running);
    result
}

pub(super) async fn look<T, E, F, Fut>(table: &Arc<Table>, key: &str, look: F) -> Result<Option<T>, ToolError>
where
    T: Serialize + DeserializeOwned,
    E: Into<ToolError>,
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<Option<T>, E>>,
{
    if let Some(Ok(json)) = table.step(key)? {
        return read(key, &json).map(Some);
    }
    let running = table.begin_step(key);
    let found = running.run(look()).await.map_err(Into::into)?;
    if let Some(value) = &found {
        table.remember(Kind::Step, key, &write(key, value)?);
    }
    Ok(found)
}

fn write<T: Serialize>(key: &str, value: &T) -> Result<String, AskError> {
    serde_json::to_string(value)
        .map_err(|error| AskError::Misuse(format!("the result of `{key}` cannot be remembered: {error}")))
}

fn read<T: DeserializeOwned>(key: &str, json: &str) -> Result<T, ToolError> {
    serde_json::from_str(json).map_err(|error| {
        AskError::Misuse(format!("the remembered result of `{key}` is not what it is now: {error}")).into()
    })
}
