//! Metadata of a protected resource, as a service (RFC 9728).

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue,
};
use http::{Method, Request, Response, StatusCode};
use roundtrip_core::wire::ErrorObject;
use tower_service::Service;

use super::JSON;
use super::body::Body;
use super::response::{failed, respond};
use crate::authorize::Authorize;

/// Service that publishes the metadata of a protected resource, to mount at [`Authorize::path`]. It needs no token, and pages
/// of any origin may read it.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// `None` if the settings have a mistake, which `Http::authorize` reports.
    document: Option<Bytes>,
}

impl Authorize {
    /// Returns the service that publishes the metadata of the resource. A server that is [bound](super::Http::bind) has it
    /// already.
    pub fn metadata(&self) -> Metadata {
        let published = self.published();
        if let Err(mistake) = &published {
            tracing::error!(%mistake, "there is no metadata to publish");
        }
        Metadata { document: published.ok().map(|published| published.document) }
    }
}

impl<B> Service<Request<B>> for Metadata {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let response = match &self.document {
            Some(document) => metadata_response(request.method(), document),
            None => failed(&ErrorObject::internal("the server is not set up for this call")),
        };
        ready(Ok(response))
    }
}

/// Answers a request for metadata. A page that sends headers of its own asks by OPTIONS first.
pub(super) fn metadata_response(method: &Method, document: &Bytes) -> Response<Body> {
    let (status, body) = match *method {
        Method::GET | Method::HEAD => (StatusCode::OK, Body::whole(document.clone())),
        Method::OPTIONS => (StatusCode::NO_CONTENT, Body::empty()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, Body::empty()),
    };
    let more: &[_] = match status {
        StatusCode::OK => &[(CONTENT_TYPE, JSON), (CACHE_CONTROL, "public, max-age=300")],
        StatusCode::NO_CONTENT => {
            &[(ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"), (ACCESS_CONTROL_ALLOW_HEADERS, "*")]
        }
        _ => &[(ALLOW, "GET, HEAD, OPTIONS")],
    };
    let mut response = respond(status, body);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    for (name, value) in more {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
