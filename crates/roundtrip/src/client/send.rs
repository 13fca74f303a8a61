//! Sends a request until it has its result: again where the server says how, or where the connection broke and that is
//! safe.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "opentelemetry")]
use opentelemetry::context::FutureExt as _;
use roundtrip_core::error::{Error, PeerIncompatible, PeerMisbehaved, RequestName, Sent, Unreachable};
use roundtrip_core::wire::{
    CallTool, ErrorObject, HEADER_MISMATCH, Method, ProtocolVersion, Raw, UNSUPPORTED_PROTOCOL_VERSION,
    decode_complete, json,
};
use serde::Deserialize;

use super::builder::Client;
use super::cache::Key;
use super::in_flight::{Event, InFlight};
use super::options::Options;
use super::request::Request;
use super::request_time::RequestTime;
use super::resend::Resend;
#[cfg(feature = "oauth")]
use super::transport::BoxFuture;
use super::transport::Outgoing;

/// The revisions this client speaks, newest first.
const SPOKEN: &[ProtocolVersion] = &[ProtocolVersion::V2026_07_28];

/// Decodes the result of a method that does not ask.
pub(crate) fn complete<M: Method>(result: &Raw) -> Result<M::Result, Error> {
    decode_complete::<M>(result.as_ref())
        .map_err(|error| PeerMisbehaved::MalformedResult(error.to_string()).into())
}

/// Returns a result, from the cache or from the server.
pub(crate) async fn fetch(
    client: &Client,
    request: &Request<'_>,
    options: &mut Options,
) -> Result<Arc<Raw>, Error> {
    Ok(fetch_as(client, request, options).await?.0)
}

/// Returns a result, and the number of the credentials that it was asked for with.
pub(crate) async fn fetch_as(
    client: &Client,
    request: &Request<'_>,
    options: &mut Options,
) -> Result<(Arc<Raw>, u64), Error> {
    client.ready(options)?;
    // What else is in `_meta` may well matter to the result.
    let key = if options.extra.is_empty() { Key::of(request) } else { None };
    let credentials = client.transport().credentials();
    let kept = |key| client.cache_of(credentials).get(key);
    if let Some(kept) = key.as_ref().filter(|_| !options.fresh).and_then(kept) {
        return Ok((kept, credentials));
    }
    let mut time = RequestTime::new(client.timeout_of(options));
    let (result, generation, credentials) = loop {
        let credentials = client.transport().credentials();
        let generation = client.cache_of(credentials).generation();
        let sent = time.limit(request, send(client, request, options)).await;
        #[cfg(feature = "opentelemetry")]
        client.end_span(options, sent.as_ref().map(Some));
        match sent {
            Ok(result) => break (Arc::new(result), generation, credentials),
            Err(error) => {
                authorize(client, request, options, error, &mut time).await?;
            }
        }
    };
    options.waited += time.taken();
    client.learn(request.method, &result);
    if let Some(key) = key {
        client.cache_store().keep(key, &result, generation, client.cache_capacity());
    }
    Ok((result, credentials))
}

/// Gets another token after a refusal that wants one. Otherwise returns the error. All of it is inside the request's timeout,
/// apart from the time in which a person signs in (O74).
#[cfg(feature = "oauth")]
pub(crate) async fn authorize(
    client: &Client,
    request: &Request<'_>,
    options: &mut Options,
    error: Error,
    time: &mut RequestTime,
) -> Result<(), Error> {
    let authorized = match needed(client, options, &error, time.left()) {
        Some(authorizing) => client.closed().unless(authorizing).await,
        None => Err(error),
    };
    time.take(authorized.map_err(|error| match error {
        Error::Timeout { .. } => time.is_up(request),
        other => other.about(&request.name()),
    })?);
    client.cache_store().clear();
    options.part_numbers.begin_again();
    Ok(())
}

/// Returns the work that gets another token after a refusal. `None` if no token would help.
#[cfg(feature = "oauth")]
fn needed(
    client: &Client,
    options: &mut Options,
    error: &Error,
    left: Duration,
) -> Option<BoxFuture<Result<Duration, Error>>> {
    // A request that was refused before anything ran is sent again, and no other.
    let Error::Refused(refusal) = error else { return None };
    if refusal.sent == Sent::Maybe {
        return None;
    }
    client.transport().authorize(refusal, &mut options.tokens, left)
}

/// Returns the error: without the feature `oauth`, there are no tokens to get.
#[cfg(not(feature = "oauth"))]
pub(crate) async fn authorize(
    _: &Client,
    request: &Request<'_>,
    _: &mut Options,
    error: Error,
    _: &mut RequestTime,
) -> Result<(), Error> {
    Err(error.about(&request.name()))
}

/// Sends a request until it is answered, or fails for good. The caller limits all of it in time, pauses included.
async fn send(client: &Client, request: &Request<'_>, options: &mut Options) -> Result<Raw, Error> {
    let mut attempts = Attempts::new();
    loop {
        #[cfg(feature = "opentelemetry")]
        let context = client.begin_span(request, options);
        let outgoing = client.outgoing(request, options, attempts.version)?;
        let answering = answer(client, outgoing, options);
        #[cfg(feature = "opentelemetry")]
        let answering = answering.with_context(context);
        let answered = answering.await;
        #[cfg(feature = "opentelemetry")]
        client.end_span(options, answered.as_ref().map(Some));
        match answered {
            Ok(result) => {
                client.answered_in(attempts.version);
                #[cfg(feature = "oauth")]
                options.tokens.accepted();
                return Ok(result);
            }
            Err(error) if attempts.resend(options.resend(), request, &error) => {
                tracing::debug!(%error, method = request.method, "the connection broke: sending again");
                options.part_numbers.begin_again();
                tokio::time::sleep(attempts.backoff()).await;
            }
            Err(error) => attempts.mend(client, request, error).await?,
        }
    }
}

