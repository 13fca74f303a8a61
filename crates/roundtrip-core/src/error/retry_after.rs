//! Time to wait before a refused request is sent again: written by a server, read by a client.

use std::time::Duration;

use http::header::RETRY_AFTER;
use serde_json::{Value, json};

use super::{Error, HttpRefusal, RATE_LIMITED};
use crate::wire::ErrorObject;

/// Member of `data` with the time to wait, in milliseconds.
const RETRY_AFTER_MS: &str = "retryAfterMs";

/// Errors that say how long to wait.
///
/// ```
/// use std::time::Duration;
///
/// use roundtrip_core::error::Error;
/// use roundtrip_core::wire::ErrorObject;
///
/// let error = ErrorObject::rate_limited(Duration::from_micros(1_200_500));
/// assert_eq!(error.to_string(), "too many requests: try again in 1201 ms (429)");
/// assert_eq!(error.retry_after(), Some(Duration::from_millis(1_201)));
/// assert_eq!(Error::from(error).retry_after(), Some(Duration::from_millis(1_201)));
///
/// let error = ErrorObject::new(503, "the printer is busy").retrying_after(Duration::from_secs(5));
/// assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
/// ```
impl ErrorObject {
    /// Creates the error of a rate limit: code [`RATE_LIMITED`], and the time to wait in `data.retryAfterMs`, rounded up.
    pub fn rate_limited(retry_after: Duration) -> Self {
        let ms = retry_after.as_nanos().div_ceil(1_000_000).max(1);
        Self::new(RATE_LIMITED, format!("too many requests: try again in {ms} ms"))
            .retrying_after(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)))
    }

    /// Sets `data` to the time to wait.
    #[must_use]
    pub fn retrying_after(self, wait: Duration) -> Self {
        self.with_data(json!({ RETRY_AFTER_MS: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }))
    }

    /// Returns the time to wait before the request is sent again, if the error says it in `data.retryAfterMs`.
    pub fn retry_after(&self) -> Option<Duration> {
        self.data.as_deref()?.get(RETRY_AFTER_MS).and_then(Value::as_u64).map(Duration::from_millis)
    }
}

impl HttpRefusal {
    /// Returns the time to wait before the request is sent again: that of its JSON-RPC error, or else the seconds in the
    /// header `Retry-After`. A date there is not read.
    pub fn retry_after(&self) -> Option<Duration> {
        let header = || self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok();
        let said = self.error.as_ref().and_then(ErrorObject::retry_after);
        said.or_else(|| header().map(Duration::from_secs))
    }
}

impl Error {
    /// Returns the time to wait before the request is sent again, if the server says it: past a rate limit, for one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected(rejection) => rejection.error().retry_after(),
            Self::Refused(refusal) => refusal.retry_after(),
            _ => None,
        }
    }
}
