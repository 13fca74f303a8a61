//! Checks HTTP headers against the message they mirror (streamable HTTP, "Server Validation").

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use roundtrip_core::wire::{
    self, CallTool, CallToolRequestParams, ClientRequest, ErrorObject, GetTask, HeaderParams, Method,
    ProtocolVersion, Request, RequestId, clip, decode_header_value, json, peek_version,
};
use serde_json::Value;

use super::{EVENT_STREAM, JSON, name};
use crate::server::{Endpoint, Peer, SUPPORTED, refuse_handshake};

/// Decodes a request and checks its headers: they are required, and must say what the body says (H2).
pub(crate) fn decode<'a>(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    request: &Request<'a>,
    peer: &Peer,
) -> Result<ClientRequest<'a>, ErrorObject> {
    let version = single(headers, &name::PROTOCOL_VERSION, "MCP-Protocol-Version")?;
    let version = version
        .ok_or_else(|| refuse_handshake(request).unwrap_or_else(|| missing("MCP-Protocol-Version")))?;
    if !is_supported(version) {
        // Of an unknown revision no more can be expected than that its two version fields agree.
        return Err(match peek_version(request.params) {
            Some(body) if body != version => differs("MCP-Protocol-Version", version, &body),
            _ => endpoint.unsupported(version),
        });
    }
    let method = required(headers, &name::METHOD, "Mcp-Method")?;
    if method != request.method {
        return Err(differs("Mcp-Method", method, &request.method));
    }
    let decoded =
        ClientRequest::decode(&request.method, request.params).map_err(|error| {
            match peek_version(request.params) {
                Some(body) if body != version => differs("MCP-Protocol-Version", version, &body),
                _ => endpoint.refusal(request, error),
            }
        })?;
    agree(endpoint, headers, version, &decoded, Some(peer))
        .map_err(|error| endpoint.refusal(request, error))?;
    Ok(decoded)
}

/// Decodes a `tools/call` or a `tasks/get`, of which there are most, in one pass. Returns `None` unless the headers name one of
/// these methods and match the body; the caller then uses [`decode`], which finds the error.
pub(crate) fn decode_call<'a>(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    bytes: &'a [u8],
) -> Option<(RequestId, ClientRequest<'a>)> {
    let method = single(headers, &name::METHOD, "Mcp-Method").ok()??;
    let version = single(headers, &name::PROTOCOL_VERSION, "MCP-Protocol-Version").ok()??;
    if !is_supported(version) {
        return None;
    }
    let (id, decoded) = match method {
        CallTool::NAME => {
            let (id, params) = wire::decode_call::<CallTool>(bytes)?;
            (id, ClientRequest::CallTool(params))
        }
        GetTask::NAME => {
            let (id, params) = wire::decode_call::<GetTask>(bytes)?;
            (id, ClientRequest::GetTask(params))
        }
        _ => return None,
    };
    agree(endpoint, headers, version, &decoded, None).ok()?;
    Some((id, decoded))
}

fn is_supported(version: &str) -> bool {
    version.parse::<ProtocolVersion>().is_ok_and(|version| SUPPORTED.contains(&version))
}

/// Checks a decoded request against the headers that mirror it.
fn agree(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    version: &str,
    decoded: &ClientRequest<'_>,
    peer: Option<&Peer>,
) -> Result<(), ErrorObject> {
    let body = &decoded.meta().protocol_version;
    if body != version {
        return Err(differs("MCP-Protocol-Version", version, body));
    }
    if let Some(target) = decoded.target() {
        match single(headers, &name::NAME, "Mcp-Name")? {
            Some(raw) => is_name_of(raw, target)?,
            None if endpoint.may_go_unnamed(decoded) => {}
            None => return Err(missing("Mcp-Name")),
        }
    }
    if let ClientRequest::CallTool(params) = decoded {
        let checked =
            endpoint.header_params(&params.name, |annotated| check_params(annotated, headers, params));
        let checked = checked.unwrap_or(Ok(()));
        // Of a tool that the caller does not see, no error may tell.
        if checked.is_err() && peer.is_none_or(|peer| endpoint.shows_tool(params, peer)) {
            return checked;
        }
    }
    Ok(())
}

/// Checks the value of `Mcp-Name` against the name it mirrors.
fn is_name_of(raw: &str, target: &str) -> Result<(), ErrorObject> {
    if raw == target {
        return Ok(());
    }
    let sent = decode_header_value(raw).map_err(|why| invalid("Mcp-Name", &why))?;
    if sent == target { Ok(()) } else { Err(differs("Mcp-Name", &sent, target)) }
}

