//! Source of the time for claims.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use roundtrip_core::seal::Timestamp;

/// Source of the time that claims are compared with: the system's, or one that a test sets.
#[derive(Clone, Default)]
pub(crate) struct Clock(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl Clock {
    /// Creates a clock that a test sets.
    #[cfg(test)]
    pub(crate) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now()).into()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
