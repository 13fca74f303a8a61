//! Heads of requests on connections that Roundtrip accepts itself: their size, and the hosts they name (RFC 9112).

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Request, Response, StatusCode, Uri, Version};
use roundtrip_core::wire::ErrorObject;

use super::body::Body;
use super::response::refuse_with;
use super::service::Http;

/// Most bytes of a head.
pub(super) const HEAD_BYTES: usize = 64 * 1024;

/// Bytes of a header besides its name and its value: a colon, a blank, the end of the line.
const SEPARATORS: usize = 4;

impl Http {
    /// Refuses pages of origins that may not call, and other hosts.
    pub(super) fn pass_gate(&self, head: &Parts) -> Result<(), Box<Response<Body>>> {
        let Some((status, why)) = self.settings.gate.refuses(head) else { return Ok(()) };
        Err(Box::new(refuse_with(status, None, &ErrorObject::invalid_request(why))))
    }
}

/// Refuses a request whose head is longer than it may be.
pub(super) fn refuse_long<B>(request: &Request<B>) -> Option<Response<Body>> {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + SEPARATORS).sum::<usize>();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let authority = request.uri().authority().map_or(0, |authority| authority.as_str().len());
    (headers + target + authority > HEAD_BYTES).then(|| {
        let why = format!("the head of the request is larger than {HEAD_BYTES} bytes");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        refuse_with(status, None, &ErrorObject::invalid_request(why))
    })
}

/// Refuses a request that does not name one host.
pub(super) fn refuse_hosts<B>(request: &Request<B>) -> Option<Response<Body>> {
    let why = host(request.version(), request.uri(), request.headers()).err()?;
    Some(refuse_with(StatusCode::BAD_REQUEST, None, &ErrorObject::invalid_request(why)))
}

/// Refuses a request for another path than those that are served.
pub(super) fn refuse_path() -> Response<Body> {
    let error = ErrorObject::invalid_request("the MCP endpoint is at /mcp");
    refuse_with(StatusCode::NOT_FOUND, None, &error)
}

/// Returns the host that a request names: by its target if that is a whole URL, otherwise by `Host` (RFC 9112, 3.2).
///
/// # Errors
/// The problem, if HTTP/1.1 has no `Host`, or there is more than one.
pub(super) fn host<'h>(
    version: Version,
    uri: &'h Uri,
    headers: &'h HeaderMap,
) -> Result<Option<&'h str>, &'static str> {
    let host = headers.get(HOST);
    if host.is_none() && version == Version::HTTP_11 {
        return Err("send a `Host` header");
    }
    // Few requests have any header twice.
    if headers.len() > headers.keys_len() && headers.get_all(HOST).iter().nth(1).is_some() {
        return Err("send one `Host` header, not several");
    }
    let by_target = uri.authority().map(Authority::as_str);
    Ok(by_target.or_else(|| host.map(|host| host.to_str().unwrap_or_default())))
}
