//! Streamable HTTP edge: bytes to messages and back, on both sides.
//!
//! The server side is a [`tower_service::Service`] that mounts into axum or any other tower stack, and an accept loop
//! for servers that need nothing else. It spawns no task and opens no channel for a request: a dropped connection
//! drops the handler.

mod body;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "authorize")]
mod guard;
#[cfg(not(feature = "authorize"))]
#[path = "no_guard.rs"]
mod guard;
mod head;
mod head_timer;
mod headers;
#[cfg(feature = "legacy")]
mod legacy;
mod limits;
#[cfg(feature = "authorize")]
mod metadata;
mod origin;
mod receive;
mod response;
mod serve;
mod service;
mod shutdown;
mod socket;

pub use body::Body;
#[cfg(feature = "client")]
pub use client::HttpTransport;
pub use limits::HttpLimits;
#[cfg(feature = "authorize")]
pub use metadata::Metadata;
pub use serve::Bound;
pub use service::Http;

/// Header names, in lower case as HTTP libraries keep them.
pub(crate) mod name {
    use http::HeaderName;

    pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
    pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
}

/// Media types of a response.
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
