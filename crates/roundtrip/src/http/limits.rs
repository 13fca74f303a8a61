//! What the HTTP side puts up with.

use std::sync::Arc;
use std::time::Duration;

use crate::server::Budget;

/// How much, and how long, the HTTP side puts up with (H7).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HttpLimits {
    /// The largest body taken. Default: 4 MiB.
    pub body_bytes: usize,
    /// The bytes of all bodies that are on their way together, as far as they have arrived. Default: 64 MiB, and never
    /// less than twice [`body_bytes`](Self::body_bytes). One principal has at most half of what the others leave; callers
    /// without one share by their address, where it is known. A body that arrives together with its head takes none of it.
    pub total_body_bytes: usize,
    /// How long a body may take to arrive. Default: 30 s.
    pub body_timeout: Duration,
    /// How long a connection may take to send a request's head, idle time between requests included.
    /// Default: 75 s. Only where Roundtrip itself accepts connections.
    pub head_timeout: Duration,
    /// How long a client may leave its answer unread. Default: 30 s in which it takes not a single byte of what there is
    /// to write; a stream on which there is nothing to say does not count. Only where Roundtrip itself accepts
    /// connections.
    pub write_timeout: Duration,
    /// How many connections are open at once. Default: 20,000. Only where Roundtrip itself accepts connections.
    pub connections: usize,
    /// How long running calls get to finish when the server shuts down. Default: 30 s. Only where Roundtrip itself
    /// accepts connections.
    pub grace: Duration,
    /// After how long without anything to say an answer turns into a stream, and a stream sends a keep-alive.
    /// Default: 15 s.
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
    /// The budget for bodies. The largest body there may be has room in it, as long as nobody else needs any.
    pub(super) fn bodies(&self) -> Arc<Budget> {
        Budget::new(self.total_body_bytes.max(self.body_bytes.saturating_mul(2)))
    }
}
