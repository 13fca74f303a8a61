//! Limits of the HTTP server.

use std::sync::Arc;
use std::time::Duration;

use crate::server::Budget;

/// Limits of the HTTP server on size, time and number (H7).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Largest request body. Default: 4 MiB.
    pub body_bytes: usize,
    /// Most bytes of all bodies being read at once, as far as they have arrived. Default: 64 MiB, and never less than
    /// twice [`body_bytes`](Self::body_bytes). One principal gets at most half of what the others leave; callers
    /// without a principal share by their address, if it is known. A body that arrives together with its head takes
    /// none of it.
    pub total_body_bytes: usize,
    /// Longest time for a body to arrive. Default: 30 s.
    pub body_timeout: Duration,
    /// Longest time for a request's head to arrive, idle time between requests included. Default: 75 s. Only for
    /// connections that Roundtrip itself accepts.
    pub head_timeout: Duration,
    /// Longest time for a client to leave its response unread. Default: 30 s without accepting a single byte; a
    /// stream with nothing to send does not count. Only for connections that Roundtrip itself accepts.
    pub write_timeout: Duration,
    /// Most connections open at once. Default: 20,000. Only for connections that Roundtrip itself accepts.
    pub connections: usize,
    /// Time for running calls to finish when the server shuts down. Default: 30 s. Only for connections that
    /// Roundtrip itself accepts.
    pub grace: Duration,
    /// Time without an event after which a response becomes a stream, and a stream sends a keep-alive. Default: 15 s.
    pub keep_alive: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            total_body_bytes: 64 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            connections: 20_000,
            grace: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl HttpLimits {
    /// Returns the budget for bodies. It has room for the largest body, as long as no other caller needs any.
    pub(super) fn bodies(&self) -> Arc<Budget> {
        Budget::new(self.total_body_bytes.max(self.body_bytes.saturating_mul(2)))
    }
}
