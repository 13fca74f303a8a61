//! Requests of a sign-in, and responses to them.

use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;

use crate::auth::error::AuthError;
use crate::auth::secret::Secret;
use crate::auth::text::PeerError;
use crate::auth::url::HttpUrl;

/// A request to send. No redirect of it is to be followed, and no more of its response read than
/// [`LONGEST_DOCUMENT`](crate::auth::LONGEST_DOCUMENT) and one byte.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuthRequest {
    /// Method: `GET` or `POST`.
    pub method: Method,
    /// URL.
    pub url: HttpUrl,
    /// Headers; credentials are marked as sensitive.
    pub headers: HeaderMap,
    /// Body of a `POST`.
    pub body: Option<Secret>,
}

/// A response: its status, its headers and the beginning of its body.
#[derive(Debug, Clone, Copy)]
pub struct AuthResponse<'a> {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Body.
    pub body: &'a [u8],
}

impl AuthRequest {
    /// Creates a request for a JSON document.
    pub fn get(url: HttpUrl) -> Self {
        Self { method: Method::GET, url, headers: json_accepted(), body: None }
    }

    pub(super) fn json(url: HttpUrl, body: &Value) -> Self {
        Self::post(url, "application/json", &body.to_string())
    }

    pub(in crate::auth) fn form(url: HttpUrl, body: &str) -> Self {
        Self::post(url, "application/x-www-form-urlencoded", body)
    }

    fn post(url: HttpUrl, kind: &'static str, body: &str) -> Self {
        let mut headers = json_accepted();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Self { method: Method::POST, url, headers, body: Some(Secret::new(body)) }
    }
}

fn json_accepted() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))])
}

impl AuthResponse<'_> {
    /// Returns where the response redirects to.
    pub(super) fn location(&self) -> Option<&str> {
        if !self.status.is_redirection() {
            return None;
        }
        self.headers.get(LOCATION)?.to_str().ok()
    }

    /// Returns whether the server cannot answer now, and may later.
    pub(super) fn is_outage(&self) -> bool {
        self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// Makes the error of a response that is no success: the server's own, an outage, or one that cannot be read.
    pub(super) fn error(&self, url: &HttpUrl, refused: impl FnOnce(PeerError) -> AuthError) -> AuthError {
        let (url, status) = (url.without_query().to_owned(), self.status);
        if self.is_outage() {
            return AuthError::Unavailable { url, status };
        }
        if status.is_redirection() {
            return AuthError::Unexpected { url, status, what: "a redirect, which is not followed" };
        }
        match PeerError::parse(self.body) {
            Some(error) => refused(error),
            None => AuthError::Unexpected { url, status, what: "a body that is no OAuth error" },
        }
    }
}
