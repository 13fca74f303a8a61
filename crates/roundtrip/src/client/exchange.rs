//! From a request to its result: sent, watched, sent once more where the server says how, and decoded by the method
//! that was called.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::error::Error;
use roundtrip_core::wire::{
    CallTool, ErrorObject, GetPrompt, HEADER_MISMATCH, InputRequiredResult, Method, ProtocolVersion, Raw,
    ReadResource, ResultError, UNSUPPORTED_PROTOCOL_VERSION, decode_complete,
};
use serde::Deserialize;

use super::builder::Client;
use super::cache::Key;
use super::leg::{Event, Leg};
use super::options::Options;
use super::request::Request;
use super::transport::Outgoing;

/// The revisions this client speaks, newest first.
const SPOKEN: &[ProtocolVersion] = &[ProtocolVersion::V2026_07_28];

/// Calls a method, to its result.
pub(crate) async fn call<M: Method>(
    client: &Client,
    request: &Request,
    options: &mut Options,
) -> Result<M::Result, Error> {
    let raw = fetch(client, request, options).await?;
    let result = settle::<M>(&raw)?;
    if M::NAME == CallTool::NAME {
        client.tools().check(&request.target().unwrap_or_default(), &raw)?;
    }
    Ok(result)
}

/// Decodes a result. This is the one place where a result that asks is met.
fn settle<M: Method>(result: &Raw) -> Result<M::Result, Error> {
    decode_complete::<M>(result.as_ref()).map_err(|error| match error {
        ResultError::MayNotAsk { method } if may_ask(method) => asked(method, result),
        other => Error::PeerMisbehaved(other.to_string()),
    })
}

/// What a call comes to that was answered with questions.
fn asked(method: &'static str, result: &Raw) -> Error {
    let asks = match result.to::<InputRequiredResult>() {
        Ok(asks) => asks,
        Err(error) => {
            return Error::PeerMisbehaved(format!("`{method}` asks in a way that does not fit: {error}"));
        }
    };
    if asks.input_requests.is_empty() && asks.request_state.is_none() {
        return Error::PeerMisbehaved(ResultError::AsksNothing { method }.to_string());
    }
    let questions: Vec<String> = asks
        .input_requests
        .iter()
        .map(|(key, question)| format!("`{key}` ({})", question.method()))
        .collect();
    let questions =
        if questions.is_empty() { "none, only to be called again".to_owned() } else { questions.join(", ") };
    Error::PeerIncompatible(format!(
        "`{method}` needs another round (questions: {questions}), and this client makes none"
    ))
}

fn may_ask(method: &str) -> bool {
    [CallTool::NAME, GetPrompt::NAME, ReadResource::NAME].contains(&method)
}

/// A result, from the cache or from the server.
async fn fetch(client: &Client, request: &Request, options: &mut Options) -> Result<Arc<Raw>, Error> {
    client.ready(options)?;
    // What else is in `_meta` may well matter to the result.
    let key = if options.extra.is_empty() { Key::of(request) } else { None };
    let cache = client.cache_store();
    if let Some(kept) = key.as_ref().filter(|_| !options.fresh).and_then(|key| cache.get(key)) {
        return Ok(kept);
    }
    let generation = cache.generation();
    let mut attempts = Attempts::new();
    loop {
        options.begin();
        let outgoing = client.outgoing(request, options, attempts.version)?;
        let timeout = client.timeout_of(options);
        match within(timeout, answer(client, outgoing, options)).await {
            Ok(result) => {
                let result = Arc::new(result);
                if let Some(key) = key {
                    cache.keep(key, &result, generation, client.cache_capacity());
                }
                return Ok(result);
            }
            Err(error) => attempts.mend(client, request, error).await?,
        }
    }
}

/// One request, one answer. Notifications on the way go to whoever asked for them.
async fn answer(client: &Client, outgoing: Outgoing, options: &mut Options) -> Result<Raw, Error> {
    let mut leg = Leg::open(client.transport(), outgoing).await?;
    loop {
        match leg.event().await? {
            Event::Answer(result) => return Ok(result),
            Event::Notification { method, params } => {
                options.observe(leg.id(), &method, params.as_ref().map(AsRef::as_ref))?;
            }
        }
    }
}

/// Limits a request in time. What is dropped when time is up is thereby cancelled.
pub(crate) async fn within<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(Error::Timeout(timeout)))
}

/// What has been tried so far. There are two refusals that say what to do about them, and each is heeded once;
/// neither has run anything.
pub(crate) struct Attempts {
    pub(crate) version: ProtocolVersion,
    negotiated: bool,
    listed: bool,
}

impl Attempts {
    pub(crate) fn new() -> Self {
        Self { version: ProtocolVersion::LATEST, negotiated: false, listed: false }
    }

    /// `Ok` where the request is worth sending again; else the error to report.
    pub(crate) async fn mend(
        &mut self,
        client: &Client,
        request: &Request,
        error: Error,
    ) -> Result<(), Error> {
        match &error {
            Error::Rejected(refusal) if refusal.code == UNSUPPORTED_PROTOCOL_VERSION && !self.negotiated => {
                self.negotiated = true;
                let Some(theirs) = supported(refusal) else { return Err(error) };
                self.version = common(&theirs)?;
                Ok(())
            }
            Error::Rejected(refusal)
                if refusal.code == HEADER_MISMATCH
                    && request.method == CallTool::NAME
                    && client.transport().has_headers()
                    && !self.listed =>
            {
                self.listed = true;
                tracing::debug!("headers refused: listing the tools anew");
                // In a box, because listing is a call too.
                match Box::pin(client.list_tools().fresh().into_future()).await {
                    Ok(_) => Ok(()),
                    Err(_) => Err(error),
                }
            }
            _ => Err(error),
        }
    }
}

/// What a server says it speaks.
fn supported(refusal: &ErrorObject) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    Data::deserialize(refusal.data.as_ref()?).ok().map(|data| data.supported)
}

/// The newest revision that both sides speak.
fn common(theirs: &[String]) -> Result<ProtocolVersion, Error> {
    let shared = SPOKEN.iter().find(|ours| theirs.iter().any(|version| version == ours.as_str()));
    shared.copied().ok_or_else(|| {
        let ours: Vec<&str> = SPOKEN.iter().map(|version| version.as_str()).collect();
        let theirs = theirs.join(", ");
        Error::PeerIncompatible(format!(
            "no protocol version in common: it speaks {theirs}, and this client {}",
            ours.join(", ")
        ))
    })
}
