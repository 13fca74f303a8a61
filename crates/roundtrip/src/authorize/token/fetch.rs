//! Requests to issuers.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use roundtrip_core::auth::AuthRequest;

/// Future of a response, or of the reason there is none.
pub(crate) type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send>>;

/// Sender of requests to issuers: HTTP, or an issuer in this process.
pub(crate) trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request, follows no redirect, and reads a bounded response in a bounded time.
    fn send(&self, request: AuthRequest) -> Fetching;
}

/// Response of an issuer.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// Status.
    pub(crate) status: StatusCode,
    /// Body.
    pub(crate) body: Bytes,
    /// `max-age` of `Cache-Control`.
    pub(crate) max_age: Option<Duration>,
}
