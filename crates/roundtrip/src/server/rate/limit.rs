//! [`RateLimit`]: a number of requests in a time.

use std::sync::Arc;
use std::time::Duration;

use super::shared::SharedStore;
use super::store::RateStore;

/// Longest time that a limit is counted by: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Limit on how often each principal may call.
///
/// It counts `tools/call`, `prompts/get` and `resources/read`, each request of a flow as one, in a bucket for each principal and
/// each place that the limit is given to: the server, or one tool, prompt or resource. Callers without a principal share one
/// bucket per address, IPv6 addresses by their first 64 bits; where the address is not known, all of them share one.
///
/// ```
/// # use roundtrip::{RateLimit, Server, Tool};
/// let server = Server::new("shop", "1.0.0")
///     .rate_limit(RateLimit::per_minute(100)) // all calls of a principal together
///     .tool(Tool::new("search", async || "found").rate_limit(RateLimit::per_second(2).burst(10)))
///     .tool(Tool::new("export", async || "done").rate_limit(RateLimit::per_hour(3)));
/// # server.build().unwrap();
/// ```
///
/// Past it, a request is refused before anything runs: error 429 with `data.retryAfterMs`, over HTTP with status 429 and
/// `Retry-After`. It costs its flow nothing: the same `requestState` is good later.
///
/// Buckets are in the memory of this process, or in a store that instances share.
#[derive(Debug, Clone)]
#[must_use = "a limit does nothing until it is given to a server, a group, a tool, a prompt or a resource"]
pub struct RateLimit {
    /// Time for one request to come back into the bucket.
    pub(super) interval: Duration,
    pub(super) burst: u32,
    /// `None` for the server's own buckets.
    pub(super) shared: Option<Arc<SharedStore>>,
    pub(super) strict: bool,
}

impl RateLimit {
    /// Limits requests to a number in a time, a year at most. They may all come at once, and come back one by one, evenly spread
    /// over that time. Of zero, one is let through.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use roundtrip::{RateLimit, Tool};
    /// let daily = RateLimit::new(1_000, Duration::from_secs(24 * 60 * 60));
    /// let tool = Tool::new("report", async || "sent").rate_limit(daily);
    /// ```
    pub fn new(requests: u32, per: Duration) -> Self {
        let requests = requests.max(1);
        let interval = (per.min(LONGEST) / requests).max(Duration::from_nanos(1));
        Self { interval, burst: requests, shared: None, strict: false }
    }

    /// Limits requests in a second.
    pub fn per_second(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(1))
    }

    /// Limits requests in a minute.
    pub fn per_minute(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(60))
    }

    /// Limits requests in an hour.
    pub fn per_hour(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(60 * 60))
    }

    /// Sets how many requests may come at once, in place of as many as come in the time. The rate stays. At least one.
    pub fn burst(mut self, requests: u32) -> Self {
        self.burst = requests.max(1);
        self
    }

    /// Counts in a store that instances share, so that they let through together what one would: `Redis` or `Postgres` of the
    /// crate `roundtrip-store`, or one of your own. All instances need the same limit, and the same
    /// [`audience`](crate::Server::audience).
    ///
    /// A store that fails, or does not answer within half a second, lets calls through for the next second without being asked,
    /// and a warning is logged.
    ///
    /// ```
    /// # use roundtrip::{RateLimit, Server, server::rate::MemoryRates};
    /// let rates = MemoryRates::new(); // two servers of one process
    /// let limit = RateLimit::per_minute(100).shared(rates).strict();
    /// let first = Server::new("shop", "1.0.0").rate_limit(limit.clone());
    /// let second = Server::new("shop", "1.0.0").rate_limit(limit);
    /// ```
    pub fn shared(mut self, store: impl RateStore + 'static) -> Self {
        self.shared = Some(Arc::new(SharedStore::new(store)));
        self
    }

    /// Refuses calls while the shared store fails, in place of letting them through: error 503, over HTTP with status 503 and
    /// `Retry-After`.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}