/// Sends one request and returns its answer. Notifications on the way go to the hooks for them.
async fn answer(client: &Client, outgoing: Outgoing, options: &mut Options) -> Result<Raw, Error> {
    options.part_numbers.begin_response();
    let mut leg = InFlight::open(client.transport(), outgoing).await?;
    loop {
        match leg.event().await? {
            Event::Answer(result) => return Ok(result),
            Event::Notification { method, params } => {
                options.observe(leg.id(), &method, params.as_ref().map(AsRef::as_ref))?;
            }
        }
    }
}

/// Limits work for a request in time. A request that is dropped when time is up is thereby cancelled.
pub(crate) async fn within<T>(
    timeout: Duration,
    name: impl FnOnce() -> RequestName,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(timeout, work).await {
        Ok(done) => done,
        Err(_) => Err(Error::timeout(name(), timeout)),
    }
}

/// Limits a flow in time, where it has a deadline.
pub(crate) async fn bounded<T>(
    deadline: Option<(Duration, RequestName)>,
    flow: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match deadline {
        Some((deadline, name)) => within(deadline, || name, flow).await,
        None => flow.await,
    }
}

/// Number of characters that are shown of the versions a server names.
const NAMED: usize = 100;
/// Number of times a request is sent again after the connection broke.
const RESENDS: u32 = 2;
/// Pause before that; twice as long before the next time.
const BACKOFF: Duration = Duration::from_millis(100);

/// Attempts at one request so far. There are two refusals that say how to send the request instead, and each is followed
/// once; neither has run anything.
pub(crate) struct Attempts {
    pub(crate) version: ProtocolVersion,
    negotiated: bool,
    listed: bool,
    resent: u32,
}

impl Attempts {
    pub(crate) fn new() -> Self {
        Self { version: ProtocolVersion::LATEST, negotiated: false, listed: false, resent: 0 }
    }

    /// Returns whether a request is sent again that failed with its connection (C16).
    fn resend(&mut self, policy: Resend, request: &Request<'_>, error: &Error) -> bool {
        // A request that a server turned away, or that found none, would fail again.
        let (sent, broke) = match error {
            Error::Unreachable {
                why: Unreachable::NoConnection(_) | Unreachable::Broken(_), sent, ..
            } => (*sent, true),
            Error::Unreachable { sent, .. } => (*sent, *sent == Sent::Maybe),
            Error::Refused(refusal) => (refusal.sent, refusal.sent == Sent::Maybe),
            _ => return false,
        };
        let has_state = request.get("requestState").is_some();
        // Requests about a task can be sent any number of times (tasks, "Task Update Requests").
        let repeats = request.method.starts_with("tasks/") && policy != Resend::Never;
        let resend = self.resent < RESENDS && broke && (repeats || policy.allows(sent, has_state));
        self.resent += u32::from(resend);
        resend
    }

    fn backoff(&self) -> Duration {
        BACKOFF * self.resent
    }

    /// Prepares the request to be sent again where a refusal says how; otherwise returns the error to report.
    pub(crate) async fn mend(
        &mut self,
        client: &Client,
        request: &Request<'_>,
        error: Error,
    ) -> Result<(), Error> {
        match &error {
            Error::Rejected(refusal)
                if refusal.error().code == UNSUPPORTED_PROTOCOL_VERSION && !self.negotiated =>
            {
                self.negotiated = true;
                let Some(theirs) = supported(refusal.error()) else { return Err(error) };
                self.version = common(&theirs)?;
                Ok(())
            }
            Error::Rejected(refusal)
                if refusal.error().code == HEADER_MISMATCH
                    && request.method == CallTool::NAME
                    && client.transport().has_headers()
                    && !self.listed =>
            {
                self.listed = true;
                tracing::debug!("headers refused: listing the tools anew");
                // In a box, because listing is a call too.
                match Box::pin(client.list_tools().fresh().into_future()).await {
                    Ok(_) => Ok(()),
                    Err(reason) => {
                        tracing::debug!(%reason, "the tools could not be listed");
                        Err(error)
                    }
                }
            }
            _ => Err(error),
        }
    }
}

/// Returns the versions that a server names.
fn supported(refusal: &ErrorObject) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    json::from_value(refusal.data.as_deref()?).ok().map(|Data { supported }| supported)
}

/// Returns the newest revision that both sides speak.
fn common(theirs: &[String]) -> Result<ProtocolVersion, Error> {
    let shared = SPOKEN.iter().find(|ours| theirs.iter().any(|version| version == ours.as_str()));
    shared.copied().ok_or_else(|| {
        let ours: Vec<&str> = SPOKEN.iter().map(|version| version.as_str()).collect();
        let theirs: String = theirs.join(", ").chars().take(NAMED).collect();
        PeerIncompatible::NoCommonVersion { theirs, ours: ours.join(", ") }.into()
    })
}
