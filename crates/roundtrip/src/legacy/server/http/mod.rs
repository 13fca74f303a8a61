//! Streamable HTTP as it was from 2025-03-26 to 2025-11-25: sessions, streams that can be resumed, and a stream of what
//! is said outside of any call.

mod connection;
mod door;
mod feed;
mod sessions;
mod stream;

pub use connection::Connection;
pub(crate) use door::{Arrival, Door, Reply, SESSION};
