//! `server/discover` as a probe: tells a modern server from a legacy one.

use std::future::poll_fn;

use bytes::Bytes;
use roundtrip_core::error::{ApiMisuse, Error, PeerMisbehaved, Sent};
use roundtrip_core::wire::{
    Discover, Era, ErrorObject, Message, Method as _, ProtocolVersion, Raw, RequestId, RequestMeta,
    encode_request, json,
};
use serde::{Deserialize, Serialize};

use super::in_flight::nameless_error;
use super::link::{Failure, Link, is_modern};
use super::transport::{Incoming, Outgoing};

/// Id of the probe, which no request of a client has.
const ID: &str = "discover";
/// Most messages before an answer.
const MESSAGES: usize = 1000;

/// Outcome of a probe.
pub(crate) enum Probed {
    Modern,
    Legacy,
    /// No answer came. Some legacy servers do not survive the request.
    Lost(Error),
}

/// Builds the probe that goes ahead of a request, in the name of the same client.
pub(crate) fn discover(outgoing: &Outgoing) -> Result<Outgoing, Error> {
    #[derive(Deserialize)]
    struct Sent<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize, Serialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: RequestMeta<'a>,
    }
    let misuse = |error: serde_json::Error| {
        Error::from(ApiMisuse::Unserializable(format!("this is not a request: {error}")))
    };
    let Sent { params: Params { meta } } = json::from_slice(&outgoing.message).map_err(misuse)?;
    let meta = RequestMeta {
        progress_token: None,
        protocol_version: ProtocolVersion::LATEST.as_str().into(),
        log_level: None,
        extra: Vec::new(),
        ..meta
    };
    let id = RequestId::from(ID);
    let message = encode_request(&id, Discover::NAME, &Params { meta }).map_err(misuse)?;
    Ok(Outgoing {
        message: message.into(),
        id,
        method: Discover::NAME,
        target: None,
        version: ProtocolVersion::LATEST,
        mirrored: Vec::new(),
        parts: false,
        #[cfg(feature = "legacy")]
        caller: outgoing.caller.clone(),
    })
}

/// Sends a probe, and reads its answer.
pub(crate) async fn probe(link: &impl Link, discover: &Outgoing) -> Result<Probed, Error> {
    match link.send(discover).await {
        Ok(incoming) => Ok(read(incoming).await),
        Err(Failure::Refused(refusal)) if refusal.may_be_legacy() => Ok(Probed::Legacy),
        Err(Failure::Refused(refusal)) if refusal.is_modern() => Ok(Probed::Modern),
        Err(Failure::Refused(refusal)) => Err(refusal.into_error()),
        Err(Failure::Error(error)) => Err(error),
    }
}

async fn read(incoming: Incoming) -> Probed {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
    }
    let is_legacy = |version: &String| {
        version.parse::<ProtocolVersion>().is_ok_and(|version| version.era() == Era::Handshake)
    };
    match answer(incoming, &RequestId::from(ID), Discover::NAME).await {
        // A server that names old revisions alone has only learnt the question.
        Ok(Ok(result)) => match result.to::<Discovered>() {
            Ok(found) if found.supported_versions.iter().all(is_legacy) => Probed::Legacy,
            Ok(_) => Probed::Modern,
            Err(_) => Probed::Legacy,
        },
        Ok(Err(error)) if is_modern(&error) => Probed::Modern,
        Ok(Err(_)) => Probed::Legacy,
        Err(error) => Probed::Lost(error),
    }
}

/// Marks an error of a probe: the request itself has not been sent.
pub(crate) fn unsent(error: Error) -> Error {
    match error {
        Error::Unreachable { why, cause, .. } => Error::Unreachable { why, sent: Sent::No, cause },
        Error::Refused(mut refusal) => {
            refusal.sent = Sent::No;
            Error::Refused(refusal)
        }
        other => other,
    }
}

/// Reads up to the answer of a request.
pub(crate) async fn answer(
    mut incoming: Incoming,
    id: &RequestId,
    method: &'static str,
) -> Result<Result<Raw, ErrorObject>, Error> {
    for _ in 0..MESSAGES {
        let next = poll_fn(|cx| incoming.as_mut().poll_next(cx)).await;
        let bytes: Bytes = next.ok_or_else(|| {
            Error::closed_by_server(format!("the server ended the exchange of `{method}`"), Sent::Maybe)
        })??;
        match Message::decode(&bytes) {
            Ok(Message::Response(response)) if response.id.as_ref().is_none_or(|found| found == id) => {
                return Ok(response.outcome.map(Raw::from));
            }
            Ok(_) => {}
            Err(malformed) => {
                return nameless_error(&bytes).map(Err).ok_or_else(|| {
                    PeerMisbehaved::MalformedMessage(malformed.error.message.into_owned()).into()
                });
            }
        }
    }
    Err(PeerMisbehaved::NoAnswer { method, messages: MESSAGES }.into())
}
