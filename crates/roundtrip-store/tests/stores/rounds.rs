//! A round runs at most once, on every store: the tests of the crate `roundtrip`, on these.

#[macro_use]
#[path = "../../../roundtrip/tests/spec/ledger/repeats.rs"]
mod repeats;
#[path = "../../../roundtrip/tests/spec/ledger/shop.rs"]
mod shop;

use roundtrip::seal::{BoxFuture, Timestamp};
use roundtrip::server::Ledger;
use roundtrip::server::ledger::{Claim, LedgerError, RoundKey};
use shop::{Counted, Store};

use crate::support::{self, Site};

struct OnSite<S>(S);

struct Instance<S: Site>(S::Store);

impl<S: Site> Clone for Instance<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Site + 'static> Store for OnSite<S> {
    type Ledger = Instance<S>;

    async fn instance(&self) -> Instance<S> {
        Instance(support::instance(&self.0).await)
    }

    async fn bounded(&self, records: usize, bytes: usize) -> Instance<S> {
        let store = self.0.open(|opening| opening.bounded(records as u64, bytes as u64));
        Instance(store.await.expect("a store"))
    }
}

impl<S: Site> Ledger for Instance<S> {
    fn claim<'a>(&'a self, key: &'a RoundKey, until: Timestamp) -> BoxFuture<'a, Result<Claim, LedgerError>> {
        self.0.claim(key, until)
    }
}

impl<S: Site + 'static> Counted for Instance<S> {
    async fn count(&self) -> usize {
        usize::try_from(S::usage(&self.0).await.records).expect("a number")
    }
}

#[cfg(feature = "sqlite")]
on_every_store!(sqlite, OnSite(support::SqliteSite::new()));

#[cfg(feature = "postgres")]
on_every_store!(
    postgres,
    match support::PostgresSite::new().await {
        Some(site) => OnSite(site),
        None => return,
    }
);

#[cfg(feature = "redis")]
on_every_store!(
    redis,
    match support::RedisSite::new() {
        Some(site) => OnSite(site),
        None => return,
    }
);