/// Checks `Mcp-Method` and `Mcp-Name`, where they are present, against the method and the target they mirror.
#[cfg(feature = "legacy")]
pub(crate) fn agree_with(
    headers: &HeaderMap,
    method: &str,
    target: impl FnOnce() -> Option<String>,
) -> Result<(), ErrorObject> {
    match single(headers, &name::METHOD, "Mcp-Method")? {
        Some(sent) if sent != method => return Err(differs("Mcp-Method", sent, method)),
        _ => {}
    }
    match single(headers, &name::NAME, "Mcp-Name")? {
        Some(raw) => target().map_or(Ok(()), |target| is_name_of(raw, &target)),
        None => Ok(()),
    }
}

/// Checks `Mcp-Param-*` headers against the arguments they mirror (H3).
fn check_params(
    annotated: &HeaderParams,
    headers: &HeaderMap,
    params: &CallToolRequestParams<'_>,
) -> Result<(), ErrorObject> {
    let arguments: Value = match params.arguments {
        Some(raw) => json::from_str(raw.get()).unwrap_or_default(),
        None => Value::Null,
    };
    for param in annotated.iter() {
        let name = &param.header;
        let sent = single(headers, name.as_str(), name)?;
        match (param.find(&arguments), sent) {
            (None, None) => {}
            (None, Some(sent)) => {
                return Err(ErrorObject::header_mismatch(format!(
                    "header mismatch: {name} is '{}' but the arguments have no value for it",
                    clip(sent)
                )));
            }
            (Some(_), None) => return Err(missing(name)),
            (Some(body), Some(sent)) => {
                if !HeaderParams::matches(sent, body) {
                    return Err(differs(name, sent, &body.to_string()));
                }
            }
        }
    }
    Ok(())
}

fn required<'h>(headers: &'h HeaderMap, name: &HeaderName, shown: &str) -> Result<&'h str, ErrorObject> {
    single(headers, name, shown)?.ok_or_else(|| missing(shown))
}

/// Returns the value of a header, and an error if it has two: a proxy that reads the other one would act on something
/// else.
fn single<'h>(
    headers: &'h HeaderMap,
    name: impl http::header::AsHeaderName,
    shown: &str,
) -> Result<Option<&'h str>, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => text(value, shown).map(Some),
        (Some(_), Some(_)) => Err(invalid(shown, &"it is present more than once")),
    }
}

fn text<'h>(value: &'h HeaderValue, shown: &str) -> Result<&'h str, ErrorObject> {
    value.to_str().map_err(|_| invalid(shown, &"it has characters that a header cannot carry"))
}

fn missing(header: &str) -> ErrorObject {
    ErrorObject::header_mismatch(format!("header mismatch: the {header} header is required"))
}

fn invalid(header: &str, why: &dyn std::fmt::Display) -> ErrorObject {
    ErrorObject::header_mismatch(format!("header mismatch: {header} is not usable: {why}"))
}

fn differs(header: &str, sent: &str, body: &str) -> ErrorObject {
    ErrorObject::header_mismatch(format!(
        "header mismatch: {header} header value '{}' does not match body value '{}'",
        clip(sent),
        clip(body)
    ))
}

/// Returns whether `Content-Type` is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        // Nearly every client sends just this.
        value == JSON || value.to_str().is_ok_and(|value| media_type(value) == Some(JSON))
    })
}

/// Returns whether the body is sent as it is, and not compressed.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    let is_plain =
        |coding: &HeaderValue| coding.is_empty() || coding.as_bytes().eq_ignore_ascii_case(b"identity");
    // Nearly no client sends it.
    !headers.contains_key(CONTENT_ENCODING) || headers.get_all(CONTENT_ENCODING).iter().all(is_plain)
}

/// Returns the media type without its parameters, if it is one of the two in use.
fn media_type(value: &str) -> Option<&'static str> {
    let bare = value.split(';').next().unwrap_or_default().trim();
    [JSON, EVENT_STREAM].into_iter().find(|known| known.eq_ignore_ascii_case(bare))
}

/// Kinds of response a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepts {
    Both,
    Json,
    Stream,
}

/// Reads `Accept`; `None` if it rules out both kinds of response (H8).
pub(crate) fn accepts(headers: &HeaderMap) -> Option<Accepts> {
    // The value that the specification tells clients to send, as most of them write it.
    if headers.get(ACCEPT).is_some_and(|value| value == "application/json, text/event-stream") {
        return Some(Accepts::Both);
    }
    let (mut any, mut json, mut stream) = (false, false, false);
    for value in headers.get_all(ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            any = true;
            let mut parts = range.split(';').map(str::trim);
            let bare = parts.next().unwrap_or_default();
            if parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                continue;
            }
            json |= matches!(bare, "*/*" | "application/*") || media_type(bare) == Some(JSON);
            stream |= matches!(bare, "*/*" | "text/*") || media_type(bare) == Some(EVENT_STREAM);
        }
    }
    match (any, json, stream) {
        (false, ..) | (_, true, true) => Some(Accepts::Both),
        (_, true, false) => Some(Accepts::Json),
        (_, false, true) => Some(Accepts::Stream),
        (_, false, false) => None,
    }
}
