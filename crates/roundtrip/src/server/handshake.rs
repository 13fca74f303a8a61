//! Settings for clients of the handshake eras.

use std::time::Duration;

/// Longest duration that is accepted: adding more to a clock might overflow.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Settings for clients of the handshake eras, which speak 2025-11-25 or an earlier revision and begin with
/// `initialize`. The same handlers serve them, on the same endpoint.
///
/// By default they get sessions, in which tools can ask questions. With a [`Keyring`](super::Keyring) that instances share
/// ([`Server::seal`](super::Server::seal)), the id of a session is sealed, and every instance serves calls that ask nothing.
/// An answer has to reach the instance that asked, so a load balancer before tools that ask routes each session to one
/// instance. Without shared keys only the process that began a session serves it. [`stateless`](Self::stateless)
/// does without sessions, and then only clients of 2026-07-28 can be asked.
///
/// ```
/// use std::time::Duration;
/// use roundtrip::{Handshake, Server};
///
/// let server = Server::new("bookings", "1.0.0")
///     .handshake(Handshake::sessions().idle_for(Duration::from_secs(300)).answer_within(Duration::from_secs(60)));
/// # server.build().unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "give it to `Server::handshake`"]
pub struct Handshake {
    pub(crate) served: Served,
    pub(crate) max_sessions: usize,
    pub(crate) session_bytes: usize,
    pub(crate) idle_for: Duration,
    pub(crate) answer_within: Duration,
}

/// Extent to which the handshake eras are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    Sessions,
    Stateless,
    Refused,
}

impl Default for Handshake {
    fn default() -> Self {
        Self {
            served: Served::Sessions,
            max_sessions: 10_000,
            session_bytes: 64 * 1024 * 1024,
            idle_for: Duration::from_secs(30 * 60),
            answer_within: Duration::from_secs(10 * 60),
        }
    }
}

impl Handshake {
    /// Serves clients in sessions, in which they can be asked. This is the default.
    pub fn sessions() -> Self {
        Self::default()
    }

    /// Serves HTTP clients without sessions: every call is independent and may go to any instance. A tool that asks
    /// fails with an error that says what to do. On stdio the connection is the session.
    pub fn stateless() -> Self {
        Self { served: Served::Stateless, ..Self::default() }
    }

    /// Serves 2026-07-28 alone. `initialize` is answered with an error that says so.
    pub fn refused() -> Self {
        Self { served: Served::Refused, ..Self::default() }
    }

    /// Sets how many sessions this process keeps at once over HTTP. Past that, clients are told to try again later. A session
    /// whose id is sealed is kept once it has a stream that can be resumed; plain calls of it are not counted. The
    /// default is 10,000, of which one principal gets at most half of what the others leave. Clients without a
    /// principal share by their address.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets how many bytes all sessions over HTTP may keep together: parameters of running calls, and messages that
    /// are unread or may be read again. The default is 64 MiB, shared like [`max_sessions`](Self::max_sessions).
    ///
    /// For a client that has taken half of its share no finished streams are kept any more: it can read them once,
    /// but not resume them. With all of its share taken, new sessions and calls are told to try again later.
    pub fn session_bytes(mut self, bytes: usize) -> Self {
        self.session_bytes = bytes;
        self
    }

    /// Sets how long a process keeps a session over HTTP without a request and without an open stream; calls that still run
    /// then end with it. The default is 30 minutes. A sealed id is good for seven days, and later requests find a new state.
    pub fn idle_for(mut self, duration: Duration) -> Self {
        self.idle_for = duration.min(YEAR);
        self
    }

    /// Sets how long a question waits for its answer, unless it says so itself
    /// ([`valid_for`](super::Asking::valid_for)). The default is ten minutes. Handlers that take their rounds by
    /// hand have their state sealed meanwhile: for them [`Server::answer_within`](super::Server::answer_within) counts as well.
    pub fn answer_within(mut self, duration: Duration) -> Self {
        self.answer_within = duration.min(YEAR);
        self
    }
}
