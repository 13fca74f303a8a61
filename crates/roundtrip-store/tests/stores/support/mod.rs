//! Stores of a test's own, on every database there is.

mod log;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod proxy;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod tasks;

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use roundtrip::seal::{Digest, Timestamp};
use roundtrip::server::Ledger;
use roundtrip::server::ledger::{Claim, ClaimGuard, LedgerError, RoundKey};
use roundtrip_store::{Opening, StoreError, Usage};

pub(crate) use log::Log;
#[cfg(feature = "postgres")]
pub(crate) use postgres::PostgresSite;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use proxy::Proxy;
#[cfg(feature = "redis")]
pub(crate) use redis::RedisSite;
#[cfg(feature = "sqlite")]
pub(crate) use sqlite::SqliteSite;

/// A place for one store, empty at first.
pub(crate) trait Site {
    type Store: Ledger + Clone + Debug + Send + 'static;

    /// Opens an instance of the store, with settings.
    fn open(
        &self,
        set: impl FnOnce(Opening<Self::Store>) -> Opening<Self::Store> + Send,
    ) -> impl Future<Output = Result<Self::Store, StoreError>> + Send;

    fn usage(store: &Self::Store) -> impl Future<Output = Usage> + Send;

    /// Returns everything that is stored in replies.
    fn replies(&self) -> impl Future<Output = Vec<Vec<u8>>>;

    /// Writes a byte over the first one of every reply.
    fn damage(&self, first: u8) -> impl Future<Output = ()>;

    /// Gives every claim to a holder that is not there. Its lease stays as it is.
    fn disown(&self) -> impl Future<Output = ()>;

    /// Ends every lease now.
    fn expire(&self) -> impl Future<Output = ()>;

    /// Says that a later release has been here.
    fn outdate(&self) -> impl Future<Output = ()>;

    /// Returns how many records are there, whether or not they are over.
    fn stored(&self) -> impl Future<Output = u64>;
}

/// Opens an instance with the usual settings.
pub(crate) async fn instance<S: Site>(site: &S) -> S::Store {
    site.open(|opening| opening).await.expect("a store")
}

/// Makes tests of functions that take a site: one on each database. Without a server, a test says so and is left out.
macro_rules! on_each_store {
    ($($test:ident)*) => {
        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&crate::support::SqliteSite::new()).await;
            })*
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let Some(site) = crate::support::PostgresSite::new().await else { return };
                super::$test(&site).await;
            })*
        }

        #[cfg(feature = "redis")]
        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let Some(site) = crate::support::RedisSite::new() else { return };
                super::$test(&site).await;
            })*
        }
    };
}

/// Makes tests of functions that take a site, the same site through a proxy, and the proxy.
#[cfg(any(feature = "postgres", feature = "redis"))]
macro_rules! through_a_proxy {
    ($($test:ident)*) => {
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let Some(site) = crate::support::PostgresSite::new().await else { return };
                let (proxy, url) = crate::support::Proxy::before(&site.url).await;
                super::$test(&site, &crate::support::PostgresSite { url }, &proxy).await;
            })*
        }

        #[cfg(feature = "redis")]
        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let Some(site) = crate::support::RedisSite::new() else { return };
                let (proxy, url) = crate::support::Proxy::before(&site.url).await;
                let through = crate::support::RedisSite { url, prefix: site.prefix.clone() };
                super::$test(&site, &through, &proxy).await;
            })*
        }
    };
}

/// A site whose store keeps tasks.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) trait TaskSite: Site<Store: roundtrip::task::TaskStore> {
    /// Runs statements.
    fn execute(&self, statements: &'static str) -> impl Future<Output = ()>;

    /// Returns the bytes in the first column of every row.
    fn bytes(&self, statement: &'static str) -> impl Future<Output = Vec<Vec<u8>>>;

    /// Returns a statement for every stored byte of tasks, and one for the calls among them.
    fn task_bytes(&self) -> [&'static str; 2];

    /// Makes the tables of the release that knew no services, and adds tasks to them by its own statement.
    fn old_release(&self, tasks: &[OldTask]) -> impl Future<Output = ()>;

    /// Returns why the database refuses a statement; `None` if it does not.
    fn is_refused(&self, statement: &'static str) -> impl Future<Output = Option<String>>;
}

/// A task as the release stored it that knew no services.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
#[derive(Debug, Clone)]
pub(crate) struct OldTask {
    pub(crate) id: String,
    pub(crate) owner: Vec<u8>,
    pub(crate) account: Vec<u8>,
    pub(crate) live: bool,
    pub(crate) due: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) view: Vec<u8>,
    pub(crate) work: Vec<u8>,
}

/// Makes tests of functions that take a site, on each database that keeps tasks.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
macro_rules! on_each_store_of_tasks {
    ($($test:ident)*) => {
        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&crate::support::SqliteSite::new()).await;
            })*
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let Some(site) = crate::support::PostgresSite::new().await else { return };
                super::$test(&site).await;
            })*
        }
    };
}

/// Returns the address in a variable; without one, tells the person at the terminal what is left out. Tests that pass show
/// nothing that is printed, so this is written past them.
pub(crate) fn address(variable: &str) -> Option<String> {
    use std::io::Write as _;
    let address = std::env::var(variable).ok();
    if address.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("SKIPPED  {test}: {variable} is not set (cargo xtask services -- ..)\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    address
}

/// A name that no other test has.
pub(crate) fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_nanos();
    format!("rt{}_{time:x}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The key of a round.
pub(crate) fn key(number: u32) -> RoundKey {
    let mut id = [0; RoundKey::LEN];
    id[..4].copy_from_slice(&number.to_le_bytes());
    RoundKey::new(id, Digest::of("call", &[b"this"]))
}

pub(crate) fn later() -> Timestamp {
    Timestamp::from(SystemTime::now()).plus(Duration::from_secs(600))
}

pub(crate) async fn claim(ledger: &impl Ledger, key: &RoundKey) -> Result<Claim, LedgerError> {
    let claim = tokio::time::timeout(Duration::from_secs(30), ledger.claim(key, later()));
    claim.await.expect("an answer in time")
}

/// Claims a round that is free.
pub(crate) async fn run(ledger: &impl Ledger, key: &RoundKey) -> Box<dyn ClaimGuard> {
    match claim(ledger, key).await {
        Ok(Claim::Run(guard)) => guard,
        other => panic!("it is not free: {other:?}"),
    }
}

/// Runs a round and records its reply.
pub(crate) async fn record(ledger: &impl Ledger, key: &RoundKey, reply: &'static str) {
    let guard = run(ledger, key).await;
    guard.record(reply.into(), later()).await.expect("a record");
}

/// The reply of a round that was recorded.
pub(crate) async fn replay(ledger: &impl Ledger, key: &RoundKey) -> String {
    match claim(ledger, key).await {
        Ok(Claim::Replay(reply)) => String::from_utf8(reply.to_vec()).expect("text"),
        other => panic!("there is no reply: {other:?}"),
    }
}

/// The store's own error in that of the ledger.
pub(crate) fn cause(error: &LedgerError) -> &StoreError {
    let source = std::error::Error::source(error).expect("a cause");
    source.downcast_ref().expect("an error of the store")
}
