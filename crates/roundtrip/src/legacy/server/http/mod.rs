//! Streamable HTTP from 2025-03-26 to 2025-11-25: sessions, resumable streams, and a stream of messages outside of
//! any call.

mod batch;
mod endpoint;
mod event_body;
mod head;
mod http_session;
mod reply;
mod resumable_stream;
mod sealed_id;
mod sessions;
mod stream;

pub(crate) use endpoint::{LegacyHttp, Taken};
pub(crate) use head::{Accepts, Arrival, SESSION};
pub(crate) use reply::Reply;
pub use resumable_stream::ResumableStream;
