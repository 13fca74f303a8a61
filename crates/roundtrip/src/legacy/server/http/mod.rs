//! Streamable HTTP from 2025-03-26 to 2025-11-25: sessions, resumable streams, and a stream of messages outside of
//! any call.

mod batch;
mod connection;
mod endpoint;
mod event_body;
mod head;
mod reply;
mod sessions;
mod stream;

pub use connection::Connection;
pub(crate) use endpoint::LegacyHttp;
pub(crate) use head::{Arrival, SESSION};
pub(crate) use reply::Reply;
