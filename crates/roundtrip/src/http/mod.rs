//! Streamable HTTP: bytes to messages and back, on both sides.
//!
//! The server side is a [`tower_service::Service`] that mounts into axum or any other tower stack, and a small
//! accept loop for when that is all there is to serve. On the way through it spawns no task and opens no
//! channel: a dropped connection drops the handler.

mod body;
#[cfg(feature = "client")]
mod client;
mod headers;
mod legacy;
mod limits;
mod origin;
mod receive;
mod serve;
mod service;
mod socket;

pub use body::Body;
#[cfg(feature = "client")]
pub use client::HttpTransport;
pub use limits::HttpLimits;
pub use serve::Bound;
pub use service::Http;

/// Header names, in the lower case that HTTP libraries keep them in.
pub(crate) mod name {
    use http::HeaderName;

    pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
    pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
}

/// The two media types of an answer.
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
