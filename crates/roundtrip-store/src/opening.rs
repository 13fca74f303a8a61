//! [`Opening`]: a store that is being opened, and its settings.

use std::ffi::OsString;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use roundtrip::Keyring;
use roundtrip::seal;

use crate::StoreError;

/// A store that is being opened. Await it; before that, its settings can be changed.
#[must_use = "it is opened when awaited"]
pub struct Opening<S> {
    pub(crate) place: OsString,
    pub(crate) settings: Settings,
    store: PhantomData<fn() -> S>,
}

/// Settings of a store.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) ring: Option<seal::Keyring>,
    pub(crate) lease: Duration,
    pub(crate) capacity: Usage,
    /// Most connections to a server that takes one statement at a time on each.
    #[cfg(feature = "postgres")]
    pub(crate) connections: usize,
    /// First part of all keys, where there are no tables.
    #[cfg(feature = "redis")]
    pub(crate) prefix: String,
}

/// Number of records in a ledger, running rounds included, and bytes of their replies as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Number of records.
    pub records: u64,
    /// Bytes of replies.
    pub bytes: u64,
}

impl<S> Opening<S> {
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
    pub(crate) fn new(place: impl Into<OsString>) -> Self {
        let settings = Settings {
            ring: None,
            lease: Duration::from_secs(30),
            capacity: Usage { records: 1_000_000, bytes: 1 << 30 },
            #[cfg(feature = "postgres")]
            connections: 8,
            #[cfg(feature = "redis")]
            prefix: "roundtrip".to_owned(),
        };
        Self { place: place.into(), settings, store: PhantomData }
    }

    /// Seals what is stored: replies of the ledger, and tasks. All instances need the keys: read them from a file or a variable.
    ///
    /// The first key seals, every one opens. A record that is read with another key than the first is sealed again with the
    /// first. Keys are rotated as those of [the seal](roundtrip::Keyring): the new one last, then first, then the old one
    /// gone, after its records.
    ///
    /// Without a ring records are stored as they are, and a warning is logged when the store is opened.
    pub fn sealed_by(mut self, ring: Keyring) -> Self {
        self.settings.ring = Some(ring.into());
        self
    }

    /// Sets how many records and bytes of replies the ledger holds, in place of 1,000,000 and 1 GiB. One caller has at most
    /// half of what the others leave. Rounds beyond are refused before they run. All instances need the same values.
    pub fn bounded(mut self, records: u64, bytes: u64) -> Self {
        self.settings.capacity = Usage { records, bytes };
        self
    }

    /// Sets how long a claim outlives its process, in place of 30 seconds. Living processes renew theirs three times as
    /// often. At least a second.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_secs(1));
        self
    }
}

impl Settings {
    /// Checks what can be wrong before a database is asked, and warns of a store that seals nothing.
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
    pub(crate) fn check(&self, store: &'static str) -> Result<(), StoreError> {
        match &self.ring {
            Some(ring) if ring.is_single_process() => Err(StoreError::RandomKey),
            Some(_) => Ok(()),
            None => {
                tracing::warn!(store, "records are stored unsealed: give the store a ring with `sealed_by`");
                Ok(())
            }
        }
    }
}

/// The address may have a password in it.
impl<S> fmt::Debug for Opening<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A store that can be opened.
pub(crate) trait Open: Sized {
    fn open(place: OsString, settings: Settings) -> impl Future<Output = Result<Self, StoreError>> + Send;
}

impl<S: Open + 'static> IntoFuture for Opening<S> {
    type Output = Result<S, StoreError>;
    type IntoFuture = seal::BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(S::open(self.place, self.settings))
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
impl Usage {
    /// Returns whether the share of a caller has room for one more record: half of what the others leave, rounded up, as in
    /// memory. Statements in SQL and Lua have the same rule.
    pub(crate) fn has_room(self, own: Self, all: Self) -> bool {
        let fits =
            |total: u64, own: u64, all: u64| own < total.saturating_sub(all.saturating_sub(own)).div_ceil(2);
        fits(self.records, own.records, all.records) && fits(self.bytes, own.bytes, all.bytes)
    }
}
