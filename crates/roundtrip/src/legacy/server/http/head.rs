//! What the head of a request says.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use roundtrip_core::wire::{Era, ErrorObject, ProtocolVersion};

use super::reply::{Refusal, no_session, refuse};
use super::sessions::HttpSession;
use super::stream::Stream;
use crate::legacy::handshake::revision;
use crate::server::{Listens, Owner, Principal};

/// Names a session, in requests and in the answer that begins it.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What a request that says nothing of its revision speaks (transports, "Protocol Version Header").
pub(super) const UNSAID: ProtocolVersion = ProtocolVersion::V2025_03_26;
/// What came in.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// What the HTTP stack in front attached to the request.
    pub(crate) extensions: http::Extensions,
    pub(crate) principal: Option<Principal>,
    pub(crate) address: Option<IpAddr>,
    /// Whether the client takes a single message.
    pub(crate) json: bool,
    /// Whether the client takes a stream.
    pub(crate) streams: bool,
    pub(crate) keep_alive: Duration,
}

impl Arrival<'_> {
    /// Whose share of the server the request takes.
    pub(super) fn owner(&self) -> Owner {
        Owner::new(self.principal.as_ref(), self.address)
    }

    /// Whether anything can be said before the answer.
    pub(super) fn listens(&self) -> Listens {
        if self.streams { Listens::Yes } else { Listens::No }
    }
}

/// The revision a request says it speaks.
pub(super) fn stated_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, Refusal> {
    let Some(stated) = headers.get(VERSION) else { return Ok(None) };
    match stated.to_str().ok().and_then(revision).filter(|version| *version >= UNSAID) {
        Some(version) => Ok(Some(version)),
        None => {
            let error = ErrorObject::invalid_request(
                "mcp-protocol-version names no revision that is spoken here: say what `initialize` agreed on",
            );
            Err(refuse(StatusCode::BAD_REQUEST, None, &error))
        }
    }
}

/// The id a request names its session by. Two are none.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut ids = headers.get_all(SESSION).iter();
    match (ids.next(), ids.next()) {
        (None, _) => Ok(None),
        (Some(id), None) => id.to_str().map(Some).map_err(|_| no_session(None)),
        (Some(_), Some(_)) => Err(no_session(None)),
    }
}

/// Where a client left off.
pub(super) fn place_of(
    session: &HttpSession,
    event: &HeaderValue,
) -> Result<(Arc<Stream>, Option<u64>), Refusal> {
    let place = event.to_str().ok().and_then(|event| {
        let (stream, event) = event.split_once('-')?;
        Some((session.find_stream(stream.parse().ok()?)?, event.parse().ok()?))
    });
    // Without anything to come, a client that comes back for it would do so for ever.
    let place = place.filter(|(stream, event): &(Arc<Stream>, u64)| stream.goes_on_after(*event));
    let (stream, event) = place.ok_or_else(|| {
        let error =
            ErrorObject::invalid_request("there is no stream of this session to go on with from this event");
        refuse(StatusCode::BAD_REQUEST, None, &error)
    })?;
    Ok((stream, Some(event)))
}

/// Whether a request says that it speaks a modern revision: then there are no sessions, whatever else it says.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    let stated = headers.get(VERSION).and_then(|version| version.to_str().ok());
    stated
        .and_then(|version| version.parse().ok())
        .is_some_and(|version: ProtocolVersion| version.era() == Era::Modern)
}
