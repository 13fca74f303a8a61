//! Detects the era of a server, and begins a session with a legacy one.

use std::sync::Arc;
use std::time::Duration;

use roundtrip_core::wire::{
    Era, ErrorObject, ProtocolVersion, Raw, RequestId, UNSUPPORTED_PROTOCOL_VERSION, encode_notification,
    encode_request,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::link::{SessionFailure, SessionLink};
use super::request::{Hello, encoded};
use super::session::{Life, Session};
use super::task_support::offers_tasks;
use crate::client::{
    Error, Outgoing, PeerIncompatible, PeerMisbehaved, Probed, Sent, Unreachable, answer, probe,
};
use crate::legacy::handshake::{
    INITIALIZE, INITIALIZED, InitializeRequestParams, InitializeResult, NEWEST, revision, within_revision,
};

/// Longest time for the handshake.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Id that no request of a client has.
const FIRST: RequestId = RequestId::Number(0);

/// Detected era of a server.
pub(super) enum Found<L: SessionLink> {
    Modern,
    Legacy(Arc<Session<L>>),
    /// The server answers neither era; this is its error to `initialize`.
    Neither(Error),
}

/// Sends `server/discover`, and if its outcome is not clearly modern, `initialize`.
pub(super) async fn detect<L: SessionLink>(
    link: &L,
    discover: &Outgoing,
    hello: &Hello,
    life: &Life,
) -> Result<Found<L>, Error> {
    let mut probed = Box::pin(probe(link, discover));
    match timeout(L::SILENCE, &mut probed).await {
        Ok(Ok(Probed::Modern)) => Ok(Found::Modern),
        Ok(Ok(Probed::Legacy)) => begin(link, hello, life).await,
        Ok(Ok(Probed::Lost(error))) => {
            tracing::debug!(%error, "no answer to `server/discover`");
            begin(link, hello, life).await
        }
        Ok(Err(error)) => Err(error),
        // It may be a legacy server that ignores unknown methods, or any server that is slow.
        Err(_) => {
            let mut legacy = Box::pin(begin(link, hello, life));
            tokio::select! {
                biased;
                probed = &mut probed => match probed {
                    Ok(Probed::Modern) => Ok(Found::Modern),
                    Ok(Probed::Legacy | Probed::Lost(_)) | Err(_) => legacy.await,
                },
                legacy = &mut legacy => match legacy {
                    // It does not know `initialize`, and may still be working on `server/discover`.
                    Ok(Found::Neither(error)) => match timeout(PATIENCE, probed).await {
                        Ok(Ok(Probed::Modern)) => Ok(Found::Modern),
                        Ok(Ok(Probed::Legacy | Probed::Lost(_)) | Err(_)) | Err(_) => Ok(Found::Neither(error)),
                    },
                    legacy => legacy,
                },
            }
        }
    }
}

async fn begin<L: SessionLink>(link: &L, hello: &Hello, life: &Life) -> Result<Found<L>, Error> {
    match initialize(link, hello, life).await {
        Ok(session) => Ok(Found::Legacy(session)),
        Err(NoSession::Refused(error)) => Ok(Found::Neither(error)),
        Err(NoSession::Error(error)) => Err(error),
    }
}

/// Reasons for which there is no session.
pub(super) enum NoSession {
    /// The server does not know `initialize`.
    Refused(Error),
    /// Anything else.
    Error(Error),
}

impl From<Error> for NoSession {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Begins a session.
pub(super) async fn initialize<L: SessionLink>(
    link: &L,
    hello: &Hello,
    life: &Life,
) -> Result<Arc<Session<L>>, NoSession> {
    let begun = timeout(PATIENCE, async {
        // Once more if other credentials came into use while the session began.
        for _ in 0..2 {
            if let Some(session) = handshake(link, hello, life).await? {
                return Ok(session);
            }
        }
        let why = Unreachable::SessionEnded("the session ended as it began".to_owned());
        Err(Error::unreachable(why, Sent::No).into())
    });
    begun.await.unwrap_or_else(|_| Err(Error::timeout(INITIALIZE, PATIENCE).into()))
}

/// Begins a session. `None` means that it was over at once, because requests have other credentials since.
async fn handshake<L: SessionLink>(
    link: &L,
    hello: &Hello,
    life: &Life,
) -> Result<Option<Arc<Session<L>>>, NoSession> {
    let pinned = hello.caller.pinned.filter(|version| version.era() == Era::Handshake);
    let mut offer = pinned.unwrap_or(NEWEST);
    let (at, result) = match greet(link, hello, offer).await? {
        (at, Ok(result)) => (at, result),
        // A server should offer another version by itself; some list theirs in an error instead.
        (_, Err(error)) => match offered(&error, pinned)? {
            Some(version) => {
                offer = version;
                match greet(link, hello, version).await? {
                    (at, Ok(result)) => (at, result),
                    (_, Err(error)) => return Err(NoSession::Refused(error.into())),
                }
            }
            None => return Err(NoSession::Refused(error.into())),
        },
    };
    let offers_tasks = offers_tasks(&result);
    let result: InitializeResult = result.to().map_err(|error| {
        let why = format!("`{INITIALIZE}` was answered with a result that does not fit: {error}");
        Error::from(PeerMisbehaved::MalformedResult(why))
    })?;
    let version = agreed(&result.protocol_version, pinned)?;
    let has_tasks = version.has_experimental_tasks() && offers_tasks;
    let mut at = at;
    link.agree(&mut at, version);
    tracing::debug!(%version, server = result.server_info.name, "session begun");
    let mut session = Session::new(link.clone(), at, (offer, version), hello.clone(), result, life.clone());
    session.has_tasks = has_tasks;
    let session = Arc::new(session);
    let ready = encoded(encode_notification(INITIALIZED, &json!({})))?;
    let told = match session.tell(ready.into()).await {
        Ok(()) => session.keep_listening().await,
        told => told,
    };
    match told {
        Ok(()) => Ok(Some(session)),
        Err(SessionFailure::Gone) if !link.is_current(&session.at) => Ok(None),
        Err(SessionFailure::Refused(refusal)) => Err(refusal.into_error().into()),
        Err(SessionFailure::Gone) => {
            let why = Unreachable::SessionEnded("the session ended as it began".to_owned());
            Err(Error::unreachable(why, Sent::No).into())
        }
        Err(SessionFailure::Error(error)) => Err(error.into()),
    }
}

type Greeted<L> = (<L as SessionLink>::At, Result<Raw, ErrorObject>);

async fn greet<L: SessionLink>(
    link: &L,
    hello: &Hello,
    version: ProtocolVersion,
) -> Result<Greeted<L>, NoSession> {
    let params = InitializeRequestParams {
        protocol_version: version.as_str().into(),
        capabilities: within_revision(hello.capabilities.clone(), version),
        client_info: hello.info.clone(),
    };
    let message = encoded(encode_request(&FIRST, INITIALIZE, &params))?;
    match link.begin(FIRST, message.into()).await {
        Ok((at, incoming)) => Ok((at, answer(incoming, &FIRST, INITIALIZE).await?)),
        Err(SessionFailure::Refused(refusal)) if refusal.may_be_legacy() || refusal.is_modern() => {
            Err(NoSession::Refused(refusal.into_error()))
        }
        Err(SessionFailure::Refused(refusal)) => Err(refusal.into_error().into()),
        Err(SessionFailure::Gone) => Err(Error::closed_by_server("the server is gone", Sent::No).into()),
        Err(SessionFailure::Error(error)) => Err(error.into()),
    }
}

/// Picks a version that both sides have, of those an error names (lifecycle, "Error Handling").
fn offered(error: &ErrorObject, pinned: Option<ProtocolVersion>) -> Result<Option<ProtocolVersion>, Error> {
    let named = error.data.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
    let Some(named) = named else { return Ok(None) };
    let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
    let shared = named.iter().filter_map(|version| revision(version)).max();
    match shared {
        Some(version) if pinned.is_none() => Ok(Some(version)),
        // A modern server lists its versions to every `initialize`; that says nothing new.
        None if pinned.is_none() => Ok(None),
        _ => Err(apart(&named.join(", "), pinned)),
    }
}

/// Checks the version that a server has chosen.
fn agreed(theirs: &str, pinned: Option<ProtocolVersion>) -> Result<ProtocolVersion, Error> {
    let version = revision(theirs).filter(|version| pinned.is_none_or(|pinned| pinned == *version));
    version.ok_or_else(|| apart(theirs, pinned))
}

/// Maps an error that lists the server's revisions, none of which this client may speak.
pub(super) fn incompatible(error: Error, pinned: Option<ProtocolVersion>) -> Error {
    let Error::Rejected(rejection) = &error else { return error };
    let refused = rejection.error();
    let supported = refused.data.as_ref().and_then(|data| data.get("supported")).and_then(Value::as_array);
    match supported {
        Some(supported) if refused.code == UNSUPPORTED_PROTOCOL_VERSION => {
            let theirs: Vec<&str> = supported.iter().filter_map(Value::as_str).collect();
            apart(&theirs.join(", "), pinned)
        }
        _ => error,
    }
}

fn apart(theirs: &str, pinned: Option<ProtocolVersion>) -> Error {
    let theirs: String = theirs.chars().filter(|c| !c.is_control()).take(100).collect();
    let incompatible = match pinned {
        Some(pinned) => PeerIncompatible::NotThePinnedVersion { theirs, pinned: pinned.to_string() },
        None => {
            let ours: Vec<&str> = ProtocolVersion::ALL.iter().rev().map(|version| version.as_str()).collect();
            PeerIncompatible::NoCommonVersion { theirs, ours: ours.join(", ") }
        }
    };
    incompatible.into()
}
