//! Extractor that lets a client disconnect in the middle of a call.

use std::sync::Arc;

use super::stream::Stream;
use crate::server::{Call, FromCall, Needs, Rejection};

/// Extractor for the connection that carries a call's messages, for long calls.
///
/// Clients of 2025-11-25 in a session can be disconnected and come back for the rest (transports, "Sending Messages
/// to the Server"), so that a call of an hour needs no connection of an hour. For every other client it does nothing.
/// A call of 2026-07-28 ends its round instead: see [`Ask::checkpoint`](crate::Ask::checkpoint).
#[derive(Debug, Clone)]
pub struct ResumableStream(Option<Arc<Stream>>);

/// Request extension that [`ResumableStream`] reads.
#[derive(Debug, Clone)]
pub(super) struct Resumable(pub(super) Arc<Stream>);

impl ResumableStream {
    /// Closes the connection once everything sent so far has been delivered. The call goes on, and the client comes
    /// back for its answer.
    pub fn let_go(&self) {
        if let Some(stream) = &self.0 {
            stream.let_go();
        }
    }
}

impl FromCall for ResumableStream {
    fn from_call(call: &mut Call<'_>) -> Result<Self, Rejection> {
        let stream = call.peer().extensions.get::<Resumable>();
        Ok(Self(stream.map(|resumable| Arc::clone(&resumable.0))))
    }

    fn needs(needs: &mut Needs) {
        needs.stream = true;
    }
}
