//! Head of a request of the handshake eras.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use roundtrip_core::wire::{Era, ErrorObject, ProtocolVersion};

use super::http_session::HttpSession;
use super::reply::{Refusal, no_session, refuse};
use super::stream::Stream;
use crate::legacy::handshake::revision;
use crate::legacy::server::session::affinity;
use crate::server::{Access, Listens, Owner, Principal};

/// Header that names a session, in requests and in the answer to `initialize`.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Revision of a request that names none (transports, "Protocol Version Header").
pub(super) const UNSAID: ProtocolVersion = ProtocolVersion::V2025_03_26;

/// Head of a request, and the facts about its client.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// Extensions that the HTTP stack in front attached to the request.
    pub(crate) extensions: http::Extensions,
    pub(crate) principal: Option<Principal>,
    /// Rights of the client's access token.
    pub(crate) access: Access,
    pub(crate) address: Option<IpAddr>,
    pub(crate) accepts: Accepts,
}

/// Forms of a response that the client accepts, and how often a stream shows that it is alive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepts {
    /// True if the client accepts a single message.
    pub(crate) json: bool,
    /// True if the client accepts a stream.
    pub(crate) streams: bool,
    pub(crate) keep_alive: Duration,
}

impl Arrival<'_> {
    /// Returns the owner whose share of the server the request takes.
    pub(super) fn owner(&self) -> Owner {
        Owner::new(self.principal.as_ref(), self.address)
    }

    /// Returns whether anything can be sent before the answer.
    pub(super) fn listens(&self) -> Listens {
        if self.accepts.streams { Listens::Yes } else { Listens::No }
    }
}

/// Reads the revision that a request names.
pub(super) fn stated_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, Refusal> {
    let Some(stated) = headers.get(VERSION) else { return Ok(None) };
    match stated.to_str().ok().and_then(revision).filter(|version| *version >= UNSAID) {
        Some(version) => Ok(Some(version)),
        None => {
            let error = ErrorObject::invalid_request(
                "mcp-protocol-version names a revision that this server does not support: send the one that `initialize` agreed on",
            );
            Err(refuse(StatusCode::BAD_REQUEST, None, &error))
        }
    }
}

/// Reads the session id of a request. Two ids are an error.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut ids = headers.get_all(SESSION).iter();
    match (ids.next(), ids.next()) {
        (None, _) => Ok(None),
        (Some(id), None) => id.to_str().map(Some).map_err(|_| no_session(None)),
        (Some(_), Some(_)) => Err(no_session(None)),
    }
}

/// Finds the stream and the event after which a client resumes.
pub(super) fn place_of(
    session: &HttpSession,
    event: &HeaderValue,
) -> Result<(Arc<Stream>, Option<u64>), Refusal> {
    let place = event.to_str().ok().and_then(|event| {
        let (stream, event) = event.split_once('-')?;
        let event = match session.tag() {
            Some(tag) => event.strip_suffix(&format!("-{tag:x}"))?,
            None => event,
        };
        Some((session.find_stream(stream.parse().ok()?)?, event.parse().ok()?))
    });
    // A client that resumes a finished stream would do so again and again.
    let place = place.filter(|(stream, event): &(Arc<Stream>, u64)| stream.goes_on_after(*event));
    let (stream, event) = place.ok_or_else(|| {
        if session.session.shared {
            return sent_elsewhere();
        }
        let error =
            ErrorObject::invalid_request("there is no stream of this session to go on with from this event");
        refuse(StatusCode::BAD_REQUEST, None, &error)
    })?;
    Ok((stream, Some(event)))
}

/// Refuses to resume from an event that this process has not sent, or no longer keeps.
pub(super) fn sent_elsewhere() -> Refusal {
    let error = affinity(
        "this instance has no stream to resume from this event: it belongs to the instance that sent it",
    );
    refuse(StatusCode::BAD_REQUEST, None, &error)
}

/// Returns whether a request names a modern revision: then it has no session, whatever else it says.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    let stated = headers.get(VERSION).and_then(|version| version.to_str().ok());
    stated
        .and_then(|version| version.parse().ok())
        .is_some_and(|version: ProtocolVersion| version.era() == Era::Modern)
}
