//! Time of one request, and of all that is done for it.

use std::time::Duration;

use roundtrip_core::error::Error;
use tokio::time::Instant;

use super::request::Request;

/// Time of one request, and of all that is done for it. The time of a person is not counted (C8).
pub(crate) struct RequestTime {
    limit: Duration,
    taken: Duration,
}

impl RequestTime {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, taken: Duration::ZERO }
    }

    /// Returns the time that was taken so far.
    pub(crate) fn taken(&self) -> Duration {
        self.taken
    }

    /// Runs a part of the work in the time that is left. Work that is dropped when time is up is thereby cancelled.
    pub(crate) async fn limit<T>(
        &mut self,
        request: &Request<'_>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let done = tokio::time::timeout(self.limit.saturating_sub(self.taken), work).await;
        self.taken += began.elapsed();
        done.unwrap_or_else(|_| Err(self.is_up(request)))
    }

    /// Builds the error of a request whose time is up.
    pub(crate) fn is_up(&self, request: &Request<'_>) -> Error {
        Error::timeout(request.name(), self.limit)
    }
}

#[cfg(feature = "oauth")]
impl RequestTime {
    /// Returns the time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.taken)
    }

    /// Counts time that was taken.
    pub(crate) fn take(&mut self, time: Duration) {
        self.taken += time;
    }
}
