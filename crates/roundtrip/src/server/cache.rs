//! Caching hints of lists and resources.

use std::time::Duration;

use roundtrip_core::wire::CacheScope;

/// Caching hints: how long clients may keep a result, and whether they may share it between users.
///
/// The default is not at all: `ttlMs` 0, private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    ttl: Duration,
    scope: CacheScope,
}

impl Default for Cache {
    fn default() -> Self {
        Self::private(Duration::ZERO)
    }
}

impl Cache {
    /// Allows any cache to keep the result and serve it to any user: it must not depend on the caller.
    pub const fn public(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Public }
    }

    /// Allows only the client that asked to keep the result.
    pub const fn private(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Private }
    }

    /// Returns the same hints for the client that asked alone.
    pub(crate) const fn unshared(self) -> Self {
        Self::private(self.ttl)
    }

    pub(crate) fn ttl_ms(self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn scope(self) -> CacheScope {
        self.scope
    }
}
